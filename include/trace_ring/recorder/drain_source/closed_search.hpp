// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Finds closed sub-buffers, in the order of their positions.
///
/// A writer fills its sub-buffer for as long as it takes, while others pass it. So a sub-buffer
/// that is not closed yet is remembered by its slot and looked at again. Before a sub-buffer is
/// handed over, an earlier one of its lane that was closed since comes first, so that the order
/// within a lane is kept. Each ring of the recorder has its own positions, and so its own search.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include <trace_ring/bounds.hpp>
#include <trace_ring/format/sub_buffer.hpp>
#include <trace_ring/list_of.hpp>
#include <trace_ring/recorder/file/rings.hpp>
#include <trace_ring/recorder/file/session_owner.hpp>

namespace trace_ring::inline v1::impl {

/// Slots that are to be looked at again, in their order, and the least position wanted from each.
/// About as many as there are writers. Finding one takes logarithmic time, adding one moves those
/// behind it.
class awaited_slots {
public:
    using place = sub_buffer_place;

    [[nodiscard]] std::size_t size() const noexcept { return places_.size(); }
    /// A position of 0: it is awaited no more.
    [[nodiscard]] const place& operator[](std::size_t i) const noexcept { return places_[i]; }
    /// Awaits `pos` there, which is later; none: it is awaited no more.
    void set(std::size_t i, position pos) noexcept {
        places_[i].pos = pos;
        untidy_ = untidy_ || pos == no_position;
    }
    /// The index of the first from `slot` on.
    [[nodiscard]] std::size_t from(std::uint64_t slot) const noexcept {
        std::size_t low = 0;
        for (std::size_t high = places_.size(); low < high;) {
            const std::size_t middle = low + (high - low) / 2;
            places_[middle].slot < slot ? low = middle + 1 : high = middle;
        }
        return low;
    }
    /// Changes nothing if the slot is awaited already, unless `anew`.
    void add(place what, bool anew = false) {
        const std::size_t at = from(what.slot);
        if (at == places_.size() || places_[at].slot != what.slot) {
            places_.insert(at, what);
        } else if (anew || places_[at].pos == no_position) {
            places_[at] = what;
        }
    }
    /// Forgets those that are awaited no more, if there are any: linear then. Indices change.
    void tidy() noexcept {
        if (!std::exchange(untidy_, false)) return;
        std::size_t kept = 0;
        for (const place& each : places_) {
            if (each.pos != no_position) places_[kept++] = each;
        }
        places_.shorten(kept);
    }
    /// Adds places that are in the order of their slots, in one pass: linear.
    void merge(const list_of<place>& more) {
        list_of<place> all;
        std::size_t i = 0;
        for (const place& each : more) {
            for (; i < size() && places_[i].slot < each.slot; ++i) all.push_back(places_[i]);
            const bool known = i < size() && places_[i].slot == each.slot;
            if (!known || places_[i].pos == no_position) all.push_back(each);
            if (known && places_[i].pos == no_position) ++i;
        }
        for (; i < size(); ++i) all.push_back(places_[i]);
        places_ = static_cast<list_of<place>&&>(all);
    }

private:
    list_of<place> places_{};
    bool untidy_ = false;
};

/// The search in one ring.
class ring_search {
public:
    using place = sub_buffer_place;

    void begin(const trace_bytes& trace, const ring_span& of) noexcept {
        trace_ = trace;
        of_ = of;
        end_ = of.end_now();
        next_ = of.first + 1;
    }

    [[nodiscard]] const awaited_slots& awaited() const noexcept { return awaited_; }
    void look_again(place what) { awaited_.add(what, true); }
    void await(place what) {
        awaited_.add(what, true);
        pass_ = least(pass_, what.slot);
    }
    /// The next closed sub-buffer: those passed before come first. False at the end of a pass.
    [[nodiscard]] bool find(place& out) {
        // No more than a state can hold: others may have stored anything there.
        constexpr position most = ~position{0} >> 3;
        const position newest = least(of_.cursor->load(relaxed), most);  // relaxed: a bound
        if (newest >= of_.lap && next_ <= newest - of_.lap) {            // a lap behind, or more
            next_ = newest - of_.lap + 1;
            look_everywhere();
        }
        // The ring may have grown by slots that were claimed in a round already passed.
        for (const std::uint64_t end = of_.end_now(); end_ < end; ++end_) {
            if (end_ < of_.slot_at(next_) || next_ > of_.lap) awaited_.add({end_, 1});
        }
        for (std::size_t i = awaited_.from(pass_); i < awaited_.size(); ++i) {
            const place wanted = awaited_[i];
            if (wanted.pos == no_position) continue;
            const auto now = look(wanted.slot);
            pass_ = wanted.slot + 1;
            if (now.pos < wanted.pos) continue;
            const bool closed = now.state == number(sub_buffer_state::closed);
            if (now.pos >= next_) {  // it will be found by its position
                awaited_.set(i, no_position);
            } else if (closed || now.state == number(sub_buffer_state::free)) {
                // Newer positions drawn for this slot may still be claimed.
                awaited_.set(i, now.pos + of_.lap >= next_ ? no_position : now.pos + 1);
                if (closed) {
                    out = {wanted.slot, now.pos};
                    return true;
                }
            }
        }
        awaited_.tidy();
        for (; next_ <= newest; ++next_) {
            const std::uint64_t slot = of_.slot_at(next_);
            if (slot < of_.first || slot >= end_) {  // drawn, but no sub-buffer is there
                const position next = of_.next_round(next_);
                if (newest + 1 < next) break;  // the ring may grow
                next_ = next - 1;              // the cursor has moved to the next round
                continue;
            }
            const auto now = look(slot);
            if (now.pos > next_) continue;  // overwritten; the newer one comes in its turn
            if (now.pos == next_ && now.state == number(sub_buffer_state::free)) continue;
            if (now.pos == next_ && now.state == number(sub_buffer_state::closed)) {
                out = {slot, next_++};
                return true;
            }
            awaited_.add({slot, next_});  // not claimed yet, or not closed
        }
        pass_ = 0;
        return false;
    }

    [[nodiscard]] bool has(std::uint64_t slot) const noexcept { return of_.has(slot); }
    /// Whether there is nothing more to be found at this moment but what `had(place)`.
    template <class Had>
    [[nodiscard]] bool settled(Had&& had) const noexcept {
        if (of_.cursor->load(relaxed) >= next_) return false;  // relaxed: ask again later
        for (std::size_t i = 0; i < awaited_.size(); ++i) {
            const place wanted = awaited_[i];
            const auto now = look(wanted.slot);
            if (wanted.pos != no_position && now.pos >= wanted.pos &&
                now.state == number(sub_buffer_state::closed) &&
                !had(place{wanted.slot, now.pos})) {
                return false;
            }
        }
        return true;
    }
    [[nodiscard]] stamped look(std::uint64_t slot) const noexcept {
        // A thread that sees a sub-buffer closed also sees what its lane did before.
        // order: drain.look:A pairs with writer.end:A, reclaim.close:A, writer.begin:A,
        // session.return:A, drain.keep:A
        return stamped::from(trace_.sub_buffer(slot).state.load(acquire));
    }
    [[nodiscard]] static constexpr unsigned number(sub_buffer_state state) noexcept {
        return static_cast<unsigned>(state);
    }

private:
    /// Looks at every slot for sub-buffers before the next position.
    void look_everywhere() {
        list_of<place> found;
        for (std::uint64_t slot = of_.first; slot < end_; ++slot) {
            const auto now = look(slot);
            if (now.pos == no_position || now.state == number(sub_buffer_state::free)) continue;
            if (now.pos < next_) found.push_back({slot, now.pos});
        }
        awaited_.merge(found);
        pass_ = 0;
    }

    trace_bytes trace_{};
    ring_span of_{};
    awaited_slots awaited_{};
    std::uint64_t end_ = 0;        ///< of the ring, as known so far
    position next_ = no_position;  ///< the first that was not looked at
    std::uint64_t pass_ = 0;       ///< the first slot awaited that is still to be looked at
};

class closed_search {
public:
    using place = sub_buffer_place;

    explicit closed_search(const trace_bytes& trace) : trace_(trace) {
        // In the order of their slots: those of the first ring come last.
        const rings all(trace.ring(), trace.plan(), *trace.present);
        for (const ring_span* each = all.begin() + 1; each != all.end(); ++each)
            all_[count_++].begin(trace, *each);
        all_[count_++].begin(trace, *all.begin());
    }

    /// Calls `visit` with slots to be looked at again and the least position wanted from each, from
    /// slot `from` on, until it returns true.
    template <class Visit>
    void for_each_awaited(std::uint64_t from, Visit&& visit) const {
        for (std::size_t ring = 0; ring < count_; ++ring) {
            const auto& awaited = all_[ring].awaited();
            for (std::size_t i = awaited.from(from); i < awaited.size(); ++i) {
                if (awaited[i].pos != no_position && visit(awaited[i])) return;
            }
        }
    }
    /// Looks at `what` again in a later pass.
    void look_again(place what) { ring_with(what.slot).look_again(what); }
    /// Looks at `what` again in this pass.
    void await(place what) { ring_with(what.slot).await(what); }
    /// The next closed sub-buffer of any ring. False at the end of a pass over all.
    [[nodiscard]] bool find(place& out) {
        for (; turn_ < count_; ++turn_) {
            if (all_[turn_].find(out)) return true;
        }
        turn_ = 0;
        return false;
    }

    /// A closed sub-buffer of the lane between two positions: preferably the one at `previous`;
    /// anywhere in its ring if there is a `gap` to explain.
    [[nodiscard]] std::optional<place> closed_of(std::uint32_t lane, position after,
                                                 position before, position previous,
                                                 bool gap) const {
        const std::uint64_t home = slot_of(previous, trace_.plan().sub_buffer_limit);
        std::optional<place> oldest;
        const std::size_t number = ring_of(home);
        if (number == count_) return oldest;  // a damaged sub-buffer named it
        const ring_search& ring = all_[number];
        const auto is_it = [&](std::uint64_t slot, stamped now) {
            return now.state == ring_search::number(sub_buffer_state::closed) && now.pos > after &&
                   now.pos < before &&
                   // relaxed: after the state; a hint, checked again when it is held
                   trace_.sub_buffer(slot).lane.load(relaxed) == lane;
        };
        if (const auto now = ring.look(home); now.pos == previous && is_it(home, now)) {
            return place{home, previous};
        }
        if (!gap) return oldest;
        for (std::size_t i = 0; i < ring.awaited().size(); ++i) {
            const place each = ring.awaited()[i];
            const auto now = ring.look(each.slot);
            if (each.pos != no_position && is_it(each.slot, now) &&
                (!oldest || now.pos < oldest->pos)) {
                oldest = place{each.slot, now.pos};
            }
        }
        return oldest;
    }

    /// Whether there is nothing more to be found at this moment but what `had(place)`.
    template <class Had>
    [[nodiscard]] bool settled(Had&& had) const noexcept {
        for (std::size_t i = 0; i < count_; ++i) {
            if (!all_[i].settled(had)) return false;
        }
        return true;
    }

private:
    /// Which of `all_` has the slot; `count_` if none has.
    [[nodiscard]] std::size_t ring_of(std::uint64_t slot) const noexcept {
        std::size_t i = 0;
        while (i < count_ && !all_[i].has(slot)) ++i;
        return i;
    }
    /// The same for a slot that was found. If its ring is gone, because another process wrote to
    /// the file: the first ring, which is the last here.
    [[nodiscard]] ring_search& ring_with(std::uint64_t slot) noexcept {
        return all_[least(ring_of(slot), count_ - 1)];
    }

    trace_bytes trace_{};
    ring_search all_[layout::max_rings];
    std::size_t count_ = 0;
    std::size_t turn_ = 0;
};

}  // namespace trace_ring::inline v1::impl
