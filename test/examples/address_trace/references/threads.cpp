// Threads that share a queue, a mutex, and thread-local variables; each has its own heap.
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace {

std::mutex lock;
std::condition_variable has_more;
std::deque<std::unique_ptr<std::vector<int>>> queue;
thread_local long own_sum;
long sums[4];
std::atomic<bool> ended{false};

void work(int number) {
    for (;;) {
        std::unique_ptr<std::vector<int>> mine;
        {
            std::unique_lock held(lock);
            has_more.wait(held, [] { return !queue.empty() || ended.load(); });
            if (queue.empty()) break;
            mine = std::move(queue.front());
            queue.pop_front();
        }
        for (const int each : *mine) own_sum += each;
    }
    sums[number] = own_sum;
}

}  // namespace

int main() {
    std::vector<std::thread> all;
    for (int i = 0; i < 3; ++i) all.emplace_back(work, i);
    for (int i = 0; i < 20; ++i) {
        auto made = std::make_unique<std::vector<int>>(20, i);
        const std::scoped_lock held(lock);
        queue.push_back(std::move(made));
        has_more.notify_one();
    }
    ended = true;
    has_more.notify_all();
    for (auto& each : all) each.join();
    std::printf("%ld\n", sums[0] + sums[1] + sums[2]);
    return 0;
}
