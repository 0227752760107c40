// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What was lost that no sub-buffer tells of: the tables count it, by lane or for the whole file.

#include <algorithm>
#include <cstdint>
#include <vector>

#include <trace_ring/loss.hpp>
#include <trace_ring/reduce/file/chain.hpp>
#include <trace_ring/reduce/file/chains.hpp>
#include <trace_ring/reduce/file/lane_reader.hpp>
#include <trace_ring/reduce/filter.hpp>
#include <trace_ring/reduce/tables.hpp>

namespace trace_ring::inline v1::reduce {

/// A lane that the tables list no more (tables::is_gone), so that it writes no more: what the
/// folded totals count beyond what is known of it was lost before anybody saw it.
struct gone_lane {
    /// Whether its sub-buffers hold records that are still to be decoded: how many is not known.
    [[nodiscard]] static bool is_pending(const lane_reader& of) noexcept {
        return of.next_ < of.links_.size() || of.has_grown();
    }
    /// How far its records go that were given out or told as lost, or will be.
    [[nodiscard]] static position known_end(const lane_reader& of) noexcept {
        position end = of.edge_ ? of.edge_->at : 0;
        if (of.next_ < of.links_.size()) {
            end = std::max<position>(end, of.links_.back().first + of.links_.back().records);
        }
        return of.lane_->listed ? std::max<position>(end, of.lane_->written) : end;
    }
};

}  // namespace trace_ring::inline v1::reduce

namespace trace_ring::inline v1::reduce::unplaced {

namespace impl {

inline constexpr loss_cause counted_by_writers[] = {loss_cause::refused, loss_cause::too_long,
                                                    loss_cause::nested, loss_cause::abandoned};

}  // namespace impl

/// Adds to a lane's reader what is counted beyond `told`. `early`: before its first record, else
/// after its last.
inline void add(lane_reader& reader, const loss_counts& told, bool early) {
    const lane_info& lane = *reader.lane();
    if (!lane.listed) return;
    for (const auto cause : impl::counted_by_writers) {
        if (lane.lost[cause] <= told[cause]) continue;
        reader.add_unplaced(
            early,
            {cause, lane.lost[cause] - told[cause], early ? 0 : lane.written, &lane, 0, 0, {}});
    }
}

/// What a lane lost that its sub-buffers do not tell of. It happened before its first record if
/// sub-buffers are missing there, else after its last.
inline void place(lane_reader& reader, const chain& what) {
    add(reader, told_by(what), !what.links.empty() && what.links.front().first != 0);
}

/// What concerns no lane that is still known. `part`: the chains come from the index, which does
/// not tell what was lost. `follow`: what lanes wrote that are gone is counted at each look, by the
/// cursor.
[[nodiscard]] inline lane_reader of_file(tables& in, std::vector<chain>& chains,
                                         const std::vector<chain_link>& strays, direction way,
                                         bool part, bool follow) {
    lane_reader file(in, nullptr, way, follow);
    const auto& ring = in.ring();
    std::uint64_t kept = 0;
    loss_counts told;
    for (auto& chain : chains) {
        if (in.note_lane(chain.lane).listed) continue;
        if (part) (void)chain_scan(in).complete(chain.lane, chain.links.back());
        kept += chain.links.back().first + chain.links.back().records;
        told += told_by(chain);
    }
    for (const auto& stray : strays) {
        file.add_unplaced(true, {loss_cause::damaged, 0, 0, nullptr, 0,
                                 stray.fault_offset(in.plan()), to_string(stray.fault)});
    }
    const auto add_all = [&file](bool before, loss_cause cause, std::uint64_t all,
                                 std::uint64_t less) {
        if (all > less) file.add_unplaced(before, {cause, all - less, 0, nullptr, 0, 0, {}});
    };
    if (!follow) add_all(true, loss_cause::overwritten, ring.folded_written, kept);
    for (const auto cause : impl::counted_by_writers) {
        if (!part) add_all(true, cause, ring.folded_lost[cause], told[cause]);
    }
    add_all(false, loss_cause::refused, ring.refused_without_lane, 0);
    return file;
}

}  // namespace trace_ring::inline v1::reduce::unplaced
