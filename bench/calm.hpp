// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Whether a processor is the program's own while something is measured. On a rented machine, and
/// on any with two hardware threads to a core, somebody else's work may run on the other half of it
/// for milliseconds or minutes: then what keeps the core busy takes up to twice as long, and what
/// only waits, for the clock or for a chain of multiplies, as long as before. So it is not only
/// times that shift but ratios, and by the system's own counts nothing has happened.
///
/// What tells is a loop that keeps the core as busy as can be, of instructions that touch nothing:
/// its time is the same to a hundredth when the core is ours. It is taken before, within and after
/// each repetition; which of them count is decided by it alone (calm.py), never by what was
/// measured.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <chrono>
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

/// A longer time than the least by this much is not calm. calm.py has it, too.
inline constexpr double tolerance = 1.10;

/// Looks at the processor of one thread during one repetition.
class watch {
    using clock = std::chrono::steady_clock;

    static constexpr clock::duration every = std::chrono::milliseconds(5);
    static constexpr clock::duration patience = std::chrono::milliseconds(100);
    /// The least ever seen by this program, with one thread and with more: processors that are busy
    /// together may be slower for it.
    static inline std::atomic<double> least_[2]{std::numeric_limits<double>::infinity(),
                                                std::numeric_limits<double>::infinity()};

    std::atomic<double>& least;
    bool means_something;  ///< with more threads than processors these disturb each other
    double worst = 0;
    clock::time_point next;

    /// The time just taken, and whether it is calm.
    bool look(double& taken) {
        taken = adds();
        // relaxed: a hint, shared by threads that need not agree
        if (taken < least.load(std::memory_order_relaxed))
            least.store(taken, std::memory_order_relaxed);
        next = clock::now() + every;
        return taken <= tolerance * least.load(std::memory_order_relaxed);
    }

public:
    explicit watch(int threads)
        : least(least_[threads > 1]),
          means_something(threads <= static_cast<int>(std::thread::hardware_concurrency())) {}

    /// Before a repetition: waits for the processor to be calm, but not for long.
    void wait() {
        if (!means_something) return;
        const auto until = clock::now() + patience;
        while (!look(worst) && clock::now() < until) {
        }
    }
    /// Whether it is time to look again.
    [[nodiscard]] bool due() const { return means_something && clock::now() >= next; }
    void look() {
        if (!means_something) return;
        double taken = 0;
        look(taken);
        worst = std::max(worst, taken);
    }
    /// The longest of the repetition, over all threads the mean.
    void tell(benchmark::State& state) const {
        if (means_something) state.counters["adds_ns"] = {worst, benchmark::Counter::kAvgThreads};
    }
};

}  // namespace bench::calm
