// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// How far a draining session has come in each lane, so that it reports each loss once, by cause.
/// The lane's entry in the file keeps up to where sessions answer for the lane: for later sessions,
/// and for readers of the file, who would otherwise take consumed records for overwritten ones.

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <trace_ring/bounds.hpp>
#include <trace_ring/list_of.hpp>
#include <trace_ring/recorder/file/session_owner.hpp>
#include <trace_ring/ring/sub_buffers/drained.hpp>

namespace trace_ring::inline v1::impl {

struct lane_progress {
    position last = no_position;  ///< the sub-buffer handed over last
    position expected = 0;        ///< the number of the next record
    bool known = true;            ///< whether `expected` and `stored` are
    position open = no_position;  ///< the sub-buffer of which a part was handed over last,
    std::uint32_t refused = 0;    ///< and the losses that it had reported by then
    std::uint32_t too_long = 0;
    std::uint32_t nested = 0;
    std::uint32_t number = 0;
    layout::lane_entry* entry = nullptr;  ///< in the file; null: another lane's by now
    position stored = 0;  ///< the session answers for records up to here, as the file says
};

class lane_progresses {
public:
    /// `first`: no session was there before this one.
    lane_progresses(const trace_bytes& trace, bool first) : trace_(trace), first_(first) {}

    /// Valid until the next call. Constant time; linear in the table of lanes when a lane is met
    /// first.
    [[nodiscard]] lane_progress& of(std::uint32_t number) {
        if (recent_ < lanes_.size() && lanes_[recent_].number == number) return lanes_[recent_];
        if (2 * lanes_.size() >= places_.size()) make_places();
        std::uint32_t& place = place_of(number);
        recent_ = place - std::size_t{1};
        if (place != 0) return lanes_[recent_];
        lanes_.push_back({});
        place = static_cast<std::uint32_t>(lanes_.size());
        recent_ = place - std::size_t{1};
        find(lanes_[recent_], number);
        return lanes_[recent_];
    }

    /// The same without meeting it; null for a lane that was not met yet.
    [[nodiscard]] const lane_progress* find_met(std::uint32_t number) noexcept {
        const std::uint32_t place = places_.empty() ? 0 : place_of(number);
        return place == 0 ? nullptr : &lanes_[place - std::size_t{1}];
    }

    /// The losses that a header reports.
    struct counts {
        std::uint32_t refused, too_long, nested;
    };
    /// Finds a sub-buffer's place in its lane: skips records that were handed over before, and adds
    /// the loss of records that are missing before it.
    void place(drained_sub_buffer& what, counts reported, loss_cause gap) {
        lane_progress& lane = of(what.lane());
        const position end = what.first() + what.records();
        if (!lane.known) lane.expected = lane.stored = what.first();
        lane.known = true;
        if (what.first() > lane.expected) {
            what.lose(gap, what.first() - lane.expected);
        } else if (what.first() < lane.expected) {
            what.skip(lane.expected - what.first());
        }
        lane.expected = greatest(lane.expected, end);
        if (lane.open != what.at()) lane.refused = lane.too_long = lane.nested = 0;
        report(lane, what, loss_cause::refused, reported.refused - lane.refused);
        report(lane, what, loss_cause::too_long, reported.too_long - lane.too_long);
        report(lane, what, loss_cause::nested, reported.nested - lane.nested);
        lane.open = what.at();
        lane.refused = reported.refused;
        lane.too_long = reported.too_long;
        lane.nested = reported.nested;
        if (!what.copied()) lane.last = what.at();
    }

    /// From here on the session answers for the lane up to the end of `what`, a part of the
    /// sub-buffer whose records begin at `begin`. Returns how many records are consumed by that:
    /// also those before `what` that the session had and kept.
    [[nodiscard]] std::uint64_t consumed(const drained_sub_buffer& what, position begin) noexcept {
        const std::uint32_t place = place_of(what.lane());  // not 0: it was handed over
        lane_progress& lane = lanes_[place - std::size_t{1}];
        const position from = greatest(begin, least(lane.stored, what.first()));
        advance(lane, what.first() + what.records());
        return what.first() - from + what.records();
    }

    /// Losses that no sub-buffer reports. `settled()`: everything that could be was handed over.
    template <class Settled>
    [[nodiscard]] loss_counts rest(Settled&& settled) {
        loss_counts out;
        auto& ring = trace_.ring();
        // Those lanes ended before; `settled` looks for their last sub-buffers after this.
        // order: drain.rest:A pairs with lane.fold:A
        const std::uint64_t undrained = ring.undrained.load(acquire);
        for (std::uint32_t slot = 0; slot < trace_.plan().lane_count; ++slot) {
            layout::lane_entry& entry = trace_.lane(slot);
            // order: drain.lane:A pairs with lane.enter:A, lane.release:A, lane.dead:A
            const auto state = static_cast<layout::presence>(entry.state.load(acquire));
            if (state != layout::presence::live && state != layout::presence::departed) continue;
            lane_progress& lane = of(entry.number.load(relaxed));  // relaxed: after the state
            if (lane.entry != &entry || !in_table(lane)) continue;
            for (const auto cause : {loss_cause::refused, loss_cause::too_long, loss_cause::nested,
                                     loss_cause::abandoned}) {
                out.add(cause, count(entry, cause, ~std::uint64_t{0}));
            }
            if (state != layout::presence::departed || !lane.known) continue;
            const position newest = entry.newest.load(relaxed);     // relaxed, both: of a lane that
            const std::uint64_t end = entry.written.load(relaxed);  // has ended, after its state
            // One that was handed over last, and kept, may have been continued before it was lost.
            if (newest == no_position || newest < lane.last || end <= lane.expected) continue;
            const std::uint64_t home = slot_of(newest, trace_.plan().sub_buffer_limit);
            if (home >= trace_.capacity()) continue;  // the entry is damaged
            // relaxed: it is there or not
            const auto there = stamped::from(trace_.sub_buffer(home).state.load(relaxed));
            if (there.pos <= newest || !settled()) continue;
            out.add(loss_cause::overwritten, end - lane.expected);
            // What was kept is not answered for: the next session gets it, and what is lost behind.
            const bool kept = lane.stored < lane.expected;
            lane.expected = end;
            if (!kept) advance(lane, end);
        }
        // Of these, this session handed over and kept some, or reported them.
        const std::uint64_t kept = kept_of_folded();
        const std::uint64_t fresh = undrained - kept - reported_undrained_;
        if (static_cast<std::int64_t>(fresh) > 0 && settled()) {
            out.add(loss_cause::overwritten, fresh);
            reported_undrained_ += fresh;
            if (kept == 0) {
                reported_undrained_ = 0;
                ring.undrained.fetch_sub(undrained, relaxed);  // relaxed: a counter
            }
        }
        // relaxed, to the end: counters
        out.add(loss_cause::refused, ring.untold_refused.exchange(0, relaxed));
        out.add(loss_cause::too_long, ring.untold_too_long.exchange(0, relaxed));
        out.add(loss_cause::nested, ring.untold_nested.exchange(0, relaxed));
        out.add(loss_cause::abandoned, ring.untold_abandoned.exchange(0, relaxed));
        const std::uint64_t homeless = ring.refused_without_lane.load(relaxed);
        out.add(loss_cause::refused, homeless - ring.told_without_lane.load(relaxed));
        ring.told_without_lane.store(homeless, relaxed);
        return out;
    }

private:
    /// The place of a lane's index + 1; 0 there: the lane was not met yet.
    [[nodiscard]] std::uint32_t& place_of(std::uint32_t number) noexcept {
        const std::size_t last = places_.size() - 1;
        // Numbers ascend as lanes come: neighbours do not collide.
        for (std::size_t i = number & last;; i = (i + 1) & last) {
            const std::uint32_t place = places_[i];
            if (place == 0 || lanes_[place - std::size_t{1}].number == number) return places_[i];
        }
    }
    void make_places() {
        places_ = list_of<std::uint32_t>(greatest<std::size_t>(64, 2 * places_.size()));
        for (std::size_t i = 0; i < lanes_.size(); ++i)
            place_of(lanes_[i].number) = static_cast<std::uint32_t>(i + 1);
    }
    /// Whether its entry is still this lane's.
    [[nodiscard]] static bool in_table(const lane_progress& lane) noexcept {
        // relaxed: the number changes before anything else of an entry
        return lane.entry != nullptr && lane.entry->number.load(relaxed) == lane.number;
    }
    /// Records of folded lanes for which the session does not answer, though it handed them over or
    /// reported their loss. Linear in the lanes met. If one is being folded, the sum may be too
    /// large: the rest is reported later.
    [[nodiscard]] std::uint64_t kept_of_folded() const noexcept {
        std::uint64_t sum = 0;
        for (const lane_progress& lane : lanes_) {
            // relaxed: after `undrained`, which is added to after this
            if (!in_table(lane) ||
                lane.entry->drained.load(relaxed) == layout::taken_from_sessions) {
                sum += lane.expected - lane.stored;
            }
        }
        return sum;
    }
    void advance(lane_progress& lane, position end) noexcept {
        if (end <= lane.stored) return;
        const position was = std::exchange(lane.stored, end);
        bool left = true;  // counted in the totals of lanes that are gone
        if (in_table(lane)) {
            auto& drained = lane.entry->drained;
            // A swap: an entry that goes to another lane at this moment has another value or, where
            // there was none, another number.
            // order: drain.advance:A pairs with lane.enter:B
            if (std::uint64_t seen = was; drained.compare_exchange_strong(seen, end, acquire)) {
                if (in_table(lane)) return;
                // If the entry was folded after the swap, that took `end` into account. If it was
                // the next lane's by then, `end` is still there and must go. relaxed: a number
                seen = end;
                left = drained.compare_exchange_strong(seen, 0, relaxed);
            }
        }
        lane.entry = nullptr;
        // relaxed: a number
        if (left) trace_.ring().undrained.fetch_sub(end - was, relaxed);
    }
    void find(lane_progress& lane, std::uint32_t number) noexcept {
        lane.number = number;
        for (std::uint32_t slot = 0; slot < trace_.plan().lane_count; ++slot) {
            layout::lane_entry& entry = trace_.lane(slot);
            // order: drain.lane:B pairs with lane.enter:A, lane.release:A, lane.dead:A
            const auto state = static_cast<layout::presence>(entry.state.load(acquire));
            if (state == layout::presence::free || state == layout::presence::preparing) continue;
            if (entry.number.load(relaxed) != number) continue;  // relaxed: after the state
            // order: drain.find:A pairs with lane.enter:B
            const std::uint64_t drained = entry.drained.load(acquire);
            lane.entry = &entry;
            if (drained == layout::taken_from_sessions || !in_table(lane)) break;  // just now
            lane.expected = lane.stored = drained;
            return;
        }
        lane.entry = nullptr;
        // The lane is long gone. How much of it earlier sessions took is not known.
        lane.known = first_;
    }

    void report(lane_progress& lane, drained_sub_buffer& what, loss_cause cause,
                std::uint32_t more) {
        // The totals count for a lane that is not in the table.
        if (more != 0 && in_table(lane)) what.lose(cause, count(*lane.entry, cause, more));
    }
    /// Up to `most` losses that an entry counts and no session has reported. They then count as
    /// reported.
    [[nodiscard]] static std::uint64_t count(layout::lane_entry& entry, loss_cause cause,
                                             std::uint64_t most) noexcept {
        // relaxed, to the end: counters; a swap, for the entry may go to another lane just now
        const auto report = [most](const shared_atomic<std::uint64_t>& all, auto& told) {
            using number = typename std::remove_reference_t<decltype(told)>::value_type;
            number before = told.load(relaxed);
            const number fresh = static_cast<number>(all.load(relaxed)) - before;
            const auto more = static_cast<number>(least<std::uint64_t>(most, fresh));
            if (more == 0 || before == static_cast<number>(layout::taken_from_sessions)) {
                return std::uint64_t{0};
            }
            const bool mine =
                told.compare_exchange_strong(before, static_cast<number>(before + more), relaxed);
            return mine ? std::uint64_t{more} : std::uint64_t{0};
        };
        switch (cause) {
            case loss_cause::too_long:
                return report(entry.too_long, entry.told_too_long);
            case loss_cause::nested:
                return report(entry.nested, entry.told_nested);
            case loss_cause::abandoned:
                return report(entry.abandoned, entry.told_abandoned);
            default:
                return report(entry.refused, entry.told_refused);
        }
    }

    trace_bytes trace_;
    bool first_;
    std::size_t recent_ = 0;
    std::uint64_t reported_undrained_ = 0;  ///< of folded lanes, while some are kept
    list_of<lane_progress> lanes_{};        ///< in the order in which they were met
    list_of<std::uint32_t> places_{};  ///< by number: a power of two, at least half of it empty
};

}  // namespace trace_ring::inline v1::impl
