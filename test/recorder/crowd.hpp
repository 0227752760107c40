// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Thousands of threads that are alive simultaneously, and the memory that they take.

#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <latch>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <trace_ring/recorder/recorder.hpp>

#include <recorder/account.hpp>
#include <recorder/scratch.hpp>

namespace test {

/// Bytes of addresses that the process has mapped, and of memory behind them.
struct memory_use {
    std::uint64_t mapped = 0, resident = 0;
};
[[nodiscard]] inline memory_use memory_now() {
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

/// Threads that are alive simultaneously: none records before the last has started, and none ends
/// before the last has recorded.
template <class Kind = trace_ring::recording>
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

    crowd(trace_ring::basic_recorder<Kind>& recorder, std::uint64_t wanted,
          std::size_t stack = std::size_t{256} << 10)
        : recorder_(recorder), members_(static_cast<std::size_t>(wanted)) {
        pthread_attr_t attributes;
        ::pthread_attr_init(&attributes);
        ::pthread_attr_setstacksize(&attributes, stack);
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
            self.recorded += put(all.recorder_, self.who, n) ? 1 : 0;
        }
        ++all.done_;
        all.end_.wait();
        return nullptr;
    }
    void wait_for(const std::atomic<std::uint64_t>& count) const {
        while (count.load() < begun_) ::usleep(1000);
    }

    trace_ring::basic_recorder<Kind>& recorder_;
    std::vector<member> members_;
    std::uint64_t begun_ = 0;
    std::atomic<std::uint64_t> ready_{0};
    std::atomic<std::uint64_t> done_{0};
    std::latch go_{1};
    std::latch end_{1};
    memory_use before_;
    memory_use after_;
};

#if defined(__x86_64__) || defined(__i386__)
inline constexpr bool own_memory = !under_asan && !under_tsan;
#else
inline constexpr bool own_memory = false;  // it may be an emulator's
#endif

}  // namespace test
