// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A clock for a recorder of past events: a record gets the time of its firing, as reported by the
/// source, and not the time of its recording.
/// @code
///   firing_clock::fired(ns_of_clock_monotonic);
///   event.record(recorder, payload);
/// @endcode

#include <cstdint>

#include <trace_ring/clock_snapshot.hpp>
#include <trace_ring/policies.hpp>
#include <trace_ring/policy/clock/clock.hpp>
#include <trace_ring/policy/clock/monotonic.hpp>
#include <trace_ring/policy/clock/snapshot.hpp>

namespace trace_clauses {

/// For one recording thread.
struct firing_clock {
    using family = trace_ring::family::clock;
    static constexpr std::uint32_t kind = trace_ring::clock::monotonic::kind;

    /// Sets the time of the next records. The firings of one thread are ordered by time, and those
    /// of several only approximately. Times do not go back within a lane, so a lane must have the
    /// firings of only one thread.
    static void fired(std::uint64_t ns) noexcept { last_ = ns; }
    [[nodiscard]] static std::uint64_t now() noexcept {
        return last_ != 0 ? last_ : trace_ring::clock::monotonic::now();
    }
    [[nodiscard]] static bool usable() noexcept { return true; }
    [[nodiscard]] static double ticks_per_second() noexcept { return 1e9; }

private:
    static inline std::uint64_t last_ = 0;
};
static_assert(trace_ring::clock::policy<firing_clock>);

struct firing_trace : trace_ring::policies<firing_clock> {};

}  // namespace trace_clauses

/// In the trace's clock readings it is the monotonic clock, however late the records are.
template <>
[[nodiscard]] inline trace_ring::clock_snapshot
trace_ring::take_snapshot<trace_clauses::firing_clock>() noexcept {
    return take_snapshot<clock::monotonic>();
}
