// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Converts a trace clock's ticks to time: snapshots of the clock beside CLOCK_MONOTONIC and
/// CLOCK_REALTIME, and the line through two of them. A trace holds at least two, from its beginning
/// and its end; times between lie on the line, with the uncertainty that the snapshots state.
/// @code
/// const auto first = trace_ring::take_snapshot<trace_ring::clock::tsc>();
/// // ... later
/// const auto last = trace_ring::take_snapshot<trace_ring::clock::tsc>();
/// const trace_ring::time_scale scale(first, last, trace_ring::clock::tsc::ticks_per_second());
/// scale.monotonic_ns(trace_ring::clock::tsc::now());
/// @endcode

#include <time.h>

#include <cstdint>

#include <trace_ring/clock_snapshot.hpp>
#include <trace_ring/policy/clock/clock.hpp>
#include <trace_ring/policy/clock/monotonic.hpp>

namespace trace_ring::inline v1 {

/// Reads the three clocks together a few times and returns the narrowest reading, because an
/// interruption between the reads widens one, rarely all. Signal-safe.
template <clock::policy Clock>
[[nodiscard]] inline clock_snapshot take_snapshot() noexcept {
    constexpr int tries = 5;
    clock_snapshot best{0, 0, 0, ~std::uint64_t{0}};
    for (int i = 0; i < tries; ++i) {
        const std::uint64_t before = Clock::now();
        const std::uint64_t monotonic = clock::impl::system_ns(CLOCK_MONOTONIC);
        const std::uint64_t realtime = clock::impl::system_ns(CLOCK_REALTIME);
        const std::uint64_t width = Clock::now() - before;
        const std::uint64_t half = width - width / 2;
        if (half < best.uncertainty) best = {before + width / 2, monotonic, realtime, half};
    }
    return best;
}

/// Ticks to nanoseconds, by the line through two snapshots. If these are too close to give a rate,
/// or contradict each other because the counter jumped, the stated rate is used instead.
class time_scale {
public:
    /// A rate is taken only from snapshots at least this far apart: then their uncertainty (tens of
    /// ns) changes the rate by less than 10 parts in a million.
    static constexpr std::uint64_t shortest_baseline_ns = 10'000'000;

    /// For a clock without ticks: every time is 0.
    constexpr time_scale() noexcept = default;

    constexpr time_scale(const clock_snapshot& first, const clock_snapshot& last,
                         double ticks_per_second) noexcept
        : origin_(first), ns_per_tick_(ticks_per_second > 0 ? 1e9 / ticks_per_second : 0) {
        consistent_ = last.ticks >= first.ticks && last.monotonic >= first.monotonic;
        if (!consistent_ || last.monotonic - first.monotonic < shortest_baseline_ns) return;
        if (last.ticks == first.ticks) {
            consistent_ = false;  // ten milliseconds without a tick
            return;
        }
        const double by_line = static_cast<double>(last.monotonic - first.monotonic) /
                               static_cast<double>(last.ticks - first.ticks);
        // A counter that stopped or restarted (a moved virtual machine) gives a rate far from the
        // stated one: that is reported, never smoothed over. No clock is slewed by as much as 1 %.
        if (ns_per_tick_ > 0 && (by_line > ns_per_tick_ * 1.01 || by_line < ns_per_tick_ * 0.99)) {
            consistent_ = false;
            return;
        }
        ns_per_tick_ = by_line;
    }

    /// CLOCK_MONOTONIC at `ticks`, in ns. `ticks` may lie before the first snapshot.
    [[nodiscard]] constexpr std::uint64_t monotonic_ns(std::uint64_t ticks) const noexcept {
        return shifted(origin_.monotonic, ticks);
    }
    /// CLOCK_REALTIME at `ticks`, in ns since 1970, as the clock was set at the first snapshot.
    /// Later changes of the clock are ignored, so the order of records is kept.
    [[nodiscard]] constexpr std::uint64_t realtime_ns(std::uint64_t ticks) const noexcept {
        return shifted(origin_.realtime, ticks);
    }
    /// A length in ticks, in ns.
    [[nodiscard]] constexpr double ns(double ticks) const noexcept { return ticks * ns_per_tick_; }
    [[nodiscard]] constexpr double ns_per_tick() const noexcept { return ns_per_tick_; }
    /// False: the snapshots contradict each other or the stated rate; times are guesses.
    [[nodiscard]] constexpr bool consistent() const noexcept { return consistent_; }

private:
    [[nodiscard]] constexpr std::uint64_t shifted(std::uint64_t base,
                                                  std::uint64_t ticks) const noexcept {
        // Scales the difference, not the value: a double holds days of it to the nanosecond. It is
        // limited before it becomes an integer, because ticks may come from a damaged file.
        const bool back = ticks < origin_.ticks;
        const double length =
            static_cast<double>(back ? origin_.ticks - ticks : ticks - origin_.ticks) *
            ns_per_tick_;
        const auto ns = static_cast<std::uint64_t>(length < 9.2e18 ? length + 0.5 : 9.2e18);
        return back ? (ns < base ? base - ns : 0) : base + ns;
    }

    clock_snapshot origin_{};
    double ns_per_tick_ = 0;
    bool consistent_ = false;
};

}  // namespace trace_ring::inline v1
