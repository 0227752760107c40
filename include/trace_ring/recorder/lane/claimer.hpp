// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Which sub-buffer comes next: drawn positions, the end of a ring and its growth, and sub-buffers
/// that are passed over because they are to be kept.
/// @code
///   cursor --fetch_add--> position p --> slot (p - 1) mod lap: there, and not to be kept?
///   beyond the ring's end: it grows, or the cursor is moved to the next round
///   unread records are kept: the first position whose sub-buffer is free, or old enough
/// @endcode
/// No claimer waits for another. In full_mode::block it waits for a reader.

#include <sched.h>
#include <time.h>

#include <cstdint>

#include <trace_ring/bounds.hpp>
#include <trace_ring/policy/clock/monotonic.hpp>
#include <trace_ring/recorder/file/options.hpp>
#include <trace_ring/recorder/file/rings.hpp>
#include <trace_ring/recorder/file/trace_memory.hpp>
#include <trace_ring/recorder/site/lane.hpp>
#include <trace_ring/recorder/site/undisturbed.hpp>

namespace trace_ring::inline v1::impl {

/// Any thread, signal-safe.
class claimer {
public:
    claimer(const trace_memory& memory, const recorder_options& options) noexcept
        : memory_(memory),
          full_(static_cast<full_mode>(memory.header().full.load(relaxed))),  // relaxed: fixed
          keeps_oldest_(full_ == full_mode::discard_newest || full_ == full_mode::stop ||
                        full_ == full_mode::block || full_ == full_mode::extend_then_discard),
          step_(greatest<std::uint64_t>(1, options.step / memory.plan().sub_buffer_bytes)),
          block_ns_(
              static_cast<std::uint64_t>(greatest<std::int64_t>(0, options.block_for.count()))),
          keep_ticks_(memory.keep_ticks()),
          keeps_waiting_(options.keeps_waiting) {}

    /// Unread records are not overwritten.
    [[nodiscard]] bool keeps_oldest() const noexcept { return keeps_oldest_; }
    /// Writers wait for a reader to make room.
    [[nodiscard]] bool waits() const noexcept { return full_ == full_mode::block; }

    /// The next position to try; no position if the ring takes no more. `waited`: how long the
    /// record has waited for room so far (`wait_for_room`).
    [[nodiscard]] sub_buffer_place next_slot(const ring_span& of, std::uint64_t& waited) noexcept {
        if (keeps_oldest_) return next_unread(of, waited);
        // relaxed: a number; the swap decides
        const position at = of.cursor->fetch_add(1, relaxed) + 1;
        if (positions_end(of, at - 1)) return {};
        const std::uint64_t slot = of.slot_at(at);
        if (of.has(slot)) [[likely]]
            return {slot, at};
        return next_behind_end(of, at);
    }
    /// The next position for a lane to try. A lane that claims again and again within a short time
    /// draws several positions together, up to an eighth of those that it has drawn this way, and
    /// then claims without the cursor, whose cache line moves from claimer to claimer. Sub-buffers
    /// at positions of such a run that stay unused are kept for one more round. A run that other
    /// lanes have left behind is dropped: times would not ascend with the positions, by which
    /// readers seek, and its records would be overwritten sooner.
    [[nodiscard, gnu::always_inline]] sub_buffer_place next_slot(lane_state& lane,
                                                                 const ring_span& of,
                                                                 std::uint64_t& waited) noexcept {
        lane_mark& run = mark_of(lane);
        // relaxed, to the end: own words, and a number; the swap decides
        const position next = run.run_next.load(relaxed);
        const position end = run.run_end.load(relaxed);
        const position newest = of.cursor->load(relaxed);
        if (next != end && newest - next < 2 * of.soon) {
            run.run_next.store(next + 1, relaxed);
            return {of.slot_at(next), next};
        }
        if (of.longest <= 1 || keeps_oldest_) return next_slot(of, waited);
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
    /// Whether a closed sub-buffer must not be overwritten by the claimer that drew its place.
    [[nodiscard]] bool is_kept(const ring_span& of, const layout::index_entry& closed,
                               sub_buffer_place drawn) const noexcept {
        if (keep_ticks_ != 0) [[unlikely]] {
            const bool young = is_young(closed);
            // At the limit the oldest is overwritten, however young, as in any ring.
            if (!young || keeps_oldest_ || can_grow(of)) return young;
        }
        return is_fresh(of, closed, drawn);
    }
    /// One short sleep towards `block_for`; false when that is over, or if writers do not wait.
    /// `waited`: nanoseconds that the record has slept so far, for room and for a lane. The more
    /// threads of the process wait, the longer each sleeps: all together they must not take the
    /// processors from the reader that they wait for.
    [[nodiscard, gnu::cold]] bool wait_for_room(std::uint64_t& waited) noexcept {
        constexpr std::uint64_t one = 50'000, most = 20'000'000;
        if (!waits() || waited >= block_ns_) return false;
        const undisturbed scope;
        // relaxed, to the end: a hint
        const std::uint64_t others = waiting_.fetch_add(1, relaxed);
        const std::uint64_t left = block_ns_ - waited;
        const std::uint64_t nap = least(least(one * (others + 1), most), left);
        const timespec pause{0, static_cast<long>(nap)};
        const std::uint64_t before = clock::monotonic::now();
        ::nanosleep(&pause, nullptr);
        waiting_.fetch_sub(1, relaxed);
        waited += clock::monotonic::now() - before;
        return keeps_waiting_ == nullptr || keeps_waiting_();
    }
    /// In a child of a fork: its parent's threads wait no more.
    void forget_waiters() noexcept {
        waiting_.store(0, relaxed);  // relaxed: a hint
    }

    /// The same for a record that found no lane, or may hold no sub-buffer. Where writers do not
    /// wait, it lets other threads run, a few times, if some are lent: those are released after the
    /// record under way. `waited` then counts how often.
    [[nodiscard, gnu::cold]] bool wait_for_lane(std::uint64_t& waited, bool some_lent) noexcept {
        constexpr std::uint64_t most_times = 16;
        if (waits()) return wait_for_room(waited);
        if (!some_lent || waited == most_times) return false;
        ++waited;
        ::sched_yield();
        return true;
    }

private:
    /// How often a lane tries to draw a position before the record is refused. Each failure means
    /// that others drew some, so the tries come to an end; but they might not if others store
    /// anything they like into the file.
    static constexpr unsigned most_draws = 1U << 14;
    /// Whether the positions have run out, by a cursor or by what was drawn from it. The cursor
    /// then stays there: if it began at 0 again, older sub-buffers would seem newer.
    [[nodiscard]] static bool positions_end(const ring_span& of, position before) noexcept {
        if (before < last_position) [[likely]]
            return false;
        of.cursor->store(last_position, relaxed);  // relaxed: a number, which stays what it is
        return true;
    }
    /// Whether the ring may get more sub-buffers.
    [[nodiscard]] bool can_grow(const ring_span& of) const noexcept {
        // order: grow.ended:C pairs with grow.end:A
        return of.end != nullptr && memory_.ring().growth_ended.load(acquire) == 0 &&
               of.end_now() < memory_.plan().sub_buffer_limit;
    }
    /// When `keep_for` will have passed since a sub-buffer was closed.
    [[nodiscard]] std::uint64_t old_at(const layout::index_entry& closed) const noexcept {
        return closed.last_time.load(relaxed) + keep_ticks_;  // relaxed: a hint
    }
    /// Whether it was closed less than `keep_for` ago.
    [[nodiscard, gnu::cold]] bool is_young(const layout::index_entry& closed) const noexcept {
        return memory_.now() < old_at(closed);
    }
    /// Whether something in a ring that keeps by time may be overwritten. Linear in the
    /// sub-buffers, once a round.
    [[nodiscard, gnu::cold]] bool has_old(const ring_span& of) const noexcept {
        const std::uint64_t end = of.end_now();
        for (std::uint64_t slot = of.first; slot < end; ++slot) {
            // relaxed: a hint; the swap of the state decides
            const unsigned state =
                stamped::from(memory_.sub_buffer(slot).state.load(relaxed)).state;
            if (state == static_cast<unsigned>(sub_buffer_state::free)) return true;
            if (state == static_cast<unsigned>(sub_buffer_state::closed) &&
                !is_young(memory_.index(slot))) {
                return true;
            }
        }
        return false;
    }
    /// Whether a ring has a sub-buffer at a position that was drawn, or is about to be. Beyond its
    /// end it has none: then the ring grows, or its cursor is moved to the next round.
    [[nodiscard]] bool is_there(const ring_span& of, position at) noexcept {
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
    /// The same after position `at` was drawn, whose slot is beyond the ring's end.
    [[nodiscard, gnu::cold]] sub_buffer_place next_behind_end(const ring_span& of,
                                                              position at) noexcept {
        for (unsigned tries = 0; tries != most_draws; ++tries) {
            if (positions_end(of, at - 1)) break;
            const std::uint64_t slot = of.slot_at(at);
            if (of.has(slot) || is_there(of, at)) return {slot, at};
            at = of.cursor->fetch_add(1, relaxed) + 1;  // relaxed: a number; the swap decides
        }
        return {};
    }
    /// The same where nothing unread is overwritten.
    [[nodiscard, gnu::cold]] sub_buffer_place next_unread(const ring_span& of,
                                                          std::uint64_t& waited) noexcept {
        for (unsigned tries = 0; tries != most_draws;) {
            position last = of.cursor->load(relaxed);  // relaxed: a number; looked at again
            if (positions_end(of, last)) break;
            if (!is_there(of, last + 1)) {
                ++tries;
                continue;
            }
            position next = last + 1;
            // A ring found full stays full until the oldest unread sub-buffer is freed or, by time,
            // the first is old enough. But look again now and then: a session may have freed
            // another. relaxed, all: a hint, and the count that says when
            const bool known = full_ != full_mode::block && full_after_.load(relaxed) == last &&
                               full_times_.load(relaxed) % 64 != 0;
            const bool still =
                known && keep_ticks_ != 0 && memory_.now() < full_until_.load(relaxed);
            if (known && keep_ticks_ == 0) next = full_at_.load(relaxed);
            // Usable: sub-buffers never used, read and freed by a session, or old enough. Those
            // that writers and sessions hold are passed over: a resting writer must not stop
            // others.
            bool usable = false;
            std::uint64_t slot = 0;
            std::uint64_t until = ~std::uint64_t{0};
            for (; !still && next - last <= of.lap; next = of.following(next)) {
                slot = of.slot_at(next);
                if (!of.has(slot)) continue;  // a hint of another ring, or one round ahead
                // A thread that sees that another took the sub-buffer sees the cursor that it drew.
                // order: claim.next:A pairs with claim:C, writer.begin:A, writer.end:A,
                // reclaim.close:A, session.return:A, drain.free:A, drain.keep:A, here.claim:B,
                // here.ready:A, here.close:A, reclaim.close:B
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
                if (wait_for_room(waited)) continue;
                if (full_ == full_mode::stop) shut_gates();
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
    /// full_mode::stop: recording ends.
    [[gnu::cold]] void shut_gates() const noexcept {
        // relaxed: a gate is advice that takes effect soon
        for (auto& gate : memory_.own_gates().gates)
            gate.fetch_or(layout::gate_recorder_off, relaxed);
    }
    /// Grows the ring to `wanted` sub-buffers if the limit and the disk allow it. Idempotent; any
    /// thread may call it. After a failure nobody tries again, because positions have begun to
    /// wrap.
    [[gnu::cold]] void grow(std::uint64_t wanted) noexcept {
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
    /// sub-buffer for several rounds. When it closes it, the position is the oldest of all, though
    /// the records are not, and the next claimer would overwrite them: a quiet thread might keep
    /// one record. So the sub-buffer is passed over, once. Where all threads are alike this never
    /// happens, and asking costs one load from a line that the claimer needs anyway.
    ///
    /// A position may also be drawn before the sub-buffer there is closed, and tried after. If the
    /// claimer slept for more than half a round, the sub-buffer is treated as if closed long ago.
    [[nodiscard]] bool is_fresh(const ring_span& of, const layout::index_entry& closed,
                                sub_buffer_place drawn) const noexcept {
        // relaxed: a hint; modulo 2^32
        const std::uint32_t since =
            static_cast<std::uint32_t>(drawn.pos) - closed.closed_at.load(relaxed);
        if (of.half != 0) [[likely]]
            return since + static_cast<std::uint32_t>(of.half) < 2 * of.half;
        const std::uint64_t size = of.size();
        if (since + static_cast<std::uint32_t>(size / 2) < size / 2 * 2) return true;
        // The end of a round lies in between: the positions there that are other rings' were
        // skipped.
        const auto passed = static_cast<std::uint32_t>(of.lap - size);
        return drawn.slot - of.first < size / 2 && since - passed < size / 2;
    }

    const trace_memory& memory_;
    full_mode full_;
    bool keeps_oldest_;
    std::uint64_t step_;  // in sub-buffers
    std::uint64_t block_ns_;
    std::uint64_t keep_ticks_;  // 0: by bytes alone
    bool (*keeps_waiting_)();
    atomic<std::uint64_t> waiting_{0};                     ///< threads that wait for room
    atomic<std::uint64_t> full_after_{~std::uint64_t{0}};  // the cursor when it was found full,
    atomic<std::uint64_t> full_at_{0};                     // the position where that was seen,
    atomic<std::uint64_t> full_until_{0};                  // by time: until when it is full,
    atomic<std::uint32_t> full_times_{0};                  // and how often it was found full
};

}  // namespace trace_ring::inline v1::impl
