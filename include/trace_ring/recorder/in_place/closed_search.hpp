// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Finds closed sub-buffers, in the order of their positions.
///
/// A writer fills its sub-buffer for as long as it takes, while others pass it. So a sub-buffer
/// that is not closed yet is remembered by its slot and looked at again. Before a sub-buffer is
/// handed over, an earlier one of its lane that was closed meanwhile comes first, so that the order
/// within a lane is kept. Each ring of the recorder has its own positions, and so its own search.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include <trace_ring/recorder/file/rings.hpp>
#include <trace_ring/recorder/file/session_owner.hpp>

namespace trace_ring::inline v1::impl {

/// The search in one ring.
class ring_search {
public:
    using place = sub_buffer_place;

    ring_search(const trace_bytes& trace, const share& of) noexcept
        : trace_(trace), of_(of), end_(of.end_now()), next_(of.first + 1) {}

    [[nodiscard]] const std::map<std::uint64_t, position>& awaited() const noexcept {
        return awaited_;
    }
    void look_again(place what) { awaited_.try_emplace(what.slot, what.pos); }
    void await(place what) {
        awaited_[what.slot] = what.pos;
        pass_ = (std::min)(pass_, what.slot);
    }
    /// The next closed sub-buffer: those passed before come first. False at the end of a pass.
    [[nodiscard]] bool find(place& out) {
        // No more than a state can hold: others may have stored anything there.
        constexpr position most = ~position{0} >> 3;
        const position newest = (std::min)(of_.cursor->load(relaxed), most);  // relaxed: a bound
        if (newest >= of_.lap && next_ <= newest - of_.lap) {  // a lap behind, or more
            next_ = newest - of_.lap + 1;
            look_everywhere();
        }
        // The ring may have grown by slots that were claimed in a round already passed.
        for (const std::uint64_t end = of_.end_now(); end_ < end; ++end_) {
            if (end_ < of_.slot_at(next_) || next_ > of_.lap) awaited_.try_emplace(end_, 1);
        }
        for (auto it = awaited_.lower_bound(pass_); it != awaited_.end();) {
            const auto now = look(it->first);
            pass_ = it->first + 1;
            const place here{it->first, now.pos};
            const bool come = now.pos >= it->second;
            const bool closed = now.state == number(sub_buffer_state::closed);
            if (come && now.pos >= next_) {  // it will be found by its position
                it = awaited_.erase(it);
                continue;
            }
            if (come && (closed || now.state == number(sub_buffer_state::free))) {
                // Newer positions drawn for this slot may still be claimed.
                if (now.pos + of_.lap >= next_) {
                    it = awaited_.erase(it);
                } else {
                    it->second = now.pos + 1;
                    ++it;
                }
                if (closed) {
                    out = here;
                    return true;
                }
                continue;
            }
            ++it;
        }
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
            awaited_.try_emplace(slot, next_);  // not claimed yet, or not closed
        }
        pass_ = 0;
        return false;
    }

    [[nodiscard]] bool has(std::uint64_t slot) const noexcept { return of_.has(slot); }
    /// Whether there is nothing more to be found at this moment.
    [[nodiscard]] bool settled() const noexcept {
        if (of_.cursor->load(relaxed) >= next_) return false;  // relaxed: ask again later
        return std::none_of(awaited_.begin(), awaited_.end(), [this](const auto& each) {
            const auto now = look(each.first);
            return now.pos >= each.second && now.state == number(sub_buffer_state::closed);
        });
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
        for (std::uint64_t slot = of_.first; slot < end_; ++slot) {
            const auto now = look(slot);
            if (now.pos == no_position || now.state == number(sub_buffer_state::free)) continue;
            if (now.pos < next_) awaited_.try_emplace(slot, now.pos);
        }
        pass_ = 0;
    }

    trace_bytes trace_;
    share of_;
    std::map<std::uint64_t, position> awaited_;
    std::uint64_t end_;       ///< of the ring, as known so far
    position next_;           ///< the first that was not looked at
    std::uint64_t pass_ = 0;  ///< the first slot awaited that is still to be looked at
};

class closed_search {
public:
    using place = sub_buffer_place;

    explicit closed_search(const trace_bytes& trace) : trace_(trace) {
        for (const share& each : rings(trace.ring(), trace.plan, *trace.present)) {
            all_.emplace_back(trace, each);
        }
        // In the order of their slots: those of the first ring come last.
        std::rotate(all_.begin(), all_.begin() + 1, all_.end());
    }

    /// Calls `visit` with slots to be looked at again and the least position wanted from each, from
    /// slot `from` on, until it returns true.
    template <class Visit>
    void for_each_awaited(std::uint64_t from, Visit&& visit) const {
        for (const ring_search& each : all_) {
            const auto& awaited = each.awaited();
            for (auto it = awaited.lower_bound(from); it != awaited.end(); ++it) {
                if (visit(place{it->first, it->second})) return;
            }
        }
    }
    /// Looks at `what` again in a later pass.
    void look_again(place what) { ring_with(what.slot).look_again(what); }
    /// Looks at `what` again in this pass.
    void await(place what) { ring_with(what.slot).await(what); }
    /// The next closed sub-buffer of any ring. False at the end of a pass over all.
    [[nodiscard]] bool find(place& out) {
        for (; turn_ < all_.size(); ++turn_) {
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
        const std::uint64_t home = slot_of(previous, trace_.plan.sub_buffer_limit);
        std::optional<place> oldest;
        const std::size_t number = ring_of(home);
        if (number == all_.size()) return oldest;  // a damaged sub-buffer named it
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
        for (const auto& each : ring.awaited()) {
            const auto now = ring.look(each.first);
            if (is_it(each.first, now) && (!oldest || now.pos < oldest->pos)) {
                oldest = place{each.first, now.pos};
            }
        }
        return oldest;
    }

    /// Whether there is nothing more to be found at this moment.
    [[nodiscard]] bool settled() const noexcept {
        return std::all_of(all_.begin(), all_.end(),
                           [](const ring_search& each) { return each.settled(); });
    }

private:
    /// Which of `all_` has the slot; their number if none has.
    [[nodiscard]] std::size_t ring_of(std::uint64_t slot) const noexcept {
        const auto found = std::find_if(all_.begin(), all_.end(),
                                        [slot](const ring_search& each) { return each.has(slot); });
        return static_cast<std::size_t>(found - all_.begin());
    }
    /// The same for a slot that was found. If its ring is gone, because another process wrote to
    /// the file: the first ring, which is the last here.
    [[nodiscard]] ring_search& ring_with(std::uint64_t slot) noexcept {
        return all_[(std::min)(ring_of(slot), all_.size() - 1)];
    }

    trace_bytes trace_;
    std::vector<ring_search> all_;
    std::size_t turn_ = 0;
};

}  // namespace trace_ring::inline v1::impl
