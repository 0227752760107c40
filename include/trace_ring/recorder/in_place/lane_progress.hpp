// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// How far a draining session has come in each lane, so that what is missing can be told, once, by
/// cause. What the session answers for is kept in the lane's entry of the file, for the sessions
/// after it, and for readers of the file, who would take what was consumed for overwritten.

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include <trace_ring/recorder/file/session_owner.hpp>
#include <trace_ring/ring/sub_buffers/drained.hpp>

namespace trace_ring::inline v1::impl {

struct lane_progress {
    position last = no_position;  ///< the sub-buffer handed over last
    position expected = 0;        ///< the record that comes next
    bool known = true;            ///< the two about records are
    position open = no_position;  ///< a sub-buffer of which a part was handed over,
    std::uint32_t refused = 0;    ///< and what it had told by then
    std::uint32_t too_long = 0;
    std::uint32_t nested = 0;
    std::uint32_t number = 0;
    layout::lane_entry* entry = nullptr;  ///< in the file; null: others' by now
    position stored = 0;  ///< up to here the session answers for it, and the file knows
};

class lane_progresses {
public:
    /// `first`: no session was there before this one.
    lane_progresses(const trace_bytes& trace, bool first) : trace_(trace), first_(first) {}

    /// Constant time, but for the first time; linear in the table of lanes then.
    [[nodiscard]] lane_progress& of(std::uint32_t number) {
        if (recent_ != nullptr && recent_->number == number) return *recent_;
        auto [it, fresh] = lanes_.try_emplace(number);
        recent_ = &it->second;
        if (fresh) find(*recent_, number);
        return *recent_;
    }

    /// What a header tells of losses.
    struct counts {
        std::uint32_t refused, too_long, nested;
    };
    /// Finds a sub-buffer's place in its lane: what was handed over before is left out of it, what
    /// is missing before it is told with it.
    void place(drained_sub_buffer& what, counts told, loss_cause gap) {
        lane_progress& lane = of(what.lane());
        const position end = what.first() + what.records();
        if (!lane.known) lane.expected = lane.stored = what.first();
        lane.known = true;
        if (what.first() > lane.expected) {
            what.lose(gap, what.first() - lane.expected);
        } else if (what.first() < lane.expected) {
            what.skip(lane.expected - what.first());
        }
        lane.expected = (std::max)(lane.expected, end);
        if (lane.open != what.at()) lane.refused = lane.too_long = lane.nested = 0;
        tell(lane, what, loss_cause::refused, told.refused - lane.refused);
        tell(lane, what, loss_cause::too_long, told.too_long - lane.too_long);
        tell(lane, what, loss_cause::nested, told.nested - lane.nested);
        if (what.copied()) {
            lane.open = what.at();
            lane.refused = told.refused;
            lane.too_long = told.too_long;
            lane.nested = told.nested;
        } else {
            lane.last = what.at();
        }
    }

    /// The session answers for all of the lane up to the end of `what`.
    void consumed(const drained_sub_buffer& what) noexcept {
        const auto it = recent_ != nullptr && recent_->number == what.lane()
                            ? nullptr
                            : find_known(what.lane());
        advance(it != nullptr ? *it : *recent_, what.first() + what.records());
    }

    /// What stands before no sub-buffer. `settled()`: all that could be was handed over.
    template <class Settled>
    [[nodiscard]] loss_counts rest(Settled&& settled) {
        loss_counts out;
        auto& ring = trace_.ring();
        // Those lanes ended before, and what they left is looked for after.
        // order: drain.rest:A pairs with lane.fold:A
        const std::uint64_t undrained = ring.undrained.load(acquire);
        for (std::uint32_t slot = 0; slot < trace_.plan.lane_count; ++slot) {
            layout::lane_entry& entry = trace_.lane(slot);
            // order: drain.lane:A pairs with lane.enter:A, lane.leave:A, lane.dead:A
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
            if (newest == no_position || newest <= lane.last || end <= lane.expected) continue;
            const std::uint64_t home = slot_of(newest, trace_.plan.sub_buffer_limit);
            if (home >= trace_.capacity()) continue;  // what a damaged entry says
            // relaxed: it is there or not
            const auto there = stamped::from(trace_.sub_buffer(home).state.load(relaxed));
            if (there.pos <= newest || !settled()) continue;
            out.add(loss_cause::overwritten, end - lane.expected);
            lane.expected = end;
            advance(lane, end);
        }
        if (static_cast<std::int64_t>(undrained) > 0 && settled()) {
            out.add(loss_cause::overwritten, undrained);
            ring.undrained.fetch_sub(undrained, relaxed);  // relaxed, to the end: counters
        }
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
    [[nodiscard]] lane_progress* find_known(std::uint32_t number) noexcept {
        const auto it = lanes_.find(number);
        return it == lanes_.end() ? nullptr : &it->second;
    }
    /// Its entry may have gone to another.
    [[nodiscard]] static bool in_table(const lane_progress& lane) noexcept {
        // relaxed: the number changes before anything else of an entry
        return lane.entry != nullptr && lane.entry->number.load(relaxed) == lane.number;
    }
    void advance(lane_progress& lane, position end) noexcept {
        if (end <= lane.stored) return;
        const position was = std::exchange(lane.stored, end);
        bool left = true;  // to the totals of lanes that are gone
        if (in_table(lane)) {
            auto& drained = lane.entry->drained;
            // A swap: an entry that goes to another lane at this moment has another value, or,
            // where there was none, another number.
            // order: drain.advance:A pairs with lane.enter:B, here.enter:B
            if (std::uint64_t seen = was; drained.compare_exchange_strong(seen, end, acquire)) {
                if (in_table(lane)) return;
                // Who gave it away has taken this into account, unless it was the next lane's by
                // then: there it still is. relaxed: a number
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
        for (std::uint32_t slot = 0; slot < trace_.plan.lane_count; ++slot) {
            layout::lane_entry& entry = trace_.lane(slot);
            // order: drain.lane:B pairs with lane.enter:A, lane.leave:A, lane.dead:A
            const auto state = static_cast<layout::presence>(entry.state.load(acquire));
            if (state == layout::presence::free || state == layout::presence::preparing) continue;
            if (entry.number.load(relaxed) != number) continue;  // relaxed: after the state
            // order: drain.find:A pairs with lane.enter:B, here.enter:B
            const std::uint64_t drained = entry.drained.load(acquire);
            lane.entry = &entry;
            if (drained == layout::taken_from_sessions || !in_table(lane)) break;  // just now
            lane.expected = lane.stored = drained;
            return;
        }
        lane.entry = nullptr;
        // A lane long gone. What sessions before this one took of it, nobody knows.
        lane.known = first_;
    }

    void tell(lane_progress& lane, drained_sub_buffer& what, loss_cause cause, std::uint32_t more) {
        // Of a lane that is not in the table, the totals tell.
        if (more != 0 && in_table(lane)) what.lose(cause, count(*lane.entry, cause, more));
    }
    /// Up to `most` of what an entry counts and no session was told; told with that.
    [[nodiscard]] static std::uint64_t count(layout::lane_entry& entry, loss_cause cause,
                                             std::uint64_t most) noexcept {
        // relaxed, to the end: counters; a swap, for the entry may go to another lane just now
        const auto tell = [most](const shared_atomic<std::uint64_t>& all, auto& told) {
            using number = typename std::remove_reference_t<decltype(told)>::value_type;
            number before = told.load(relaxed);
            const number fresh = static_cast<number>(all.load(relaxed)) - before;
            const auto more = static_cast<number>(std::min<std::uint64_t>(most, fresh));
            if (more == 0 || before == static_cast<number>(layout::taken_from_sessions)) {
                return std::uint64_t{0};
            }
            const bool mine =
                told.compare_exchange_strong(before, static_cast<number>(before + more), relaxed);
            return mine ? std::uint64_t{more} : std::uint64_t{0};
        };
        switch (cause) {
            case loss_cause::too_long:
                return tell(entry.too_long, entry.told_too_long);
            case loss_cause::nested:
                return tell(entry.nested, entry.told_nested);
            case loss_cause::abandoned:
                return tell(entry.abandoned, entry.told_abandoned);
            default:
                return tell(entry.refused, entry.told_refused);
        }
    }

    trace_bytes trace_;
    bool first_;
    lane_progress* recent_ = nullptr;
    std::unordered_map<std::uint32_t, lane_progress> lanes_;
};

}  // namespace trace_ring::inline v1::impl
