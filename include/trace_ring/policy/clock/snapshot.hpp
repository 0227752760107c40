// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Snapshots of a trace clock with CLOCK_MONOTONIC and CLOCK_REALTIME: two of them convert the
/// clock's ticks to times (clock_snapshot.hpp).
/// @code
/// const auto now = trace_ring::take_snapshot<trace_ring::clock::tsc>();
/// @endcode

#include <time.h>

#include <cstdint>

#include <trace_ring/clock_snapshot.hpp>
#include <trace_ring/policy/clock/clock.hpp>
#include <trace_ring/policy/clock/system.hpp>

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

}  // namespace trace_ring::inline v1
