// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// How far apart the two processors of a benchmark are while it runs. A virtual processor is not
/// tied to a core: the host may run two of them on one core, on cores that share a cache, or on
/// cores that do not, and may change that at any time. Data that two threads pass to each other
/// then takes several times as long, while the load looks the same and calm.hpp sees nothing.
///
/// The probe is a bare ping-pong: two threads change one cache line in turn. Each benchmark of two
/// threads takes it before and after each repetition. modes.py groups the repetitions by these two
/// times, never by what was measured, and compares only repetitions of one group.

#include <benchmark/benchmark.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace bench::distance {

/// What a thread does that waits for another thread and has looked `tried` times, from 1: nothing,
/// because a pause takes as long as a line does. But after many tries it waits for a processor, not
/// for a line, and lets others run.
[[gnu::always_inline]] inline void stand_by(unsigned tried) {
    constexpr unsigned many = 1U << 14;
    if (tried % many == 0) ::sched_yield();
}

/// The line that two threads change in turn.
class ping_pong {
    /// Even: thread 0 may change it. Odd: thread 1 may. On a separate cache line.
    alignas(128) std::atomic<std::uint64_t> turn{0};
    [[maybe_unused]] std::byte rest[128 - sizeof(std::atomic<std::uint64_t>)];

    void await(std::uint64_t value) const {
        for (unsigned tried = 1; turn.load(std::memory_order_acquire) != value; ++tried) {
            stand_by(tried);
        }
    }

public:
    /// Makes `n` round trips; threads 0 and 1 both call it, with the same `n`. Does not return
    /// before the other thread has come.
    [[gnu::noinline]] void operator()(std::uint64_t n, int thread) {
        const auto mine = static_cast<std::uint64_t>(thread);
        // relaxed: only thread 0 changes an even value. Thread 1 may already see the first change.
        const std::uint64_t from = turn.load(std::memory_order_relaxed) & ~std::uint64_t{1};
        for (std::uint64_t i = 0; i < n; ++i) {
            await(from + 2 * i + mine);
            turn.store(from + 2 * i + mine + 1, std::memory_order_release);
        }
        // Thread 0 waits for the last answer, so that the value is even when it returns.
        if (thread == 0) await(from + 2 * n);
    }
};

/// Nanoseconds of one round trip: the median over 31 lines. An interrupt lengthens the time of one
/// line and must not pass for a distance; and on some processors the time depends on the line's
/// address by half. Threads 0 and 1 both call it. Takes about 0.1 ms.
[[nodiscard]] inline double probe(int thread) {
    using clock = std::chrono::steady_clock;
    static std::array<ping_pong, 31> lines;
    constexpr std::uint64_t trips = 32;
    lines[0](1, thread);  // both threads are there
    std::array<double, lines.size()> taken{};
    for (std::size_t i = 0; i < lines.size(); ++i) {
        lines[i](1, thread);
        const auto from = clock::now();
        lines[i](trips, thread);
        const std::chrono::duration<double, std::nano> passed = clock::now() - from;
        taken[i] = passed.count() / static_cast<double>(trips);
    }
    std::sort(taken.begin(), taken.end());
    return taken[taken.size() / 2];
}

/// Probes before and after one repetition, or never.
class watch {
    int thread_;
    bool looks_;
    double before_ = 0;

public:
    watch(int thread, bool looks) : thread_(thread), looks_(looks) {}

    void before() {
        if (looks_) before_ = probe(thread_);
    }
    /// Reports both round trips.
    void after(benchmark::State& state) const {
        if (!looks_) return;
        const double after = probe(thread_);
        if (thread_ != 0) return;
        state.counters["ping_before_ns"] = before_;
        state.counters["ping_after_ns"] = after;
    }
};

}  // namespace bench::distance
