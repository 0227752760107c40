// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The clock of a recorder that records what happened a moment ago: a record has the time of its
/// firing, as whoever saw it told, and not that of its recording.
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

/// For one thread that records.
struct firing_clock {
    using family = trace_ring::family::clock;
    static constexpr std::uint32_t kind = trace_ring::clock::monotonic::kind;

    /// The next records fired then. The firings of a thread come in the order of their times, those
    /// of several only nearly so: within a lane, in which times do not go back, they must be those
    /// of one thread.
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

/// Beside the system's clocks it is the monotonic one, however late the records are.
template <>
[[nodiscard]] inline trace_ring::clock_snapshot
trace_ring::take_snapshot<trace_clauses::firing_clock>() noexcept {
    return take_snapshot<clock::monotonic>();
}
