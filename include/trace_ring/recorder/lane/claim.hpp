// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Claiming sub-buffers: the trace-table rule one level up. A claimer draws the next position and
/// swaps the state of the sub-buffer there from (free or closed, older) to (its position, reset);
/// whoever finds it held, or newer than what it drew, draws again. Nobody waits for anybody.
/// @code
///   cursor --fetch_add--> position p --> slot (p - 1) mod capacity
///   state: (older, free|closed) --swap--> (p, reset) --fill header--> (p, active) --close--> (p,
///   closed)
/// @endcode

#include <time.h>

#include <cstddef>
#include <cstdint>

#include <trace_ring/recorder/lane/core.hpp>

namespace trace_ring::inline v1::impl {

/// Room for `bytes` more, and `time` for them, whose high half the lane has announced.
inline bool core::make_room(lane_state& lane, std::uint32_t bytes, std::uint32_t& time) noexcept {
    // relaxed, to the end: the lane and its sub-buffer are this thread's own
    sub_buffer_header* sub = lane.sub.load(relaxed);
    // Who was refused one finds perhaps that others have handed on since.
    if (sub == &nowhere && lane.refused.load(relaxed) != 0 &&
        lane.entry.load(relaxed)->ring.load(relaxed) != 0 &&
        go_on(lane, lane.entry.load(relaxed)->ring.load(relaxed), bytes)) {
        sub = lane.sub.load(relaxed);
    }
    const std::uint32_t end = commit_word::offset(sub->commit.load(relaxed));
    if (sub == &nowhere || end + bytes + time_record_bytes > memory_.plan().sub_buffer_bytes) {
        // One goes and one comes: what is held stays as it is.
        const bool holds = sub != &nowhere;
        std::uint64_t now = memory_.now();
        const share& of = shares_[lane.entry.load(relaxed)->ring.load(relaxed)];
        close_lane(lane, of, now);
        if (mark_of(lane).held_as.load(relaxed) == tenure::taken_over) [[unlikely]] {
            const std::uint32_t ring = lane.entry.load(relaxed)->ring.load(relaxed);
            depart(lane, now);  // hand_on.hpp says why
            if (!make_lane(lane, ring)) {
                if (holds) of.held->fetch_sub(1, relaxed);
                return false;
            }
        }
        sub = claim(lane, of, now, holds);
        if (sub == nullptr) {
            layout::lane_entry& entry = *lane.entry.load(relaxed);
            entry.refused.fetch_add(1, relaxed);
            lane.refused.fetch_add(1, relaxed);  // told in the next sub-buffer
            return false;
        }
        lane.sub.store(sub, relaxed);
        if (mark_of(lane).held_as.load(relaxed) == tenure::lent &&
            layout::is_handed_on(*lane.entry.load(relaxed))) {
            write_owner(lane, now);
        }
        time = static_cast<std::uint32_t>(now);
        return true;
    }
    const std::uint64_t t = memory_.now();
    time = static_cast<std::uint32_t>(t);
    const auto high = static_cast<std::uint32_t>(t >> 32);
    if (high != lane.high.load(relaxed)) {
        const std::uint32_t word = sub->commit.load(relaxed);
        const std::uint32_t at = commit_word::offset(word);
        const std::uint64_t head =
            static_cast<std::uint32_t>(t) |
            std::uint64_t{record_word::pack(record_word::time_id, time_record_bytes)} << 32;
        word_at<std::uint64_t>(sub, at).store(head, relaxed);
        word_at<std::uint64_t>(sub, at + 8).store(t, relaxed);
        // order: time.commit:A pairs with read:B, file.read:B, reclaim.find:B
        sub->commit.store(word + time_record_bytes, release);
        lane.high.store(high, relaxed);
    }
    return true;
}

/// Leaves it counted as held.
inline void core::close_lane(lane_state& lane, const share& of, std::uint64_t now) noexcept {
    // relaxed, to the end: the lane and its sub-buffer are this thread's own
    sub_buffer_header* const sub = lane.sub.load(relaxed);
    if (sub == &nowhere) return;
    const std::uint32_t records = commit_word::records(sub->commit.load(relaxed));
    layout::lane_entry& entry = *lane.entry.load(relaxed);
    // Who reads this count finds the records, too.
    // order: lane.written:A pairs with table.read:B, snapshot.copy:B
    entry.written.store(sub->first_position.load(relaxed) + records, release);
    sub->end_time.store(now, relaxed);
    const position at = lane.where.load(relaxed);
    layout::index_entry& index = *lane.index.load(relaxed);
    const position newest = of.cursor->load(relaxed);
    index.closed_at.store(static_cast<std::uint32_t>(newest), relaxed);  // close enough: `is_fresh`
    index.last_time.store(now, relaxed);
    lane.sub.store(&nowhere, relaxed);
    // order: close:A pairs with read:A, file.read:A, chain.look:A, claim:C, claim.next:A,
    // drain.look:A, drain.hold:A, go_on:A, here.claim:B
    sub->state.store(state_word(at, sub_buffer_state::closed), release);
}

/// Counts one sub-buffer more as held, unless half are. Who is refused was never counted, so that
/// `recount_held` does not take a crowd of them for holders, nor miss them afterwards. `held` is a
/// number without a sign only in the file: those that die between counting and holding leave it too
/// high, and `recount_held` may find it too low by those under way. `crowded`: a quarter of a ring
/// of fixed size is held (hand_on.hpp); but where writers wait for a reader, it shall have whole
/// sub-buffers.
inline bool core::count_held(const share& of, bool& crowded) noexcept {
    bool looked = false;
    const std::uint64_t most = held_at_most(of);
    // relaxed, to the end: a counter
    std::uint32_t held = of.held->load(relaxed);
    for (;;) {
        const auto count = static_cast<std::int32_t>(held);
        if (count <= 0 || static_cast<std::uint64_t>(count) < most) {
            crowded = of.end == nullptr && count > 0 &&
                      static_cast<std::uint64_t>(count) >= most / 2 && full_ != full_mode::block;
            // Nobody is refused then, but what the dead hold makes it slow for the living.
            if (crowded && crowded_claims_.fetch_add(1, relaxed) % 1024 == 1023) look_for_dead();
            if (of.held->compare_exchange_weak(held, held + 1, relaxed)) return true;
            continue;
        }
        if (looked || !make_way()) return false;
        looked = true;
        held = of.held->load(relaxed);
    }
}

/// Whether a ring has a sub-buffer at a position that was drawn, or is about to be. Behind its end
/// it has not: then its cursor is moved on to the next round.
inline bool core::is_there(const share& of, position at) noexcept {
    const std::uint64_t limit = memory_.plan().sub_buffer_limit;
    if (!shares_.several()) {
        if (at <= limit) grow(at);
        return true;
    }
    const std::uint64_t slot = slot_of(at, limit);
    if (of.end != nullptr) grow(slot + 1);
    if (slot >= of.first && slot < of.end_now()) return true;
    const position round = at - 1 - slot + (slot < of.first ? 0 : limit);
    position last =
        of.cursor->load(relaxed);  // relaxed, both: a number; the swap of a state decides
    while (last < round + of.first &&
           !of.cursor->compare_exchange_weak(last, round + of.first, relaxed)) {
    }
    return false;
}

/// The position after `at` that lies in a ring, the next round's first behind its end.
inline position core::following(const share& of, position at) const noexcept {
    if (!shares_.several()) return at + 1;
    const std::uint64_t limit = memory_.plan().sub_buffer_limit;
    const std::uint64_t slot = slot_of(at + 1, limit);
    if (slot >= of.first && slot < of.end_now()) return at + 1;
    return at + 1 - slot + (slot < of.first ? 0 : limit) + of.first;
}

/// The next position to try; none if the ring takes no more.
inline position core::next_slot(const share& of) noexcept {
    if (keeps_oldest_) return next_unread(of);
    for (;;) {
        // relaxed: a number; the swap decides
        const position at = of.cursor->fetch_add(1, relaxed) + 1;
        if (is_there(of, at)) [[likely]]
            return at;
    }
}

/// The same where nothing unread is overwritten.
inline position core::next_unread(const share& of) noexcept {
    std::uint64_t waited = 0;
    for (;;) {
        position last = of.cursor->load(relaxed);  // relaxed: a number; looked at again
        if (!is_there(of, last + 1)) continue;
        const std::uint64_t round = lap();
        position next = last + 1;
        // What was found full stays so, until the oldest that is unread goes; but look again now
        // and then, for a session may have given back another.
        // relaxed, all: a hint, and the count that says when
        if (full_ != full_mode::block && full_after_.load(relaxed) == last &&
            full_times_.load(relaxed) % 64 != 0) {
            next = full_at_.load(relaxed);
        }
        // Only what was never used, or what a session has read and freed. What writers and sessions
        // hold is passed: a writer that rests must not stop the others.
        stamped found{};
        for (; next - last <= round; next = following(of, next)) {
            // Who sees that another took the sub-buffer sees the cursor that it drew.
            // order: claim.next:A pairs with claim:C, claim:B, close:A, reclaim.close:A,
            // session.return:A, drain.free:A, drain.keep:A, here.claim:B, here.ready:A,
            // here.close:A, here.close:B, reclaim.close:B
            found = stamped::from(memory_.sub_buffer(slot_of(next, round)).state.load(acquire));
            if (found.state == static_cast<unsigned>(sub_buffer_state::free) ||
                found.state == static_cast<unsigned>(sub_buffer_state::closed)) {
                break;
            }
        }
        if (next - last > round || found.state != static_cast<unsigned>(sub_buffer_state::free)) {
            if (of.cursor->load(relaxed) != last) continue;         // relaxed: after the state
            full_at_.store(std::min(next, last + round), relaxed);  // relaxed, both: a hint
            full_after_.store(last, relaxed);
            full_times_.fetch_add(1, relaxed);  // relaxed: a counter
            if (full_ == full_mode::block && wait_for_room(waited)) continue;
            if (full_ == full_mode::stop) shut(true);
            return no_position;
        }
        // relaxed: a number; the swap of the state decides
        if (of.cursor->compare_exchange_strong(last, next, relaxed)) {
            return next;
        }
    }
}

/// One short sleep towards `block_for`; false when that is over.
inline bool core::wait_for_room(std::uint64_t& waited) noexcept {
    constexpr std::uint64_t nap = 50'000;
    if (waited >= block_ns_) return false;
    const undisturbed scope;
    const timespec pause{0, static_cast<long>(nap)};
    const std::uint64_t before = clock::monotonic::now();
    ::nanosleep(&pause, nullptr);
    waited += clock::monotonic::now() - before;
    return true;
}

/// More sub-buffers, so that there are `wanted` if the limit and the disk allow: idempotent, by
/// anyone. Once it failed nobody tries again: positions have begun to wrap.
inline void core::grow(std::uint64_t wanted) noexcept {
    layout::ring_state& ring = memory_.ring();
    const std::uint64_t limit = memory_.plan().sub_buffer_limit;
    std::uint64_t capacity = ring.capacity.load(relaxed);  // relaxed: the swap checks it
    while (capacity < wanted && wanted <= limit) {
        // Who sees that growth ended counts slots by no less than it ended with.
        // order: grow.ended:B pairs with grow.end:A
        if (ring.growth_ended.load(acquire) != 0) return;
        const undisturbed scope;
        const std::uint64_t more = std::min(limit, std::max(capacity + step_, wanted));
        if (memory_.provide(capacity, more) != 0) {
            // order: grow.end:A pairs with grow.ended:A, grow.ended:B
            ring.growth_ended.store(1, release);
            return;
        }
        // The memory is there before it is counted.
        // order: grow:A pairs with grow.use:A, grow.use:E, grow.use:F, grow.use:G, grow.use:I,
        // grow.use:S, table.read:D, reclaim.grow:A
        if (ring.capacity.compare_exchange_strong(capacity, more, release)) return;
    }
}

/// Whether the sub-buffer in `slot`, which has the oldest position, was closed only lately: not
/// half a round of the ring ago. A thread that records slowly holds its sub-buffer while others go
/// round and round. When it closes it, the position is the oldest of all, though the records are
/// not, and the next to come by would take it: of the quiet thread one record might be left. So it
/// is passed, once. Where all threads are alike, this is never so, and costs a load from a line
/// that the claimer needs anyway.
inline bool core::is_fresh(const share& of, std::uint64_t slot, position at) const noexcept {
    // relaxed: a hint; modulo 2^32
    const std::uint32_t closed_at = memory_.index(slot).closed_at.load(relaxed);
    const std::uint32_t since = static_cast<std::uint32_t>(at) - closed_at;
    const std::uint64_t size = of.size();
    if (since < size / 2) return true;
    if (!shares_.several()) return false;
    // The end of a round in between: positions that are not this ring's were passed over there.
    const auto passed = static_cast<std::uint32_t>(memory_.plan().sub_buffer_limit - size);
    return slot - of.first < size / 2 && since - passed < size / 2;
}

/// Swaps the state of the sub-buffer at `at` into this lane's hands.
inline sub_buffer_header* core::take_slot(lane_state& lane, const share& of, position at) noexcept {
    layout::ring_state& ring = memory_.ring();
    const std::uint64_t slot = slot_at(at);
    sub_buffer_header& sub = memory_.sub_buffer(slot);
    std::uint64_t word = sub.state.load(relaxed);  // relaxed: the swap decides
    const auto old = stamped::from(word);
    if (old.state != static_cast<unsigned>(sub_buffer_state::free) &&
        old.state != static_cast<unsigned>(sub_buffer_state::closed)) {
        // One who reads for hundreds of laps may be dead.
        if (old.state == static_cast<unsigned>(sub_buffer_state::reading) &&
            passed_readings_.fetch_add(1, relaxed) % 1024 == 1023) {  // relaxed: a counter
            return_dead_session();
        }
        return nullptr;  // held
    }
    if (old.pos >= at) return nullptr;  // this claimer slept a lap
    const bool closed = old.state == static_cast<unsigned>(sub_buffer_state::closed);
    if (closed && is_fresh(of, slot, at)) return nullptr;
    // Told first, so that what a dying claimer leaves in `reset` can be found; and not before the
    // count of what was written until then.
    // order: lane.newest:A pairs with table.read:B, lane.look:A, snapshot.copy:B
    lane.entry.load(relaxed)->newest.store(at, release);  // relaxed: own lane
    // Of the claimer before: all that it stored, and how many records there are to overwrite.
    // order: claim:C pairs with close:A, reclaim.close:A, claim.next:A, reclaim.find:A,
    // session.return:A, drain.free:A, drain.keep:A, here.give_up:A, here.close:A, here.close:B,
    // here.give_up:B, reclaim.close:B
    if (!sub.state.compare_exchange_strong(word, state_word(at, sub_buffer_state::reset),
                                           acq_rel)) {
        return nullptr;
    }
    // order: claim:A pairs with read:C, file.read:C, chain.look:B
    thread_fence(release);
    if (closed) {
        // relaxed: counters, and a word that only its claimer writes
        ring.overwritten_records.fetch_add(commit_word::records(sub.commit.load(relaxed)), relaxed);
    }
    lane.index.store(&memory_.index(slot), relaxed);  // relaxed: own lane
    return &sub;
}

/// What has to be done from time to time, and is when a sub-buffer is claimed at `now`.
inline void core::now_and_then(std::uint64_t now) noexcept {
    layout::ring_state& ring = memory_.ring();
    // relaxed, to the end: advice, and swaps
    // A triple of clocks now and then: after 1 ms, 2 ms, 4 ms ... and then each second.
    // Its words are advice: one claimer more or less may take one.
    std::uint64_t due = next_clock_.load(relaxed);
    if (now >= due && memory_.clock() != 0) {
        const std::uint64_t gap = clock_gap_.load(relaxed);
        const std::uint64_t second = memory_.header().ticks_per_second.load(relaxed);
        if (next_clock_.compare_exchange_strong(due, now + gap, relaxed)) {
            clock_gap_.store(std::min(gap * 2, second), relaxed);
            memory_.add_clocks(process());
        }
    }
    // A request is served soon, not at once.
    if (ring.snapshot_request.load(relaxed) != ring.snapshot_done.load(relaxed)) serve_requests();
}

/// `now` is brought up to date if this had to wait. `counted`: the sub-buffer that the lane has
/// just closed is counted as held, and that one need not be counted again.
inline sub_buffer_header* core::claim(lane_state& lane, const share& of, std::uint64_t& now,
                                      bool counted) noexcept {
    // relaxed, to the end: own lane, its sub-buffer until the state publishes it, and counters
    layout::lane_entry& entry = *lane.entry.load(relaxed);
    if (!counted) {
        bool crowded = false;
        if (!count_held(of, crowded)) return nullptr;
        mark_of(lane).held_as.store(crowded ? tenure::lent : tenure::own, relaxed);
    }
    const position previous = lane.where.load(relaxed);
    position at = no_position;
    sub_buffer_header* taken = nullptr;
    for (std::uint64_t tries = 0;;) {
        at = next_slot(of);
        if (at == no_position) break;
        taken = take_slot(lane, of, at);
        if (taken != nullptr) [[likely]]
            break;
        if (tries == 0) tries = 2 * of.size() + 16;
        if (--tries == 0) break;
    }
    if (taken == nullptr) {
        entry.newest.store(previous, relaxed);
        of.held->fetch_sub(1, relaxed);
        if (!keeps_oldest_) static_cast<void>(make_way());  // all that were tried are held
        return nullptr;
    }
    if (full_ == full_mode::block) now = memory_.now();
    sub_buffer_header& sub = *taken;
    // Neighbours of 32 bits as one word: half of the stores.
    const std::uint64_t number = entry.number.load(relaxed);
    word_at<std::uint64_t>(&sub, 0).store(sub_buffer_magic | number << 32, relaxed);
    sub.first_position.store(entry.written.load(relaxed), relaxed);
    sub.base_time.store(now, relaxed);
    sub.previous.store(previous, relaxed);
    sub.end_time.store(0, relaxed);
    const std::uint64_t refused = lane.refused.load(relaxed);  // own: no exchange, which is dear
    word_at<std::uint64_t>(&sub, offsetof(sub_buffer_header, commit))
        .store(commit_word::empty | refused << 32, relaxed);
    if (refused != 0) lane.refused.store(0, relaxed);
    word_at<std::uint64_t>(&sub, offsetof(sub_buffer_header, too_long)).store(0, relaxed);
    lane.high.store(static_cast<std::uint32_t>(now >> 32), relaxed);
    layout::index_entry& index = *lane.index.load(relaxed);
    index.pos.store(0, relaxed);
    // order: index.write:A pairs with index.look:A
    thread_fence(release);
    index.first_time.store(now, relaxed);
    index.last_time.store(0, relaxed);
    word_at<std::uint64_t>(&index, offsetof(layout::index_entry, lane))
        .store(number | at << 32, relaxed);  // closed_at
    // order: index.write:B pairs with table.read:C
    index.pos.store(at, release);
    // order: claim:B pairs with read:A, file.read:A, chain.look:A, claim.next:A, reclaim.find:A,
    // drain.look:A
    sub.state.store(state_word(at, sub_buffer_state::active), release);
    lane.where.store(at, relaxed);
    now_and_then(now);
    return &sub;
}

}  // namespace trace_ring::inline v1::impl

#include <trace_ring/recorder/lane/hand_on.hpp>
#include <trace_ring/recorder/lane/lane_table.hpp>
