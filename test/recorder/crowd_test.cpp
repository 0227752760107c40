// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// A thousand threads at once in one small recorder.

#include <boost/test/unit_test.hpp>

#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <latch>
#include <map>
#include <vector>

#include <trace_ring/recorder/recorder.hpp>

#include <recorder/account.hpp>
#include <recorder/scratch.hpp>

namespace tr = trace_ring;
using tr::loss_cause;

namespace {

/// Bytes of addresses that the process has mapped, and of memory behind them.
struct memory_use {
    std::uint64_t mapped = 0, resident = 0;
};
memory_use memory_now() {
    char text[128] = {};
    const int fd = ::open("/proc/self/statm", O_RDONLY);
    const ssize_t got = fd < 0 ? -1 : ::read(fd, text, sizeof text - 1);
    if (fd >= 0) ::close(fd);
    unsigned long long mapped = 0;
    unsigned long long resident = 0;
    BOOST_REQUIRE(got > 0);
    BOOST_REQUIRE(std::sscanf(text, "%llu %llu", &mapped, &resident) == 2);
    const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    return {mapped * page, resident * page};
}

/// Threads that are alive all at once: none records before the last is there, and none ends before
/// the last has recorded.
class crowd {
public:
    static constexpr std::uint64_t each = 20;  ///< records that a thread tries

    struct member {
        crowd* all = nullptr;
        std::uint64_t who = 0;
        std::uint32_t thread = 0;
        std::uint64_t recorded = 0;
        pthread_t handle{};
    };

    crowd(tr::recorder& recorder, std::uint64_t wanted)
        : recorder_(recorder), members_(static_cast<std::size_t>(wanted)) {
        pthread_attr_t attributes;
        ::pthread_attr_init(&attributes);
        ::pthread_attr_setstacksize(&attributes, std::size_t{256} << 10);
        for (auto& one : members_) {
            one.all = this;
            one.who = begun_;
            if (::pthread_create(&one.handle, &attributes, &crowd::run, &one) != 0) break;
            ++begun_;
        }
        ::pthread_attr_destroy(&attributes);
        if (begun_ != wanted) BOOST_TEST_MESSAGE("no more than " << begun_ << " threads here");
        members_.resize(static_cast<std::size_t>(begun_));
        wait_for(ready_);
        before_ = memory_now();
        go_.count_down();
        wait_for(done_);
        after_ = memory_now();
    }
    crowd(const crowd&) = delete;
    crowd& operator=(const crowd&) = delete;
    /// Lets them end.
    ~crowd() {
        end_.count_down();
        for (auto& one : members_) ::pthread_join(one.handle, nullptr);
    }

    [[nodiscard]] const std::vector<member>& members() const { return members_; }
    /// How much more memory there is since they began to record.
    [[nodiscard]] std::uint64_t mapped() const { return after_.mapped - before_.mapped; }
    [[nodiscard]] std::uint64_t resident() const {
        return after_.resident < before_.resident ? 0 : after_.resident - before_.resident;
    }

private:
    static void* run(void* argument) {
        auto& self = *static_cast<member*>(argument);
        crowd& all = *self.all;
        self.thread = static_cast<std::uint32_t>(::syscall(SYS_gettid));
        ++all.ready_;
        all.go_.wait();
        for (std::uint64_t n = 0; n < each; ++n) {
            self.recorded += test::put(all.recorder_, self.who, n) ? 1 : 0;
        }
        ++all.done_;
        all.end_.wait();
        return nullptr;
    }
    void wait_for(const std::atomic<std::uint64_t>& count) const {
        while (count.load() < begun_) ::usleep(1000);
    }

    tr::recorder& recorder_;
    std::vector<member> members_;
    std::uint64_t begun_ = 0;
    std::atomic<std::uint64_t> ready_{0};
    std::atomic<std::uint64_t> done_{0};
    std::latch go_{1};
    std::latch end_{1};
    memory_use before_;
    memory_use after_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(a_crowd)

BOOST_AUTO_TEST_CASE(a_thousand_threads_at_once_read_back_or_counted_lane_by_lane) {
    const std::uint64_t threads = test::scaled(1000, 100);
    for (const bool wave_again : {false, true}) {
        // 64 sub-buffers, of which half may be held, and a lane for each thread.
        tr::recorder recorder({.size = 64 * 512, .sub_buffer_bytes = 512, .lanes = 1024});
        const crowd all(recorder, threads);
        BOOST_REQUIRE(all.members().size() >= 100U);
        BOOST_TEST(recorder.statistics().held <= 32U);
        const auto seen = test::account_of(recorder);
        BOOST_TEST(seen.strange == 0U);
        BOOST_TEST(seen.without_lane.total() == 0U);
        BOOST_TEST(seen.lanes.size() == all.members().size());
        std::map<std::uint32_t, const test::lane_account*> by_thread;
        for (const auto& [number, lane] : seen.lanes) by_thread[lane.thread] = &lane;
        std::uint64_t kept = 0;
        for (const auto& one : all.members()) {
            BOOST_REQUIRE(by_thread.count(one.thread) == 1U);
            const test::lane_account& lane = *by_thread[one.thread];
            BOOST_REQUIRE(lane.total() == crowd::each);
            BOOST_REQUIRE(lane.lost[loss_cause::refused] == crowd::each - one.recorded);
            BOOST_REQUIRE(lane.numbers.size() + lane.lost[loss_cause::overwritten] == one.recorded);
            if (!lane.numbers.empty()) BOOST_REQUIRE(lane.who == one.who);
            kept += one.recorded;
        }
        BOOST_TEST(kept >= 32U * test::fit_in_512);
        BOOST_TEST(seen.read() + recorder.statistics().overwritten == kept);
#if defined(__x86_64__) || defined(__i386__)
        constexpr bool own_memory = !test::under_asan && !test::under_tsan;
#else
        constexpr bool own_memory = false;  // it may be an emulator's
#endif
        if (!own_memory) continue;
        // Two pages a thread, which are used again by the threads that come after; and as much of
        // each stack as the first record needs.
        constexpr std::uint64_t slack = 1 << 20;
        const std::uint64_t first = wave_again ? 0 : threads * tr::impl::node_bytes;
        BOOST_TEST(all.mapped() <= first + slack);
        BOOST_TEST(all.resident() <= first + threads * (16 << 10) + slack);
    }
}

BOOST_AUTO_TEST_CASE(threads_without_a_lane_are_counted_too) {
    const std::uint64_t threads = test::scaled(1000, 100);
    tr::recorder recorder({.size = 64 * 512, .sub_buffer_bytes = 512, .lanes = 64});
    std::uint64_t tried = 0;
    std::uint64_t kept = 0;
    test::account seen;
    {
        const crowd all(recorder, threads);
        BOOST_REQUIRE(all.members().size() >= 100U);
        tried = all.members().size() * crowd::each;
        for (const auto& one : all.members()) kept += one.recorded;
        seen = test::account_of(recorder);
    }
    BOOST_TEST(seen.strange == 0U);
    BOOST_TEST(seen.lanes.size() == 64U);
    for (const auto& [number, lane] : seen.lanes) BOOST_TEST(lane.total() == crowd::each);
    BOOST_TEST(seen.without_lane[loss_cause::refused] == tried - 64U * crowd::each);
    BOOST_TEST(seen.without_lane.total() == recorder.statistics().refused_without_lane);
    BOOST_TEST(seen.read() + seen.lost()[loss_cause::overwritten] == kept);
    BOOST_TEST(seen.read() + seen.lost().total() == tried);
    BOOST_TEST(recorder.statistics().held == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
