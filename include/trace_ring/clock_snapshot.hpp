// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Three clocks read at one moment, and the time between two such moments.

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace trace_ring::inline v1 {

/// One moment by three clocks; 32 bytes, as trace files hold it. All three were read while `ticks`
/// was within `uncertainty` of the value given.
///
///      0 u64 ticks          8 u64 monotonic, ns
///     16 u64 realtime, ns  24 u64 uncertainty, ticks
struct alignas(8) clock_snapshot {
    alignas(8) std::uint64_t ticks = 0;
    alignas(8) std::uint64_t monotonic = 0;
    alignas(8) std::uint64_t realtime = 0;
    alignas(8) std::uint64_t uncertainty = 0;

    friend constexpr bool operator==(const clock_snapshot&, const clock_snapshot&) = default;
};
static_assert(sizeof(clock_snapshot) == 32 && alignof(clock_snapshot) == 8);
static_assert(offsetof(clock_snapshot, monotonic) == 8 && offsetof(clock_snapshot, realtime) == 16);
static_assert(offsetof(clock_snapshot, uncertainty) == 24);
static_assert(std::is_trivially_copyable_v<clock_snapshot>);

/// The time between two snapshots, by all clocks together. The clocks may contradict each other:
/// a date is set, a machine sleeps or starts again, a virtual machine moves. CLOCK_MONOTONIC counts
/// if it agrees with the ticks, the date if it alone does.
struct clock_advance {
    double elapsed = 0;     ///< ns that passed, never negative
    std::int64_t step = 0;  ///< ns by which the date jumped in addition
    bool anew = false;      ///< ticks went back: their clock began anew
    bool even = true;       ///< the clocks advanced together
};

/// The advance from `a` to `b`, taken later; `even` if there is no rate. Signal-safe.
[[nodiscard]] constexpr clock_advance advance_of(const clock_snapshot& a, const clock_snapshot& b,
                                                 double ticks_per_second) noexcept {
    clock_advance out;
    if (!(ticks_per_second > 0)) return out;
    constexpr double least_step = 100'000;  // ns: less may be a late reading
    constexpr double drift = 0.01;          // more than any clock is slewed by
    const auto rise = [](std::uint64_t from, std::uint64_t to) {
        return static_cast<double>(static_cast<std::int64_t>(to - from));  // modulo 2^64
    };
    const double ns_per_tick = 1e9 / ticks_per_second;
    const double width = static_cast<double>(a.uncertainty) + static_cast<double>(b.uncertainty);
    const double slack = width * ns_per_tick + least_step;
    const auto agree = [slack](double x, double y) {
        const double most = slack + (y < 0 ? -y : y) * drift;
        return x - y <= most && y - x <= most;
    };
    const double ticks = rise(a.ticks, b.ticks) * ns_per_tick;
    const double monotonic = rise(a.monotonic, b.monotonic);
    const double date = rise(a.realtime, b.realtime);
    out.anew = b.ticks<a.ticks&& static_cast<double>(a.ticks - b.ticks)> width;
    const bool as_monotonic = !out.anew && agree(ticks, monotonic);
    const bool as_date = !out.anew && agree(ticks, date);
    out.elapsed = monotonic > 0 && (as_monotonic || !as_date) ? monotonic : date > 0 ? date : 0;
    const double step = date - out.elapsed;
    // Both were read anywhere in the width of their snapshots, and not in the middle of it.
    if (const double most = slack + width * ns_per_tick; step > most || step < -most) {
        out.step = static_cast<std::int64_t>(step < -9e18 ? -9e18 : step > 9e18 ? 9e18 : step);
    }
    out.even = (as_monotonic || as_date) && out.step == 0;
    return out;
}

}  // namespace trace_ring::inline v1
