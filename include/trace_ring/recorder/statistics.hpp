// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Counters of a recorder's own work, as `recorder.statistics()` returns them.

#include <trace_ring/fwd.hpp>

#if __cplusplus >= 202002L

#include <cstddef>
#include <cstdint>

#include <trace_ring/recorder/file/options.hpp>

#if !defined(TRACE_RING_DISABLE)
#include <trace_ring/recorder/thread/lanes_by_thread.hpp>
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
    /// The most writers at the same time, as counted when a record was lost because lanes or
    /// sub-buffers were too few for them; 0: no record was. Also with records lost in a quota.
    std::uint64_t writers = 0;
    /// The recorder_options that give each of them a lane and a sub-buffer; 0: no change.
    std::uint64_t recommended_size = 0;
    std::uint64_t recommended_lanes = 0;
    std::uint64_t recommended_quotas[quota_list::most]{};
    /// Why nothing is recorded, as recorder_options::on_failure allows: the counts are zero because
    /// there is no trace. Null: there is one. Good as long as the recorder.
    const char* failure = nullptr;
    int failure_error = 0;  ///< the errno value of that; 0: there is a trace
};

#if !defined(TRACE_RING_DISABLE)
namespace impl {

[[nodiscard]] inline recorder_statistics statistics_of(const lanes_by_thread& of) noexcept {
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
    const layout::plan& plan = of.memory().plan();
    const std::uint32_t writers = ring.writers.load(relaxed);
    if (writers != 0) {
        const auto enough = layout::room_for(writers, plan.sub_buffer_bytes, false);
        out.writers = writers;
        out.recommended_size = enough.bytes;
        out.recommended_lanes = enough.lanes;
    }
    for (std::size_t i = 0; i < quota_list::most; ++i) {
        const std::uint32_t more = ring.quotas[i].writers.load(relaxed);
        if (more == 0) continue;
        if (more > out.writers) out.writers = more;
        out.recommended_quotas[i] = layout::room_for(more, plan.sub_buffer_bytes, true).bytes;
    }
    return out;
}

}  // namespace impl
#endif

}  // namespace trace_ring::inline v1
#endif
