// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Counters of a recorder's own work, as `recorder.statistics()` returns them.

#include <cstdint>

#if !defined(TRACE_RING_DISABLE)
#include <trace_ring/recorder/lane/core.hpp>
#endif

namespace trace_ring::inline v1 {

/// A recorder's counters so far; the file has the same and more (see reduce/).
struct recorder_statistics {
    std::uint64_t overwritten = 0;           ///< records
    std::uint64_t refused_without_lane = 0;  ///< records
    std::uint64_t types_without_room = 0;    ///< event types not in the dictionary
    std::uint64_t sub_buffers = 0;           ///< that exist
    std::uint64_t held = 0;                  ///< sub-buffers held by writers
    std::uint64_t claimed = 0;               ///< sub-buffers so far, or about to be
    std::uint64_t reclaimed = 0;             ///< sub-buffers taken from dead processes
    /// Why nothing is recorded, as recorder_options::on_failure allows: the counts are zero because
    /// there is no trace. Null: there is one. Good as long as the recorder.
    const char* failure = nullptr;
    int failure_error = 0;  ///< the errno value of that; 0: there is a trace
};

#if !defined(TRACE_RING_DISABLE)
namespace impl {

[[nodiscard]] inline recorder_statistics statistics_of(const core& of) noexcept {
    recorder_statistics out;
    const layout::ring_state& ring = of.memory().ring();
    const auto [held_now, claimed] = of.in_use();
    out.held = held_now;
    out.claimed = claimed;
    // relaxed, to the end: counters, each by itself
    out.overwritten = of.memory().overwritten_records();
    out.refused_without_lane = ring.refused_without_lane.load(relaxed);
    out.types_without_room = ring.types_without_room.load(relaxed);
    out.sub_buffers = ring.capacity.load(relaxed);
    out.reclaimed = ring.reclaimed.load(relaxed);
    return out;
}

}  // namespace impl
#endif

}  // namespace trace_ring::inline v1
