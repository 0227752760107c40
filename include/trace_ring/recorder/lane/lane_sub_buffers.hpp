// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Claiming sub-buffers, by the rule of trace tables one level up. A claimer draws the next
/// position and swaps the state of the sub-buffer there from (free or closed, older) to (its
/// position, reset). If that sub-buffer is held, or newer than the drawn position, it draws again.
/// Nobody waits for anybody.
/// @code
///   cursor --fetch_add--> position p --> slot (p - 1) mod capacity
///   state: (older, free|closed) --swap--> (p, reset) --fill header--> (p, active)
///                                                                  --close--> (p, closed)
/// @endcode

#include <cstddef>
#include <cstdint>

#include <trace_ring/recorder/lane/lanes_by_thread.hpp>
#include <trace_ring/recorder/light/least.hpp>

namespace trace_ring::inline v1::impl {

/// Makes room for `bytes` more in the lane, and sets `time` to the record's time, whose high half
/// the lane has announced. `waited` is as in claimer::wait_for_room.
inline bool core::make_room(lane_state& lane, std::uint32_t bytes, std::uint32_t& time,
                            std::uint64_t& waited) noexcept {
    // relaxed, to the end: the lane and its sub-buffer are this thread's own
    sub_buffer_header* sub = lane.sub.load(relaxed);
    // A lane that was refused a sub-buffer tries again: another thread may have released one since.
    if (sub == &nowhere && lane.refused.load(relaxed) != 0 &&
        adopt(lane, lane.entry.load(relaxed)->ring.load(relaxed), bytes)) {
        sub = lane.sub.load(relaxed);
    }
    const std::uint32_t end = commit_word::offset(sub->commit.load(relaxed));
    if (sub == &nowhere || end + bytes + time_record_bytes > memory_.plan().sub_buffer_bytes) {
        // The lane closes one sub-buffer and claims another: the count of held ones stays.
        bool holds = sub != &nowhere;
        const share& of = shares_[lane.entry.load(relaxed)->ring.load(relaxed)];
        // The cursor's cache line moves from claimer to claimer: ask for it early.
        const lane_mark& run = mark_of(lane);
        if (run.run_next.load(relaxed) == run.run_end.load(relaxed)) prefetch_to_store(of.cursor);
        std::uint64_t now = memory_.now();
        close_lane(lane, of, now);
        if (mark_of(lane).held_as.load(relaxed) == tenure::adopted) [[unlikely]] {
            const std::uint32_t ring = lane.entry.load(relaxed)->ring.load(relaxed);
            release_lane(lane, now);  // hand_on.hpp says why
            if (!make_lane(lane, ring)) {
                if (holds) holdings::drop(of);
                holds = false;
                if (!find_lane(lane, ring, bytes, waited)) return false;
                if (lane.sub.load(relaxed) != &nowhere) return stamp(lane, time);  // adopted again
            }
        }
        sub = claim(lane, of, now, holds, waited);
        if (sub == nullptr) {
            layout::lane_entry& entry = *lane.entry.load(relaxed);
            entry.refused.fetch_add(1, relaxed);
            lane.refused.fetch_add(1, relaxed);  // told in the next sub-buffer
            const lane_mark& mark = mark_of(lane);
            if (mark.held_as.load(relaxed) == tenure::lent && mark.retired.load(relaxed) == 0)
                release_lane(lane, now);
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
    return stamp(lane, time);
}

/// Sets `time` to the record's time, in a lane that has room; announces its high half if need be.
inline bool core::stamp(lane_state& lane, std::uint32_t& time) noexcept {
    const std::uint64_t t = memory_.now();
    time = static_cast<std::uint32_t>(t);
    const auto high = static_cast<std::uint32_t>(t >> 32);
    // relaxed, to the end: own lane
    if (high != lane.high.load(relaxed)) {
        lane_writer::note(*lane.sub.load(relaxed), t);
        lane.high.store(high, relaxed);
    }
    return true;
}

/// Adopts a lane, or makes one. If neither can be had, waits for one as the full mode says; false:
/// the record is lost, and counted.
inline bool core::find_lane(lane_state& lane, std::uint32_t ring, std::uint32_t bytes,
                            std::uint64_t& waited) noexcept {
    while (!adopt(lane, ring, bytes) && !make_lane(lane, ring)) {
        if (claimer_.wait_for_lane(waited, layout::lent_of_lanes(memory_.plan().lane_count) != 0))
            continue;
        memory_.ring().refused_without_lane.fetch_add(1, relaxed);  // relaxed: a counter
        note_writers(memory_.ring().writers, writers_now());
        return false;
    }
    return true;
}

/// The open lane; no lane if there is no room.
inline core::opened core::with_room(lane_state& lane, std::uint32_t bytes, std::uint32_t header,
                                    std::uint64_t waited) noexcept {
    std::uint32_t time = 0;
    if (make_room(lane, bytes, time, waited)) [[likely]]
        return {&lane, time, header};
    // Not idle: the next record must take the cold path. relaxed: own lane
    mark_of(lane).value.store(0, relaxed);
    return {};
}

inline core::opened core::open_further(event_state& type, std::uint32_t bytes, mark_type opener,
                                       bool ends, lane_state& lane) noexcept {
    // relaxed, to the end: own lane
    if (!enter_lane(lane) || mark_of(lane).valid.load(relaxed) == 0 || bytes > max_record())
        [[unlikely]] {
        mark_of(lane).value.store(0, relaxed);  // a handler in between has given it up
        return open(type, bytes, opener, ends);
    }
    return with_room(lane, bytes, type.header.load(relaxed), 0);
}

/// Closes the lane's sub-buffer. Does not decrement the count of held sub-buffers: the caller
/// claims another at once, or decrements it.
inline void core::close_lane(lane_state& lane, const share& of, std::uint64_t now) noexcept {
    // relaxed, to the end: the lane and its sub-buffer are this thread's own
    sub_buffer_header* const sub = lane.sub.load(relaxed);
    if (sub == &nowhere) return;
    const std::uint32_t records = commit_word::records(sub->commit.load(relaxed));
    layout::lane_entry& entry = *lane.entry.load(relaxed);
    // A thread that reads this count finds the records, too.
    // order: lane.written:A pairs with table.read:B, snapshot.copy:B
    entry.written.store(sub->first_position.load(relaxed) + records, release);
    layout::index_entry& index = *lane.index.load(relaxed);
    const position newest = of.cursor->load(relaxed);
    index.closed_at.store(static_cast<std::uint32_t>(newest), relaxed);  // close enough: `is_fresh`
    index.last_time.store(now, relaxed);
    lane.sub.store(&nowhere, relaxed);
    lane_writer::end(*sub, lane.where.load(relaxed), now);
}

/// Reclaims what the dead, threads and processes, hold.
inline void core::look_for_dead() noexcept {
    const undisturbed scope;
    static_cast<void>(leave_gone_threads());
    book_.reclaim_dead();
    const bool died = book_.was_count_lost();
    bool settled = true;
    for (const share& each : shares_) settled &= holdings_.recount(each, died);
    if (died && !settled) book_.count_is_lost();
}

/// The same, but not each time. True if it looked.
inline bool core::make_way() noexcept {
    // relaxed: advice on when to look again
    if (failed_claims_.fetch_add(1, relaxed) % 64 != 0) return false;
    look_for_dead();
    return true;
}

/// Whether to look where nothing is refused yet: what the dead hold slows the living down.
inline bool core::is_time_to_look() noexcept {
    return crowded_claims_.fetch_add(1, relaxed) % 64 == 0;  // relaxed: advice
}

/// Counts one more sub-buffer as held, if need be after the dead were looked for.
inline bool core::count_held(const share& of, bool& crowded) noexcept {
    if (!holdings_.add(of, crowded)) return make_way() && holdings_.add(of, crowded);
    if (!crowded || !is_time_to_look()) return true;
    holdings::drop(of);  // what is not held yet would be missing if it is counted anew
    look_for_dead();
    return holdings_.add(of, crowded);
}

/// The same, but where writers wait for room, they wait for this, too.
inline bool core::wait_to_hold(const share& of, bool& crowded, std::uint64_t& waited) noexcept {
    while (!count_held(of, crowded)) {
        if (!claimer_.wait_for_lane(waited, true)) return false;
    }
    return true;
}

/// How many writers there are now: threads of this process that have recorded, and lanes in use of
/// others and of what interrupted a thread. Linear in both.
inline std::uint32_t core::writers_now() const noexcept {
    std::uint32_t count = leave_gone_threads();
    // relaxed, to the end: a count for advice
    for (std::uint32_t i = 0; i < memory_.plan().lane_count; ++i) {
        const layout::lane_entry& entry = memory_.lane(i);
        const bool is_thread = entry.depth.load(relaxed) == 0 && entry.cpu.load(relaxed) == 0 &&
                               entry.process.load(relaxed) == process();
        count += !is_thread &&
                 entry.state.load(relaxed) == static_cast<std::uint32_t>(layout::presence::live);
    }
    return count;
}

/// A record was lost because lanes or sub-buffers are too few. Raises `most` to `now`, from which
/// readers compute what would be enough (layout::room_for).
inline void core::note_writers(shared_atomic<std::uint32_t>& most, std::uint32_t now) noexcept {
    std::uint32_t before = most.load(relaxed);  // relaxed, both: a number
    while (before < now && !most.compare_exchange_weak(before, now, relaxed)) {
    }
}

/// Swaps the state of the sub-buffer at `at` into this lane's hands.
inline sub_buffer_header* core::take_slot(lane_state& lane, const share& of,
                                          sub_buffer_place drawn) noexcept {
    sub_buffer_header& sub = memory_.sub_buffer(drawn.slot);
    layout::index_entry& index = memory_.index(drawn.slot);
    prefetch_to_store(&sub);
    prefetch_to_store(&index);
    std::uint64_t word = sub.state.load(relaxed);  // relaxed: the swap decides
    const auto old = stamped::from(word);
    if (old.state != static_cast<unsigned>(sub_buffer_state::free) &&
        old.state != static_cast<unsigned>(sub_buffer_state::closed)) {
        // A session that has been reading for hundreds of laps may be dead.
        if (old.state == static_cast<unsigned>(sub_buffer_state::reading) &&
            passed_readings_.fetch_add(1, relaxed) % 1024 == 1023) {  // relaxed: a counter
            return_dead_session();
        }
        return nullptr;  // held
    }
    if (old.pos >= drawn.pos) return nullptr;  // this claimer slept a lap
    const bool closed = old.state == static_cast<unsigned>(sub_buffer_state::closed);
    if (closed && claimer_.is_kept(of, index, drawn)) return nullptr;
    // Stored before the swap, so that a sub-buffer that a dying claimer leaves in `reset` can be
    // found; and not before the count of the records written until then.
    // order: lane.newest:A pairs with table.read:B, lane.look:A, snapshot.copy:B
    lane.entry.load(relaxed)->newest.store(drawn.pos, release);  // relaxed: own lane
    // Acquires all that the previous claimer stored, and with it how many records are overwritten.
    // order: claim:C pairs with writer.end:A, reclaim.close:A, claim.next:A, reclaim.find:A,
    // session.return:A, drain.free:A, drain.keep:A, here.give_up:A, here.close:A, here.close:B,
    // here.give_up:B, reclaim.close:B
    if (!sub.state.compare_exchange_strong(word, state_word(drawn.pos, sub_buffer_state::reset),
                                           acq_rel)) {
        return nullptr;
    }
    if (closed) {
        // Counted by lane: one word for all would move from claimer to claimer.
        // relaxed, all: own lane, and a word that only its claimer writes
        auto& overwrote = lane.entry.load(relaxed)->overwrote;
        const std::uint64_t before = overwrote.load(relaxed);
        overwrote.store(before + commit_word::records(sub.commit.load(relaxed)), relaxed);
    }
    lane.index.store(&index, relaxed);  // relaxed: own lane
    return &sub;
}

/// Work that is due from time to time, done when a sub-buffer is claimed, at `now`.
inline void core::now_and_then(std::uint64_t now) noexcept {
    clocks_.read_if_due(memory_, process(), now);
    // A request is served soon, not at once.
    layout::ring_state& ring = memory_.ring();
    // relaxed, to the end: advice
    if (ring.snapshot_request.load(relaxed) != ring.snapshot_done.load(relaxed) &&
        snapshots_left_.load(relaxed) != 0) {
        serve_requests();
    }
}

/// Claims the next sub-buffer for the lane. `now` is read again if the claim had to wait.
/// `counted`: the lane has just closed a sub-buffer that still counts as held, so this one is not
/// counted.
inline sub_buffer_header* core::claim(lane_state& lane, const share& of, std::uint64_t& now,
                                      bool counted, std::uint64_t& waited) noexcept {
    // relaxed, to the end: own lane, its sub-buffer until the state publishes it, and counters
    layout::lane_entry& entry = *lane.entry.load(relaxed);
    if (!counted) {
        bool crowded = false;
        if (!wait_to_hold(of, crowded, waited)) {
            note_writers(*of.writers, writers_now());
            return nullptr;
        }
        if (crowded) mark_of(lane).held_as.store(tenure::lent, relaxed);
    }
    const position previous = lane.where.load(relaxed);
    position at = no_position;
    sub_buffer_header* taken = nullptr;
    for (std::uint64_t tries = 0;;) {
        const sub_buffer_place drawn = claimer_.next_slot(lane, of, waited);
        at = drawn.pos;
        if (at == no_position) break;
        taken = take_slot(lane, of, drawn);
        if (taken != nullptr) [[likely]]
            break;
        if (tries == 0) tries = 2 * of.size() + 16;
        if (--tries == 0 && !claimer_.wait_for_room(waited)) break;
    }
    if (taken == nullptr) {
        entry.newest.store(previous, relaxed);
        holdings::drop(of);
        if (!claimer_.keeps_oldest())
            static_cast<void>(make_way());  // all that were tried are held
        return nullptr;
    }
    if (claimer_.waits()) now = memory_.now();
    sub_buffer_header& sub = *taken;
    const std::uint32_t number = entry.number.load(relaxed);
    const std::uint32_t refused = lane.refused.load(relaxed);  // own: an exchange is slower
    if (refused != 0) lane.refused.store(0, relaxed);
    lane.high.store(static_cast<std::uint32_t>(now >> 32), relaxed);
    layout::index_entry& index = *lane.index.load(relaxed);
    index.pos.store(0, relaxed);
    // Who sees any of what follows sees also that the sub-buffer is being prepared.
    // order: claim:A pairs with read:C, batch.read:B, file.read:C, chain.look:B, index.look:A
    thread_fence(release);
    index.first_time.store(now, relaxed);
    index.last_time.store(0, relaxed);
    word_at<std::uint64_t>(&index, offsetof(layout::index_entry, lane))
        .store(std::uint64_t{number} | at << 32, relaxed);  // closed_at
    // order: index.write:B pairs with table.read:C, lane.again:A
    index.pos.store(at, release);
    lane_writer::begin(sub,
                       {at, magic(), number, entry.written.load(relaxed), now, previous, refused});
    lane.where.store(at, relaxed);
    now_and_then(now);
    return &sub;
}

}  // namespace trace_ring::inline v1::impl

#include <trace_ring/recorder/lane/adoption.hpp>
#include <trace_ring/recorder/process/own_process.hpp>
