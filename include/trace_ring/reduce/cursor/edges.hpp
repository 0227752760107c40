// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What the reader of a lane remembers of its last sub-buffer, to tell what is missing after it.

#include <algorithm>
#include <cstdint>
#include <string_view>

#include <trace_ring/format/layout.hpp>
#include <trace_ring/format/sub_buffer.hpp>
#include <trace_ring/loss.hpp>
#include <trace_ring/position.hpp>
#include <trace_ring/reduce/file/chain.hpp>

namespace trace_ring::inline v1::reduce {

/// Where the records of a sub-buffer begin or end.
struct edge {
    position at = 0;
    std::uint64_t time = 0;
    position self = no_position;      // of the sub-buffer
    position previous = no_position;  // beginnings: of the lane's sub-buffer before
    std::uint64_t offset = 0;         // of the sub-buffer
    bool whole = true;                // ends: the sub-buffer was closed when it was read
};

/// A sub-buffer that was to be read and could not be.
struct hole {
    loss_cause cause;
    bool known;  // its first and last positions are; the last as far as was seen
    position first;
    position end;
    std::uint32_t refused;
    std::string_view what;
    std::uint64_t offset;

    /// Copying it, from `at` in the file, failed with `result`.
    void was_not_copied(copy_result result, std::uint64_t at) noexcept {
        cause = loss_cause::overrun;
        if (result != copy_result::damaged) return;
        cause = loss_cause::damaged;
        what = "a sub-buffer that cannot be read";
        offset = at;
    }
    /// Where the gap that this hole leaves in [from, to] ends: at the latest before `next`.
    [[nodiscard]] position end_before(const hole* next, position from, position to) const noexcept {
        if (next == nullptr) return to;
        if (next->known) return std::clamp(next->first, from, to);
        return known ? std::clamp(end, from, to) : from;
    }
};
[[nodiscard]] inline hole hole_of(const chain_link& link, const layout::plan& plan) noexcept {
    const bool sound = link.fault == link_fault::none;
    return {loss_cause::damaged,
            link.positions_known,
            link.first,
            link.first + link.records,
            link.refused,
            to_string(link.fault),
            sound ? 0 : link.fault_offset(plan)};
}

}  // namespace trace_ring::inline v1::reduce
