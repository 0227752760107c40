// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Finding closed sub-buffers, in the order of their positions.
///
/// A writer fills its sub-buffer for as long as it takes, and others pass it. So where one is not
/// closed yet it is remembered, by its slot, and looked at again; and before any is handed over, an
/// earlier one of its lane is, if it has been closed meanwhile: the order within a lane is kept.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include <trace_ring/recorder/file/session_owner.hpp>

namespace trace_ring::inline v1::impl {

struct sub_buffer_place {
    std::uint64_t slot = 0;
    position pos = no_position;
};

class closed_search {
public:
    using place = sub_buffer_place;

    /// `extends`: the ring grew, or grows.
    closed_search(const trace_bytes& trace, bool extends) noexcept
        : trace_(trace), extends_(extends) {}

    /// Slots to be looked at again, and the least position that is wanted from there.
    [[nodiscard]] const std::map<std::uint64_t, position>& awaited() const noexcept {
        return awaited_;
    }
    /// It may come again, in a later pass.
    void look_again(place what) { awaited_.try_emplace(what.slot, what.pos); }
    /// It comes again, in this one.
    void await(place what) {
        awaited_[what.slot] = what.pos;
        pass_ = std::min(pass_, what.slot);
    }
    /// The next one that is closed: those passed before come first. False at the end of a pass.
    [[nodiscard]] bool find(place& out) {
        const std::uint64_t capacity = trace_.capacity();
        const position newest = trace_.ring().cursor.load(relaxed);  // relaxed: a bound; later more
        if (newest >= capacity && next_ <= newest - capacity) {      // a lap behind, or more
            next_ = newest - capacity + 1;
            look_everywhere(capacity, next_);
        }
        for (auto it = awaited_.lower_bound(pass_); it != awaited_.end();) {
            const auto now = look(it->first);
            pass_ = it->first + 1;
            const place here{it->first, now.pos};
            const bool come = now.pos >= it->second;
            const bool closed = now.state == number(sub_buffer_state::closed);
            // Beyond `next_` it is found by its position. Positions drawn for this slot that are
            // newer than what is here may still come.
            const bool home = slot_of(now.pos, capacity) == it->first;
            if (come && home && now.pos >= next_) {
                it = awaited_.erase(it);
                continue;
            }
            if (come && (closed || now.state == number(sub_buffer_state::free))) {
                if (!home || now.pos + capacity >= next_) {
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
            const std::uint64_t slot = slot_of(next_, capacity);
            const auto now = look(slot);
            if (now.pos > next_) continue;  // overwritten; the newer one has its turn
            if (now.pos == next_ && now.state == number(sub_buffer_state::free)) continue;
            if (now.pos == next_ && now.state == number(sub_buffer_state::closed)) {
                out = {slot, next_++};
                return true;
            }
            awaited_.try_emplace(slot, next_);  // not claimed yet, or not closed
        }
        if (extends_ && newest > capacity && newest - capacity <= trace_.plan.lane_count &&
            looked_at_ != newest) {
            looked_at_ = newest;
            look_everywhere(capacity, next_);
            return find(out);
        }
        pass_ = 0;
        return false;
    }

    /// A closed sub-buffer of the lane between two positions, at `previous` by preference;
    /// anywhere, if there is a `gap` to be explained.
    [[nodiscard]] std::optional<place> closed_of(std::uint32_t lane, position after,
                                                 position before, position previous,
                                                 bool gap) const {
        const auto is_it = [&](std::uint64_t slot, stamped now) {
            return now.state == number(sub_buffer_state::closed) && now.pos > after &&
                   now.pos < before &&
                   // relaxed: after the state; a hint, looked at again when it is held
                   trace_.sub_buffer(slot).lane.load(relaxed) == lane;
        };
        const std::uint64_t home = slot_of(previous, trace_.capacity());
        if (const auto now = look(home); now.pos == previous && is_it(home, now)) {
            return place{home, previous};
        }
        std::optional<place> oldest;
        if (!gap) return oldest;
        for (const auto& each : awaited_) {
            const auto now = look(each.first);
            if (is_it(each.first, now) && (!oldest || now.pos < oldest->pos)) {
                oldest = place{each.first, now.pos};
            }
        }
        return oldest;
    }

    /// There was nothing more to be found just now.
    [[nodiscard]] bool settled() const noexcept {
        if (trace_.ring().cursor.load(relaxed) >= next_) return false;  // relaxed: ask again later
        return std::none_of(awaited_.begin(), awaited_.end(), [this](const auto& each) {
            const auto now = look(each.first);
            return now.pos >= each.second && now.state == number(sub_buffer_state::closed);
        });
    }

private:
    [[nodiscard]] static constexpr unsigned number(sub_buffer_state state) noexcept {
        return static_cast<unsigned>(state);
    }
    [[nodiscard]] stamped look(std::uint64_t slot) const noexcept {
        // Who sees a sub-buffer closed sees also what its lane did before.
        // order: drain.look:A pairs with close:A, reclaim.close:A, claim:B, session.return:A,
        // drain.keep:A
        return stamped::from(trace_.sub_buffer(slot).state.load(acquire));
    }
    /// Looks at every slot: for what lies behind the first position that will be looked at, or not
    /// where it should, as those claimed while the ring stopped growing may.
    void look_everywhere(std::uint64_t capacity, position first) {
        for (std::uint64_t slot = 0; slot < capacity; ++slot) {
            const auto now = look(slot);
            if (now.pos == no_position || now.state == number(sub_buffer_state::free)) continue;
            if (now.pos >= first && slot_of(now.pos, capacity) == slot) continue;
            awaited_.try_emplace(slot, now.pos);
        }
        pass_ = 0;
    }

    trace_bytes trace_;
    bool extends_;
    std::map<std::uint64_t, position> awaited_;
    position next_ = 1;       ///< looked at next, of those that were not looked at
    std::uint64_t pass_ = 0;  ///< the slots awaited from this one on are still to be looked at
    position looked_at_ = no_position;
};

}  // namespace trace_ring::inline v1::impl
