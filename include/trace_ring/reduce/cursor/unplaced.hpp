// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Losses that no sub-buffer counts: the tables count them, by lane or for the whole file.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include <trace_ring/reduce/cursor/lane_reader.hpp>

namespace trace_ring::inline v1::reduce {

/// What the reader of a lane knows of it.
struct known_lane {
    /// Whether its sub-buffers hold records that are still to be decoded, in unknown number.
    [[nodiscard]] static bool is_pending(const lane_reader& of) noexcept {
        return of.next_ < of.links_.size() || of.has_grown();
    }
    /// The end of its records that were given out or reported as lost, or will be.
    [[nodiscard]] static position end(const lane_reader& of) noexcept {
        position end = of.edge_ ? of.edge_->at : 0;
        if (of.next_ < of.links_.size()) {
            end = std::max<position>(end, of.links_.back().first + of.links_.back().records);
        }
        return of.lane_->listed ? std::max<position>(end, of.lane_->written) : end;
    }
    /// The number of known records before that end: all, except those that tables::excuse_lane
    /// leaves to the file's totals.
    [[nodiscard]] static std::uint64_t count(const lane_reader& of) noexcept {
        const position last = end(of);
        return of.lane_->listed ? last : last - std::min<position>(last, of.lane_->drained);
    }
    /// The losses that its sub-buffers reported, or will report; read forward.
    [[nodiscard]] static loss_counts lost(const lane_reader& of) noexcept {
        loss_counts all = of.reported_;
        loss_counts expected;
        for (std::size_t i = of.next_; i < of.links_.size(); ++i)
            expected += losses_counted_by(of.links_[i]);
        for (const auto cause : counted_by_writers) {
            const std::uint64_t early = of.early_.counts[static_cast<std::size_t>(cause)];
            if (expected[cause] > early) all.add(cause, expected[cause] - early);
        }
        for (const auto* notes : {&of.first_notes_, &of.last_notes_}) {
            for (const auto& note : *notes) {
                const auto* const loss = std::get_if<loss_item>(&note);
                if (loss != nullptr) all.add(loss->cause, loss->count);
            }
        }
        return all;
    }
    /// When following: reports losses that the lane's entry counts beyond those known, after its
    /// last record. Sub-buffers that count them later do not report them again. True if there are
    /// any.
    [[nodiscard]] static bool report_early(lane_reader& of) {
        const loss_counts known = lost(of);
        const lane_info& lane = *of.lane();
        bool any = false;
        for (const auto cause : counted_by_writers) {
            if (lane.lost[cause] <= known[cause]) continue;
            const std::uint64_t more = lane.lost[cause] - known[cause];
            of.add_unplaced(false, loss_item{cause, more, lane.written, &lane, 0, 0, {}});
            of.early_[cause] += more;
            any = true;
        }
        return any;
    }
};

/// When following: the lanes that left the file's table (tables::is_gone) and write no more. The
/// folded totals count their records; those beyond the known ones were lost before they were seen.
class gone_lanes {
public:
    gone_lanes() = default;
    /// Counts from `ring`, as it was read before the first look for sub-buffers.
    explicit gone_lanes(const ring_info& ring)
        : drained_(ring.folded_written - ring.folded_undrained) {}

    /// The same of the lanes that are still in the table (known_lane::report_early).
    template <class Readers>
    [[nodiscard]] static bool report_others(const tables& in, Readers& readers) {
        bool any = false;
        for (auto& reader : readers) {
            if (reader.lane() == nullptr || !reader.lane()->listed || in.is_gone(*reader.lane()) ||
                known_lane::is_pending(reader)) {
                continue;
            }
            any = known_lane::report_early(reader) || any;
        }
        return any;
    }
    /// Reports them as losses of no lane, through the first of the readers. True if there are any.
    /// `last`: does not wait for records that are not decoded yet.
    template <class Readers>
    [[nodiscard]] bool report(const tables& in, Readers& readers, bool last) {
        loss_counts known = reported_;
        for (const auto& reader : readers) {
            if (reader.lane() == nullptr || !in.is_gone(*reader.lane())) continue;
            if (!last && known_lane::is_pending(reader)) return false;
            known.add(loss_cause::overwritten, known_lane::count(reader));
            const loss_counts lost = known_lane::lost(reader);
            for (const auto cause : counted_by_writers) known.add(cause, lost[cause]);
        }
        // Read before the lanes: a lane that has gone since is known, and not counted in it yet.
        bool any = false;
        const auto report_beyond = [&](loss_cause cause, std::uint64_t all) {
            if (all <= known[cause]) return;
            reported_.add(cause, all - known[cause]);
            readers.front().add_unplaced(
                true, loss_item{cause, all - known[cause], 0, nullptr, 0, 0, {}});
            any = true;
        };
        // A session may have consumed records that are known here, and others that are not. What is
        // lost is at most what no session answers for.
        const auto& ring = in.ring();
        report_beyond(loss_cause::overwritten,
                      (std::min)(ring.folded_written - drained_,
                                 ring.folded_undrained + known[loss_cause::overwritten] -
                                     reported_[loss_cause::overwritten]));
        for (const auto cause : counted_by_writers)
            report_beyond(cause, in.ring().folded_lost[cause]);
        return any;
    }

private:
    std::uint64_t drained_ = 0;  // records of gone lanes that sessions had answered for before
    loss_counts reported_{};
};

}  // namespace trace_ring::inline v1::reduce

namespace trace_ring::inline v1::reduce::unplaced {

/// Adds to a lane's reader the losses counted beyond `reported`. `early`: before its first record,
/// else after its last.
inline void add(lane_reader& reader, const loss_counts& reported, bool early) {
    const lane_info& lane = *reader.lane();
    if (!lane.listed) return;
    for (const auto cause : counted_by_writers) {
        if (lane.lost[cause] <= reported[cause]) continue;
        reader.add_unplaced(early, loss_item{cause,
                                             lane.lost[cause] - reported[cause],
                                             early ? 0 : lane.written,
                                             &lane,
                                             0,
                                             0,
                                             {}});
    }
}

/// Adds the losses of a lane that its sub-buffers do not count. They happened before its first
/// record if sub-buffers are missing there, else after its last.
inline void place(lane_reader& reader, const chain& what) {
    add(reader, losses_counted_by(what), !what.links.empty() && what.links.front().first != 0);
}

/// Adds the losses that belong to no listed lane. `part`: the chains come from the index, which
/// does not count losses. `follow`: gone_lanes reports the losses of lanes that are gone.
/// How far sessions came in each lane that is gone is not known, only in all of them. If they
/// consumed any of these records, those missing before a lane's first are no loss of that lane:
/// what is lost of them is among the losses of no lane.
inline void add_file(lane_reader& file, tables& in, std::vector<chain>& chains,
                     const std::vector<chain_link>& strays, bool part, bool follow) {
    const auto& ring = in.ring();
    const bool drained = ring.folded_undrained != ring.folded_written;
    std::uint64_t kept = 0;
    loss_counts reported;
    for (auto& chain : chains) {
        if (in.note_lane(chain.lane).listed) continue;
        if (part) (void)chain_scan(in).complete(chain.lane, chain.links.back());
        kept += chain.links.back().first + chain.links.back().records;
        if (drained) {
            if (part) (void)chain_scan(in).complete(chain.lane, chain.links.front());
            kept -= chain.links.front().first;
            in.excuse_lane(chain.lane, chain.links.front().first);
        }
        reported += losses_counted_by(chain);
    }
    for (const auto& stray : strays) {
        file.add_unplaced(true, loss_item{loss_cause::damaged, 0, 0, nullptr, 0,
                                          stray.fault_offset(in.plan()), to_string(stray.fault)});
    }
    const auto add_all = [&file](bool before, loss_cause cause, std::uint64_t all,
                                 std::uint64_t less) {
        if (all > less)
            file.add_unplaced(before, loss_item{cause, all - less, 0, nullptr, 0, 0, {}});
    };
    if (!follow) add_all(true, loss_cause::overwritten, ring.folded_undrained, kept);
    for (const auto cause : counted_by_writers) {
        if (!part && !follow) add_all(true, cause, ring.folded_lost[cause], reported[cause]);
    }
}

/// Adds the records lost without a lane beyond the first `reported`, which becomes their number.
inline void add_without_lane(lane_reader& file, tables& in, std::uint64_t& reported) {
    const std::uint64_t all = in.ring().refused_without_lane;
    if (all <= reported) return;
    file.add_unplaced(
        false, loss_item{loss_cause::refused, all - reported, 0, nullptr, 0, 0, in.advice()});
    reported = all;
}

/// Adds the clock jumps after `until`, and sets `until` to the last of them.
inline void add_jumps(lane_reader& file, const timeline& time, std::uint64_t& until) {
    for (const auto& jump : time.jumps()) {
        if (jump.to <= until) continue;
        until = jump.to;
        file.add_unplaced(false,
                          clock_jump{nullptr, 0, jump.from, jump.to, 0, jump.step, jump.anew});
    }
}

}  // namespace trace_ring::inline v1::reduce::unplaced
