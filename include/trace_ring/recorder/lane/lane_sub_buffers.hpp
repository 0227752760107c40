// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Claims and closes the sub-buffers of threads' lanes, by the rule of trace tables one level up. A
/// claimer draws the next position and swaps the state of the sub-buffer there from (free or
/// closed, older) to (its position, reset). If that sub-buffer is held, or newer than the drawn
/// position, it draws again. No claimer waits for another.
/// @code
///   cursor --fetch_add--> position p --> slot (p - 1) mod capacity
///   state: (older, free|closed) --swap--> (p, reset) --fill header--> (p, active)
///                                                                  --close--> (p, closed)
/// @endcode

#include <cstddef>
#include <cstdint>

#include <trace_ring/atomic.hpp>
#include <trace_ring/format/layout.hpp>
#include <trace_ring/format/sub_buffer.hpp>
#include <trace_ring/recorder/file/rings.hpp>
#include <trace_ring/recorder/file/session_owner.hpp>
#include <trace_ring/recorder/file/trace_memory.hpp>
#include <trace_ring/recorder/lane/claimer.hpp>
#include <trace_ring/recorder/lane/holdings.hpp>
#include <trace_ring/recorder/lane/reclaimer.hpp>
#include <trace_ring/recorder/site/lane.hpp>
#include <trace_ring/recorder/site/undisturbed.hpp>
#include <trace_ring/ring/sub_buffers/lane_writer.hpp>

namespace trace_ring::inline v1::impl {

/// For a lane by its own thread, signal-safe.
class lane_sub_buffers {
public:
    lane_sub_buffers(const trace_memory& memory, claimer& positions, reclaimer& holding) noexcept
        : memory_(memory), claimer_(positions), reclaimer_(holding) {}

    /// The first word of the recorder's sub-buffers.
    [[nodiscard]] std::uint32_t magic() const noexcept {
        return numbered_magic(memory_.root() + 1);
    }

    /// Claims the next sub-buffer of the ring for the lane, at the time `now`, which is read again
    /// if the claim had to wait. Null: none is free, or the lane may hold none. `counted`: the
    /// lane has just closed a sub-buffer that is still counted as held. `waited` is as in
    /// claimer::wait_for_room.
    [[nodiscard, gnu::always_inline]] sub_buffer_header* claim(lane_state& lane,
                                                               const ring_span& of,
                                                               std::uint64_t& now, bool counted,
                                                               std::uint64_t& waited) noexcept {
        // relaxed, to the end: own lane, its sub-buffer until the state publishes it, and counters
        layout::lane_entry& entry = *lane.entry.load(relaxed);
        if (!counted) {
            bool crowded = false;
            if (!reclaimer_.wait_to_hold(of, crowded, waited)) {
                reclaimer_.note_writers(*of.writers);
                return nullptr;
            }
            if (crowded) mark_of(lane).held_as.store(lane_ownership::lent, relaxed);
        }
        const position previous = lane.where.load(relaxed);
        position at = no_position;
        sub_buffer_header* claimed = nullptr;
        for (std::uint64_t tries = 0;;) {
            const sub_buffer_place drawn = claimer_.next_slot(lane, of, waited);
            at = drawn.pos;
            if (at == no_position) break;
            claimed = try_claim(lane, of, drawn);
            if (claimed != nullptr) [[likely]]
                break;
            if (tries == 0) tries = 2 * of.size() + 16;
            if (--tries == 0 && !claimer_.wait_for_room(waited)) break;
        }
        if (claimed == nullptr) {
            entry.newest.store(previous, relaxed);
            holdings::drop(of);
            if (!claimer_.keeps_oldest())
                static_cast<void>(reclaimer_.reclaim_if_due());  // all that were tried are held
            return nullptr;
        }
        if (claimer_.waits()) now = memory_.now();
        const std::uint32_t number = entry.number.load(relaxed);
        const std::uint32_t refused = lane.refused.load(relaxed);  // own: an exchange is slower
        if (refused != 0) lane.refused.store(0, relaxed);
        lane.high.store(static_cast<std::uint32_t>(now >> 32), relaxed);
        layout::index_entry& index = *lane.index.load(relaxed);
        index.pos.store(0, relaxed);
        // A thread that sees any of the following stores also sees that the sub-buffer is being
        // prepared.
        // order: claim:A pairs with read:C, batch.read:B, file.read:C, chain.look:B, index.look:A
        thread_fence(release);
        index.first_time.store(now, relaxed);
        index.last_time.store(0, relaxed);
        word_at<std::uint64_t>(&index, offsetof(layout::index_entry, lane))
            .store(std::uint64_t{number} | at << 32, relaxed);  // closed_at
        // order: index.write:B pairs with table.read:C, lane.again:A
        index.pos.store(at, release);
        lane_writer::begin(
            *claimed, {at, magic(), number, entry.written.load(relaxed), now, previous, refused});
        lane.where.store(at, relaxed);
        return claimed;
    }

    /// Closes the lane's sub-buffer, if it has one. It stays counted as held: the caller claims
    /// another, or calls holdings::drop.
    [[gnu::always_inline]] void close(lane_state& lane, const ring_span& of,
                                      std::uint64_t now) const noexcept {
        // relaxed, to the end: the lane and its sub-buffer are this thread's own
        sub_buffer_header* const sub = lane.sub.load(relaxed);
        if (sub == &nowhere) return;
        lane.sub.store(&nowhere, relaxed);
        close(*lane.entry.load(relaxed), of, *sub, *lane.index.load(relaxed),
              lane.where.load(relaxed), now);
    }
    /// Closes an active sub-buffer of the lane that has this entry, and its entry in the index.
    /// `at` is the sub-buffer's position. No other thread uses the lane.
    [[gnu::always_inline]] static void close(layout::lane_entry& entry, const ring_span& of,
                                             sub_buffer_header& sub, layout::index_entry& index,
                                             position at, std::uint64_t now) noexcept {
        // relaxed, to the end: as above
        const std::uint32_t records = commit_word::records(sub.commit.load(relaxed));
        // A thread that reads this count finds the records, too.
        // order: lane.written:A pairs with table.read:B, snapshot.copy:B
        entry.written.store(sub.first_position.load(relaxed) + records, release);
        const position newest = of.cursor->load(relaxed);
        index.closed_at.store(static_cast<std::uint32_t>(newest), relaxed);  // near: `is_fresh`
        index.last_time.store(now, relaxed);
        lane_writer::end(sub, at, now);
    }

private:
    /// Swaps the state of the sub-buffer at the drawn place. Null: it is held, kept or newer.
    [[nodiscard, gnu::always_inline]] sub_buffer_header* try_claim(
        lane_state& lane, const ring_span& of, sub_buffer_place drawn) noexcept {
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
                reclaim_dead_session();
            }
            return nullptr;  // held
        }
        if (old.pos >= drawn.pos) return nullptr;  // this claimer slept a lap
        const bool closed = old.state == static_cast<unsigned>(sub_buffer_state::closed);
        if (closed && claimer_.is_kept(of, index, drawn)) return nullptr;
        // Stored before the swap, so that a sub-buffer that a dying claimer leaves in `reset` can
        // be found; and not before the count of the records written until then.
        // order: lane.newest:A pairs with table.read:B, lane.look:A, snapshot.copy:B
        lane.entry.load(relaxed)->newest.store(drawn.pos, release);  // relaxed: own lane
        // Acquires all that the previous claimer stored, and with it how many records are
        // overwritten.
        // order: claim:C pairs with writer.end:A, reclaim.close:A, claim.next:A, reclaim.find:A,
        // session.return:A, drain.free:A, drain.keep:A, here.free:A, here.close:A,
        // here.free:B, reclaim.close:B
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
    /// Frees what the session of a dead process holds: to be overwritten, or read by the next
    /// session.
    [[gnu::cold]] void reclaim_dead_session() const noexcept {
        const undisturbed scope;
        const trace_bytes trace{static_cast<const layout::view&>(memory_), &memory_.present()};
        const auto look = [&](int fd) {
            const std::uint64_t owner =
                trace.ring().session_owner.load(relaxed);  // relaxed: a look
            if (owner == 0 || session_may_live(owner, fd)) return;
            storage::life_lock lock;
            if (take_session(trace, fd, lock) == 0) leave_session(trace, lock);
        };
        memory_.descriptor() < 0 ? look(-1) : memory_.on_locks(look);
    }

    const trace_memory& memory_;
    claimer& claimer_;
    reclaimer& reclaimer_;
    atomic<std::uint32_t> passed_readings_{0};  ///< sub-buffers passed over that a session holds
};

}  // namespace trace_ring::inline v1::impl
