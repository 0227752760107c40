// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Whether a lane may hold one more sub-buffer, and which one comes next: drawn positions, the end
/// of a ring and its growth, and sub-buffers passed over because they are to be kept.
///
/// At most half of a ring is held. A claim is counted before the sub-buffer is held, and a close is
/// counted after it, so the count is never below the number held. It stays above if a thread dies
/// or jumps away between the two, and is then taken anew.

#include <time.h>

#include <cstdint>

#include <trace_ring/recorder/lane/core.hpp>
#include <trace_ring/recorder/light/least.hpp>

namespace trace_ring::inline v1::impl {

/// Whether the ring may get more sub-buffers.
inline bool core::can_grow(const share& of) const noexcept {
    // order: grow.ended:C pairs with grow.end:A
    return of.end != nullptr && memory_.ring().growth_ended.load(acquire) == 0 &&
           of.end_now() < memory_.plan().sub_buffer_limit;
}

/// When `keep_for` will have passed since a sub-buffer was closed.
inline std::uint64_t core::old_at(const layout::index_entry& closed) const noexcept {
    return closed.last_time.load(relaxed) + keep_ticks_;  // relaxed: a hint
}

/// Whether it was closed less than `keep_for` ago.
inline bool core::is_young(const layout::index_entry& closed) const noexcept {
    return memory_.now() < old_at(closed);
}

/// Whether something in a ring that keeps by time may be overwritten. Linear in the sub-buffers,
/// once a round.
inline bool core::has_old(const share& of) const noexcept {
    const std::uint64_t end = of.end_now();
    for (std::uint64_t slot = of.first; slot < end; ++slot) {
        // relaxed: a hint; the swap of the state decides
        const unsigned state = stamped::from(memory_.sub_buffer(slot).state.load(relaxed)).state;
        if (state == static_cast<unsigned>(sub_buffer_state::free)) return true;
        if (state == static_cast<unsigned>(sub_buffer_state::closed) &&
            !is_young(memory_.index(slot))) {
            return true;
        }
    }
    return false;
}

/// How often a lane tries to draw a position before the record is refused. Each failure means that
/// others drew some, so the tries come to an end; but they might not if others store anything they
/// like into the file.
inline constexpr unsigned most_draws = 1U << 14;

/// Whether a ring has a sub-buffer at a position that was drawn, or is about to be. Beyond its end
/// it has none: then the ring grows, or its cursor is moved to the next round.
inline bool core::is_there(const share& of, position at) noexcept {
    const std::uint64_t slot = of.slot_at(at);
    if (of.has(slot)) [[likely]]
        return true;
    if (slot >= of.first && can_grow(of) && (keep_ticks_ == 0 || !has_old(of))) {
        grow(slot + 1);
        if (of.has(slot)) return true;
    }
    const position before = of.next_round(at) - 1;
    // relaxed, both: a number; the swap of a state decides
    position last = of.cursor->load(relaxed);
    while (last < before && !of.cursor->compare_exchange_weak(last, before, relaxed)) {
    }
    return false;
}

/// Whether the positions have run out, by a cursor or by what was drawn from it. The cursor then
/// stays there: if it began at 0 again, older sub-buffers would seem newer.
inline bool positions_end(const share& of, position before) noexcept {
    if (before < last_position) [[likely]]
        return false;
    of.cursor->store(last_position, relaxed);  // relaxed: a number, which stays what it is
    return true;
}

/// The next position to try; no position if the ring takes no more.
inline sub_buffer_place core::next_slot(const share& of) noexcept {
    if (keeps_oldest_) return next_unread(of);
    // relaxed: a number; the swap decides
    const position at = of.cursor->fetch_add(1, relaxed) + 1;
    if (positions_end(of, at - 1)) return {};
    const std::uint64_t slot = of.slot_at(at);
    if (of.has(slot)) [[likely]]
        return {slot, at};
    return next_behind_end(of, at);
}

/// The next position for a lane to try. A lane that claims again and again within a short time
/// draws several positions at once, up to an eighth of those that it has drawn this way, and then
/// claims without the cursor, whose cache line moves from claimer to claimer. Sub-buffers at
/// positions of such a run that stay unused are kept for one more round. A run that other lanes
/// have left behind is dropped: times would not ascend with the positions, by which readers seek,
/// and its records would be overwritten sooner.
inline sub_buffer_place core::next_slot(lane_state& lane, const share& of) noexcept {
    lane_mark& run = mark_of(lane);
    // relaxed, to the end: own words, and a number; the swap decides
    const position next = run.run_next.load(relaxed);
    const position end = run.run_end.load(relaxed);
    const position newest = of.cursor->load(relaxed);
    if (next != end && newest - next < 2 * of.soon) {
        run.run_next.store(next + 1, relaxed);
        return {of.slot_at(next), next};
    }
    if (of.longest <= 1 || keeps_oldest_) return next_slot(of);
    std::uint32_t drawn = run.drawn.load(relaxed);
    if (newest + 1 - end > of.soon) drawn /= 2;
    const std::uint32_t length = clamped(drawn / 8, 1U, of.longest);
    const position at = of.cursor->fetch_add(length, relaxed) + 1;
    if (positions_end(of, at - 2 + length)) return {};
    run.drawn.store(least(drawn + length, 8 * of.longest), relaxed);
    run.run_next.store(at + 1, relaxed);
    run.run_end.store(at + length, relaxed);
    return {of.slot_at(at), at};
}

/// The same after position `at` was drawn, whose slot is beyond the ring's end.
inline sub_buffer_place core::next_behind_end(const share& of, position at) noexcept {
    for (unsigned tries = 0; tries != most_draws; ++tries) {
        if (positions_end(of, at - 1)) break;
        const std::uint64_t slot = of.slot_at(at);
        if (of.has(slot) || is_there(of, at)) return {slot, at};
        at = of.cursor->fetch_add(1, relaxed) + 1;  // relaxed: a number; the swap decides
    }
    return {};
}

/// The same where nothing unread is overwritten.
inline sub_buffer_place core::next_unread(const share& of) noexcept {
    std::uint64_t waited = 0;
    for (unsigned tries = 0; tries != most_draws;) {
        position last = of.cursor->load(relaxed);  // relaxed: a number; looked at again
        if (positions_end(of, last)) break;
        if (!is_there(of, last + 1)) {
            ++tries;
            continue;
        }
        position next = last + 1;
        // A ring found full stays full until the oldest unread sub-buffer is freed or, by time, the
        // first is old enough. But look again now and then: a session may have freed another.
        // relaxed, all: a hint, and the count that says when
        const bool known = full_ != full_mode::block && full_after_.load(relaxed) == last &&
                           full_times_.load(relaxed) % 64 != 0;
        const bool still = known && keep_ticks_ != 0 && memory_.now() < full_until_.load(relaxed);
        if (known && keep_ticks_ == 0) next = full_at_.load(relaxed);
        // Usable: sub-buffers never used, read and freed by a session, or old enough. Those that
        // writers and sessions hold are passed over: a resting writer must not stop others.
        bool usable = false;
        std::uint64_t slot = 0;
        std::uint64_t until = ~std::uint64_t{0};
        for (; !still && next - last <= of.lap; next = of.following(next)) {
            slot = of.slot_at(next);
            if (!of.has(slot)) continue;  // a hint of another ring, or one round ahead
            // A thread that sees that another took the sub-buffer sees the cursor that it drew.
            // order: claim.next:A pairs with claim:C, writer.begin:A, writer.end:A,
            // reclaim.close:A, session.return:A, drain.free:A, drain.keep:A, here.claim:B,
            // here.ready:A, here.close:A, here.close:B, reclaim.close:B
            const auto found = stamped::from(memory_.sub_buffer(slot).state.load(acquire));
            const bool closed = found.state == static_cast<unsigned>(sub_buffer_state::closed);
            usable = found.state == static_cast<unsigned>(sub_buffer_state::free) ||
                     (closed && keep_ticks_ != 0 && !is_young(memory_.index(slot)));
            if (usable || (closed && keep_ticks_ == 0)) break;
            // By time the oldest need not be the first: one filled slowly was closed later.
            if (closed) until = least(until, old_at(memory_.index(slot)));
        }
        if (!usable) {
            if (of.cursor->load(relaxed) != last) {  // relaxed: after the state
                ++tries;
                continue;
            }
            if (!still) {
                full_at_.store(least(next, last + of.lap), relaxed);  // relaxed, all: a hint
                full_until_.store(until, relaxed);
                full_after_.store(last, relaxed);
            }
            full_times_.fetch_add(1, relaxed);  // relaxed: a counter
            if (full_ == full_mode::block && wait_for_room(waited)) continue;
            if (full_ == full_mode::stop) events_.shut(true);
            return {};
        }
        if (positions_end(of, next - 1)) break;
        // relaxed: a number; the swap of the state decides
        if (of.cursor->compare_exchange_strong(last, next, relaxed)) {
            return {slot, next};
        }
        ++tries;
    }
    return {};
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

/// Grows the ring to `wanted` sub-buffers if the limit and the disk allow it. Idempotent; any
/// thread may call it. After a failure nobody tries again, because positions have begun to wrap.
inline void core::grow(std::uint64_t wanted) noexcept {
    layout::ring_state& ring = memory_.ring();
    const std::uint64_t limit = memory_.plan().sub_buffer_limit;
    std::uint64_t said = ring.capacity.load(relaxed);  // relaxed: the swap checks it
    while (wanted <= limit) {
        const std::uint64_t capacity = memory_.capacity();
        if (capacity >= wanted) return;
        // A thread that sees that growth ended counts slots by no less than the final capacity.
        // order: grow.ended:B pairs with grow.end:A
        if (ring.growth_ended.load(acquire) != 0) return;
        const undisturbed scope;
        const std::uint64_t more = least(limit, greatest(capacity + step_, wanted));
        if (memory_.provide(capacity, more) != 0) {
            // order: grow.end:A pairs with grow.ended:A, grow.ended:B, grow.ended:C
            ring.growth_ended.store(1, release);
            return;
        }
        // The memory exists before it is counted.
        // order: grow:A pairs with grow.use:E, grow.use:F, grow.use:S, table.read:D
        if (ring.capacity.compare_exchange_strong(said, more, release)) return;
    }
}

/// Whether the sub-buffer at the place drawn, which has the oldest position, was closed only
/// lately: less than half a round of the ring ago. A thread that records slowly holds its
/// sub-buffer for several rounds. When it closes it, the position is the oldest of all, though the
/// records are not, and the next claimer would overwrite them: a quiet thread might keep one
/// record. So the sub-buffer is passed over, once. Where all threads are alike this never happens,
/// and asking costs one load from a line that the claimer needs anyway.
///
/// A position may also be drawn before the sub-buffer there is closed, and tried after. If the
/// claimer slept for more than half a round, the sub-buffer is treated as if closed long ago.
inline bool core::is_fresh(const share& of, const layout::index_entry& closed,
                           sub_buffer_place drawn) const noexcept {
    // relaxed: a hint; modulo 2^32
    const std::uint32_t since =
        static_cast<std::uint32_t>(drawn.pos) - closed.closed_at.load(relaxed);
    if (of.half != 0) [[likely]]
        return since + static_cast<std::uint32_t>(of.half) < 2 * of.half;
    const std::uint64_t size = of.size();
    if (since + static_cast<std::uint32_t>(size / 2) < size / 2 * 2) return true;
    // The end of a round lies in between: the positions there that are other rings' were skipped.
    const auto passed = static_cast<std::uint32_t>(of.lap - size);
    return drawn.slot - of.first < size / 2 && since - passed < size / 2;
}

/// Whether a closed sub-buffer must not be overwritten by the claimer that drew its place.
inline bool core::is_kept(const share& of, const layout::index_entry& closed,
                          sub_buffer_place drawn) const noexcept {
    if (keep_ticks_ != 0) [[unlikely]] {
        const bool young = is_young(closed);
        // At the limit the oldest is overwritten, however young, as in any ring.
        if (!young || keeps_oldest_ || can_grow(of)) return young;
    }
    return is_fresh(of, closed, drawn);
}

/// Half of the ring, so that writers that close one sub-buffer always find another to claim.
inline std::uint64_t core::held_at_most(const share& of) const noexcept {
    // order: grow.ended:A pairs with grow.end:A
    const bool ended = of.end == nullptr || memory_.ring().growth_ended.load(acquire) != 0;
    return (ended ? of.size() : memory_.plan().sub_buffer_limit - of.first) / 2;
}

/// Counts one more sub-buffer as held, unless half are; a refused one is not counted. `held` may be
/// negative, though the file has it without a sign. `crowded`: a quarter of a ring of fixed size is
/// held (hand_on.hpp); not where writers wait for a reader, which is to get whole sub-buffers.
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
            // No lane is refused yet, but what the dead hold slows the living down.
            if (crowded && crowded_claims_.fetch_add(1, relaxed) % 1024 == 1023) look_for_dead();
            if (of.held->compare_exchange_weak(held, held + 1, relaxed)) return true;
            continue;
        }
        if (looked || !make_way()) return false;
        looked = true;
        held = of.held->load(relaxed);
    }
}

/// The same, but where writers wait for room, they wait for this, too.
inline bool core::wait_to_hold(const share& of, bool& crowded) noexcept {
    std::uint64_t waited = 0;
    while (!count_held(of, crowded)) {
        if (full_ != full_mode::block || !wait_for_room(waited)) return false;
    }
    return true;
}

/// Counts the held sub-buffers anew if the count must be wrong: it is below the number held; or
/// above it by more than claims under way can explain, two for each live lane; or a writer that may
/// have had a claim under way is gone (`died`). Only in the last case may other claims under way be
/// missed, so that more than half are held for once. Otherwise the count is left alone, because a
/// living claimer that was counted and sleeps looks like a dead one. False: others claimed or
/// closed meanwhile, and nothing was changed.
inline bool core::recount_held(const share& of, bool died) noexcept {
    // relaxed, to the end: the swap fails where others counted meanwhile
    std::uint32_t said = of.held->load(relaxed);
    const position before = of.cursor->load(relaxed);
    std::uint32_t found = 0;
    const std::uint64_t end = of.end_now();
    for (std::uint64_t slot = of.first; slot < end; ++slot) {
        const unsigned state = stamped::from(memory_.sub_buffer(slot).state.load(relaxed)).state;
        found += state == static_cast<unsigned>(sub_buffer_state::reset) ||
                 state == static_cast<unsigned>(sub_buffer_state::active);
    }
    if (said == found) return true;
    if (!died && said > found) {
        std::uint32_t live = 0;
        for (std::uint32_t i = 0; i < memory_.plan().lane_count; ++i) {
            live += memory_.lane(i).state.load(relaxed) ==
                    static_cast<std::uint32_t>(layout::presence::live);
        }
        if (said - found <= 2 * live) return true;
    }
    if (of.cursor->load(relaxed) != before) return false;
    return of.held->compare_exchange_strong(said, found, relaxed);
}

inline void core::look_for_dead() noexcept {
    const undisturbed scope;
    leave_gone_threads();
    reclaim_dead();
    const bool died = recount_due_.exchange(0, relaxed) != 0;  // relaxed: advice
    bool settled = true;
    for (const share& each : shares_) settled &= recount_held(each, died);
    if (died && !settled) recount_due_.store(1, relaxed);  // relaxed: advice
}

/// Reclaims what the dead, threads and processes, hold. True if it looked: not each time.
inline bool core::make_way() noexcept {
    const undisturbed scope;
    // relaxed: advice on when to look again
    if (failed_claims_.fetch_add(1, relaxed) % 64 != 0) return false;
    look_for_dead();
    return true;
}

}  // namespace trace_ring::inline v1::impl
