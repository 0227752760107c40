// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Detects whether a processor belongs to the program alone during a measurement. On a rented
/// machine, and on any machine with two hardware threads per core, other work may run on the other
/// half of the core for milliseconds or minutes. Code that keeps the core busy then takes up to
/// twice as long, while code that waits, for the clock or for a chain of multiplications, takes as
/// long as before. So not only times but also ratios change, and the system's own counts show
/// nothing.
///
/// The indicator is a loop that keeps the core as busy as possible with instructions that access no
/// memory. Its time is constant to within one per cent while the core is ours. It is measured
/// before, during and after each repetition. This time alone decides which repetitions count
/// (calm.py), never the measured result.
///
/// For threads that are measured together, the kernel's accounting is also used: how long they were
/// ready to run but did not, because another program had the processor. During that time one thread
/// ran alone, or waited for another that was not running.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <limits>
#include <thread>

namespace bench::calm {

/// Nanoseconds that eight independent adds take: the least of three loops, for an interrupt must
/// not pass for a neighbour. About 40 microseconds in all.
[[nodiscard, gnu::noinline]] inline double adds() {
    using clock = std::chrono::steady_clock;
    constexpr int steps = 8000;
    double least = std::numeric_limits<double>::infinity();
    for (int loop = 0; loop < 3; ++loop) {
        unsigned long a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, g = 7, h = 8;
        const auto from = clock::now();
        for (int step = 0; step < steps; ++step) {
            a += 3, b += 3, c += 3, d += 3, e += 3, f += 3, g += 3, h += 3;
            asm volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
            asm volatile("" : "+r"(e), "+r"(f), "+r"(g), "+r"(h));
        }
        const std::chrono::duration<double, std::nano> taken = clock::now() - from;
        least = std::min(least, taken.count() / steps);
    }
    return least;
}

/// Nanoseconds for which the calling thread has been ready to run and was not running; a thread
/// that sleeps or waits for a lock is not ready. Negative: this kernel does not say.
[[nodiscard]] inline double queued() {
    unsigned long long ran = 0;
    unsigned long long waited = 0;
    std::FILE* const file = std::fopen("/proc/thread-self/schedstat", "r");
    if (file == nullptr) return -1;
    const bool found = std::fscanf(file, "%llu %llu", &ran, &waited) == 2;
    static_cast<void>(std::fclose(file));
    return found ? static_cast<double>(waited) : -1;
}

/// A longer time than the least by this much is not calm. calm.py has it, too.
inline constexpr double tolerance = 1.10;

/// The threads of a benchmark that find their processors calm at the moment.
using meeting = std::atomic<int>;

/// Looks at the processor of one thread during one repetition, or not at all.
class watch {
    using clock = std::chrono::steady_clock;

    static constexpr clock::duration every = std::chrono::milliseconds(5);
    /// The least ever seen by this program, with one thread and with more: processors that are busy
    /// together may be slower for it.
    static inline std::atomic<double> least_[2]{std::numeric_limits<double>::infinity(),
                                                std::numeric_limits<double>::infinity()};

    std::atomic<double>& least;
    int threads_;
    bool looks_;
    double worst = 0;
    clock::time_point next{};
    clock::time_point began{};
    double queued_before = -1;
    double queued_share = -1;

    [[nodiscard]] bool is_calm(double taken) const {
        // relaxed: a hint, shared by threads that need not agree
        return taken <= tolerance * least.load(std::memory_order_relaxed);
    }
    double take() {
        const double taken = adds();
        // relaxed, both: as above
        if (taken < least.load(std::memory_order_relaxed))
            least.store(taken, std::memory_order_relaxed);
        next = clock::now() + every;
        return taken;
    }

public:
    /// Of a benchmark of so many threads. More threads than processors disturb each other, which is
    /// what is measured then.
    explicit watch(int threads, bool looks = true)
        : least(least_[threads > 1]),
          threads_(threads),
          looks_(looks && threads <= static_cast<int>(std::thread::hardware_concurrency())) {}

    /// Before a repetition: waits until the processors of all threads are calm, for a short time or
    /// not at all.
    void wait(meeting& with, bool patient) {
        if (!looks_) return;
        const auto patience = std::chrono::milliseconds(!patient ? 0 : threads_ > 1 ? 400 : 100);
        const auto until = clock::now() + patience;
        bool counted = false;
        for (;;) {
            worst = take();
            // relaxed, all: as above
            if (counted != is_calm(worst)) {
                counted = !counted;
                with.fetch_add(counted ? 1 : -1, std::memory_order_relaxed);
            }
            if (with.load(std::memory_order_relaxed) >= threads_ || clock::now() >= until) break;
        }
        // Who is calm stays counted, so that the others see all of them, until the repetition is
        // over.
        if (!counted) with.fetch_add(1, std::memory_order_relaxed);
    }
    /// After it.
    void leave(meeting& with) const {
        if (looks_) with.fetch_sub(1, std::memory_order_relaxed);  // relaxed: as above
    }
    /// The repetition proper begins, and ends: between the two, what the kernel says is counted.
    void begin() {
        if (!looks_ || threads_ == 1) return;
        began = clock::now();
        queued_before = queued();
    }
    void end() {
        if (queued_before < 0) return;
        const std::chrono::duration<double, std::nano> passed = clock::now() - began;
        const double after = queued();
        if (after >= 0 && passed.count() > 0)
            queued_share = (after - queued_before) / passed.count();
    }
    /// Whether it is time to look again.
    [[nodiscard]] bool due() const { return looks_ && clock::now() >= next; }
    void look() {
        if (looks_) worst = std::max(worst, take());
    }
    /// Whether it was calm whenever it was looked at.
    [[nodiscard]] bool was_calm() const { return is_calm(worst); }
    /// The longest of the repetition, over all threads the mean; and the shares of it for which
    /// threads were ready and did not run, over all threads the sum.
    void tell(benchmark::State& state) const {
        if (looks_) state.counters["adds_ns"] = {worst, benchmark::Counter::kAvgThreads};
        if (queued_share >= 0) state.counters["queued"] = queued_share;
    }
};

}  // namespace bench::calm
