// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// How the threads that run on a processor move its lane from one sub-buffer to the next. A
/// thousand threads may be preempted in the middle of that, so no thread holds anything meanwhile.
/// Each step is either a sequence that changes the processor's words if they are still those it was
/// planned from, or a swap that only one thread can win. The next thread continues from there.
/// @code
///   draw     position p of the ring              next = sub-buffer at p
///   claim    its state: (older, closed) --swap--> (p, reset)
///   install  header; old closed to all           current = next
///            (p, reset) -> (p, active)           open to this thread      last
///   close    the old: count, end time            (q, active) -> (q, closed)
/// @endcode
/// A process killed at any instruction leaves at most three sub-buffers held by a lane: the one to
/// come, the one in use and the one before. They are found by the lane's number when they are
/// reclaimed (lane_book.hpp).

#include <sys/prctl.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <trace_ring/atomic.hpp>
#include <trace_ring/recorder/cpu/append.hpp>
#include <trace_ring/recorder/lane/holdings.hpp>
#include <trace_ring/recorder/thread/lanes_by_thread.hpp>

namespace trace_ring::inline v1::impl {

/// The table of the lanes of all processors, and the steps that move a lane on.
class cpu_steps {
protected:
    /// What the caller does next: write its record, call `step` again, or count the record as lost.
    enum class next_step { write, again, lost };
    /// The sub-buffer that was drawn for a lane.
    struct pending {
        sub_buffer_header* sub = nullptr;
        position at = no_position;
    };

    /// `of` is null in a recorder that records nothing.
    explicit cpu_steps(lanes_by_thread* of) noexcept : threads_(of) {}

    /// Makes one step towards a record of `length` bytes by this thread on `cpu`, in a lane
    /// that has been made. `waited` is as in claimer::wait_for_room.
    [[nodiscard]] next_step step(cpu_words& lane, std::uint32_t cpu, std::uint32_t length,
                                 std::uint64_t& waited) noexcept {
        // relaxed, to the end: each is a guard of what is planned from it
        const std::uint64_t current = lane.current.load(relaxed);
        const std::uint64_t last = lane.last.load(relaxed);
        if (last != 0 && last != current) return close(cpu, lane, last);
        if (current != 0) {
            sub_buffer_header& sub = *place<sub_buffer_header>(current);
            const std::uint64_t state = sub.state.load(relaxed);
            const auto seen = stamped::from(state);
            if (seen.state == static_cast<unsigned>(sub_buffer_state::reset)) {
                // Another thread installed it and was interrupted before the last store.
                const auto open = state_word(seen.pos, sub_buffer_state::active);
                static_cast<void>(change(cpu, {{&lane.current, current}, {&sub.state, state}},
                                         {{&sub.state, open}}));
                return next_step::again;
            }
            const std::uint64_t commit = commit_of(sub).load(relaxed);
            const std::uint64_t announced = lane.announced.load(relaxed);
            const std::uint64_t now = threads_->memory_.now();  // after the guards
            const bool thread = static_cast<std::uint32_t>(announced) == own_thread;
            const bool time = announced >> 32 == now >> 32;
            const std::uint64_t more = !thread ? named_owner_record_bytes  // has the time, too
                                       : time  ? 0
                                               : time_record_bytes;
            if (end_of(commit) + length + more <= limit()) {
                if (more == 0) return next_step::write;
                static_cast<void>(announce(cpu, lane, sub, state, commit, announced, now));
                return next_step::again;
            }
        }
        pending coming;
        if (!find_pending(lane, coming)) return draw(cpu, lane, current, waited);
        return claim(cpu, lane, current, last, coming);
    }

    /// Finds out what announces this thread's records, when it is new or in a child of a fork.
    static void know_thread() noexcept {
        char name[16] = {};
        ::prctl(PR_GET_NAME, name);
        std::uint64_t words[2];
        std::memcpy(words, name, sizeof words);
        own_name[0] = words[0];
        own_name[1] = words[1];
        signal_fence(seq_cst);  // a handler that sees the number sees the name
        own_thread = kernel_thread();
    }

    template <class T>
    [[nodiscard]] static T* place(std::uint64_t address) noexcept {
        return reinterpret_cast<T*>(as_size(address));
    }
    [[nodiscard]] static std::uint64_t address(const void* at) noexcept {
        return reinterpret_cast<std::uintptr_t>(at);
    }
    /// The commit word and, above it, `refused`, which does not change while the lane has it.
    [[nodiscard]] static shared_atomic<std::uint64_t>& commit_of(sub_buffer_header& sub) noexcept {
        return word_at<std::uint64_t>(&sub, offsetof(sub_buffer_header, commit));
    }
    [[nodiscard]] static std::uint32_t end_of(std::uint64_t commit) noexcept {
        return commit_word::offset(static_cast<std::uint32_t>(commit));
    }
    [[nodiscard]] static std::uint64_t records_to(const sub_buffer_header& sub,
                                                  std::uint64_t commit) noexcept {
        return sub.first_position.load(relaxed) +  // relaxed: guarded by its state
               commit_word::records(static_cast<std::uint32_t>(commit));
    }
    [[nodiscard]] std::uint64_t limit() const noexcept {
        return threads_->memory_.plan().sub_buffer_bytes;
    }
    [[nodiscard]] const ring_span& span_of(const cpu_words& lane) const noexcept {
        // relaxed, both: neither changes
        return threads_
            ->rings_[place<layout::lane_entry>(lane.entry.load(relaxed))->ring.load(relaxed)];
    }
    void drop_held(const cpu_words& lane) const noexcept { holdings::drop(span_of(lane)); }

    /// A list of guards, then of stores, for rseq::store_if.
    template <std::size_t N, std::size_t M>
    [[nodiscard]] bool change(std::uint32_t cpu, const rseq::word_value (&guards)[N],
                              const rseq::word_value (&stores)[M]) const noexcept {
        rseq::word_value list[N + M];
        for (std::size_t i = 0; i < N; ++i) list[i] = guards[i];
        for (std::size_t i = 0; i < M; ++i) list[N + i] = stores[i];
        return rseq::store_if(table_.area, cpu, list, list + N, list + N + M - 1);
    }

    /// Whether a sub-buffer was drawn for this lane, at some moment during the call. Positions are
    /// drawn once, and stored before `next`: while the position stays the same, so does the
    /// sub-buffer it belongs to.
    [[nodiscard]] static bool find_pending(const cpu_words& lane, pending& out) noexcept {
        for (;;) {
            // order: here.next:A pairs with here.draw:A
            const std::uint64_t next = lane.next.load(acquire);
            // order: here.next:B pairs with here.draw:A
            out.at = lane.next_position.load(acquire);
            // order: here.next:C pairs with here.draw:A, here.ready:A
            const std::uint64_t current = lane.current.load(acquire);
            out.sub = place<sub_buffer_header>(next);
            // relaxed, both: after the loads above, which must not be older
            if (lane.next.load(relaxed) != next || lane.next_position.load(relaxed) != out.at)
                continue;
            return next != 0 && next != current;
        }
    }

    lanes_by_thread* threads_;
    cpu_table table_{};  ///< no area: no sequences

private:
    static constexpr std::uint64_t half = 0xFFFFFFFFU;

    /// Writes a time record or, for another thread than the announced one, an owner record, which
    /// has the time, too.
    [[nodiscard]] bool announce(std::uint32_t cpu, cpu_words& lane, sub_buffer_header& sub,
                                std::uint64_t state, std::uint64_t commit, std::uint64_t announced,
                                std::uint64_t now) const noexcept {
        const bool known = static_cast<std::uint32_t>(announced) == own_thread;
        const note said(now, known ? time_record_bytes : named_owner_record_bytes, owner());
        const std::uint32_t at = end_of(commit);
        // A time record is shorter: the places of missing words repeat its first word.
        const auto to = [&](std::uint32_t i) {
            return &word_at<std::uint64_t>(&sub, at + (i * 8 < said.bytes ? i : 0) * 8);
        };
        const auto value = [&](std::uint32_t i) { return said.words[i * 8 < said.bytes ? i : 0]; };
        const rseq::word_value list[] = {
            {&lane.current, sub_address(sub)},
            {&sub.state, state},
            {&commit_of(sub), commit},
            {&lane.announced, announced},
            // Open to no thread until the last store: a thread announced before could otherwise
            // write a record behind the new name.
            {&lane.announced, 0},
            {to(0), value(0)},
            {to(1), value(1)},
            {to(2), value(2)},
            {to(3), value(3)},
            {to(4), value(4)},
            {&commit_of(sub), commit + said.bytes},
            {&lane.announced, cpu_words::announce(own_thread, now)},
        };
        // order: here.note:A pairs with read:B, file.read:B, batch.read:A, reclaim.find:B,
        // reclaim.find:D
        return rseq::store_if(table_.area, cpu, list, list + 4,
                              list + sizeof list / sizeof *list - 1);
    }
    /// The words of a record that the library itself writes.
    struct note {
        note(std::uint64_t now, std::size_t length, const owner_record& who) noexcept
            : bytes(static_cast<std::uint32_t>(length)),
              words{(now & half) | std::uint64_t{record_word::pack(record_word::time_id, length)}
                                       << 32,
                    now, who.word(), who.name[0], who.name[1]} {}
        std::uint32_t bytes;
        std::uint64_t words[5];
    };
    [[nodiscard]] owner_record owner() const noexcept {
        return {own_thread,
                static_cast<std::uint16_t>(threads_->process()),
                0,
                true,
                {own_name[0], own_name[1]}};
    }
    [[nodiscard]] static std::uint64_t sub_address(const sub_buffer_header& sub) noexcept {
        return address(&sub);
    }
    [[nodiscard]] static bool may_be_claimed(stamped found, position at) noexcept {
        return found.pos < at && (found.state == static_cast<unsigned>(sub_buffer_state::free) ||
                                  found.state == static_cast<unsigned>(sub_buffer_state::closed));
    }
    [[nodiscard]] static next_step refuse(cpu_words& lane) noexcept {
        // relaxed, both: never changes, and a counter
        auto& entry = *place<layout::lane_entry>(lane.entry.load(relaxed));
        entry.refused.fetch_add(1, relaxed);  // reported in the next sub-buffer
        return next_step::lost;
    }
    /// Draws the next position for this lane, unless another thread was faster.
    [[nodiscard]] next_step draw(std::uint32_t cpu, cpu_words& lane, std::uint64_t current,
                                 std::uint64_t& waited) noexcept {
        const ring_span& of = span_of(lane);
        // relaxed, both: guards
        const std::uint64_t before = lane.next.load(relaxed);
        const position before_at = lane.next_position.load(relaxed);
        if (before != 0 && before != current) return next_step::again;
        // relaxed, to the end: counters, guards, and states that the swap decides on
        bool crowded = false;  // makes no difference: threads share these sub-buffers
        if (!threads_->reclaimer_.wait_to_hold(of, crowded, waited)) {
            threads_->reclaimer_.note_writers(*of.writers, table_.cpus);
            return refuse(lane);
        }
        for (std::uint64_t tried = 2 * of.size() + 16; tried != 0; --tried) {
            const sub_buffer_place drawn = threads_->claimer_.next_slot(of, waited);
            const position at = drawn.pos;
            if (at == no_position) break;
            sub_buffer_header& sub = threads_->memory_.sub_buffer(drawn.slot);
            const auto found = stamped::from(sub.state.load(relaxed));
            if (!may_be_claimed(found, at)) continue;
            if (found.state == static_cast<unsigned>(sub_buffer_state::closed) &&
                threads_->claimer_.is_kept(of, threads_->memory_.index(drawn.slot), drawn)) {
                continue;
            }
            auto& entry = *place<layout::lane_entry>(lane.entry.load(relaxed));
            // The position goes into the file first, so that a sub-buffer that a dying claimer
            // leaves in `reset` can be found. A reader that sees it finds the lane's earlier
            // sub-buffers.
            // order: here.newest:A pairs with table.read:B, lane.look:A, snapshot.copy:C
            thread_fence(release);
            // order: here.draw:A pairs with here.next:A, here.next:B, here.next:C
            if (!change(cpu,
                        {{&lane.current, current},
                         {&lane.next, before},
                         {&lane.next_position, before_at}},
                        {{&entry.newest, at},
                         {&lane.next_position, at},
                         {&lane.next, sub_address(sub)}})) {
                drop_held(lane);  // and the position stays vacant
            }
            return next_step::again;
        }
        drop_held(lane);
        if (!threads_->claimer_.keeps_oldest())
            static_cast<void>(threads_->reclaimer_.reclaim_if_due());  // all of them are held
        return refuse(lane);
    }

    /// Claims the sub-buffer to come, or makes a claimed one the one in use.
    [[nodiscard]] next_step claim(std::uint32_t cpu, cpu_words& lane, std::uint64_t current,
                                  std::uint64_t last, const pending& coming) noexcept {
        sub_buffer_header& sub = *coming.sub;
        const std::uint64_t reset = state_word(coming.at, sub_buffer_state::reset);
        std::uint64_t state = sub.state.load(relaxed);  // relaxed: the swap decides
        if (state == reset) {
            install(cpu, lane, current, last, coming);
            return next_step::again;
        }
        pending still;
        if (!find_pending(lane, still) || still.sub != &sub || still.at != coming.at)
            return next_step::again;
        if (!may_be_claimed(stamped::from(state), coming.at)) {  // another was faster
            if (change(cpu,
                       {{&lane.current, current},
                        {&lane.next, sub_address(sub)},
                        {&lane.next_position, coming.at},
                        {&sub.state, state}},
                       {{&lane.next, 0}})) {
                drop_held(lane);
            }
            return next_step::again;
        }
        // Before the swap: afterwards another thread may write there.
        const std::uint32_t commit = sub.commit.load(relaxed);  // relaxed: the swap checks it
        // order: here.claim:B pairs with writer.end:A, reclaim.close:A, claim.next:A,
        // reclaim.find:A
        if (!sub.state.compare_exchange_strong(state, reset, acq_rel)) return next_step::again;
        // order: here.claim:A pairs with read:C, batch.read:B, file.read:C, chain.look:B
        thread_fence(release);
        if (stamped::from(state).state == static_cast<unsigned>(sub_buffer_state::closed)) {
            layout::ring_state& ring = threads_->memory_.ring();
            // relaxed: a counter
            ring.overwritten_records.fetch_add(commit_word::records(commit), relaxed);
        }
        // A reader may have held it for a moment, so that the lane dropped it meanwhile.
        if (lane.next.load(relaxed) != sub_address(sub)) {  // relaxed: after the swap
            std::uint64_t taken = reset;
            // order: here.free:A pairs with read:A, file.read:A, chain.look:A, claim:C
            static_cast<void>(sub.state.compare_exchange_strong(
                taken, state_word(coming.at, sub_buffer_state::free), release));
        }
        return next_step::again;
    }

    /// Makes the claimed sub-buffer the one in use.
    void install(std::uint32_t cpu, cpu_words& lane, std::uint64_t current, std::uint64_t last,
                 const pending& coming) noexcept {
        // relaxed, to the end: guards, or words that only this lane writes
        auto& entry = *place<layout::lane_entry>(lane.entry.load(relaxed));
        sub_buffer_header& sub = *coming.sub;
        layout::index_entry& index = threads_->memory_.index(threads_->memory_.slot_number(sub));
        const std::uint64_t number = entry.number.load(relaxed);
        const std::uint64_t told = lane.told.load(relaxed);
        const std::uint64_t refused = entry.refused.load(relaxed);
        std::uint64_t commit = 0;
        std::uint64_t before = entry.written.load(relaxed);
        position previous = no_position;
        auto* old_commit = &lane.current;  // a guard that always holds: there is no old one
        if (current != 0) {
            sub_buffer_header& old = *place<sub_buffer_header>(current);
            old_commit = &commit_of(old);
            previous = stamped::from(old.state.load(relaxed)).pos;
            commit = old_commit->load(relaxed);
            before = records_to(old, commit);
        }
        // Read after the guards: what was committed before them is not later than this.
        const std::uint64_t now = threads_->memory_.now();
        const note said(now, named_owner_record_bytes, owner());
        const auto first = [&](std::uint32_t i) -> rseq::word_value {
            return {&word_at<std::uint64_t>(&sub, sizeof(sub_buffer_header) + i * 8),
                    said.words[i]};
        };
        const std::uint64_t empty = commit_word::empty + said.bytes;
        const std::uint64_t reset = state_word(coming.at, sub_buffer_state::reset);
        const rseq::word_value list[] = {
            {&lane.current, current},
            {old_commit, current != 0 ? commit : current},
            {&lane.last, last},
            {&lane.next, sub_address(sub)},
            {&lane.next_position, coming.at},
            {&sub.state, reset},
            {&lane.told, told},
            {&index.pos, 0},
            {&index.first_time, now},
            {&index.last_time, 0},
            {&word_at<std::uint64_t>(&index, offsetof(layout::index_entry, lane)),
             number | (coming.at & half) << 32},
            {&index.pos, coming.at},
            {&word_at<std::uint64_t>(&sub, 0), threads_->sub_buffers_.magic() | number << 32},
            {&sub.first_position, before},
            {&sub.base_time, now},
            {&sub.previous, previous},
            {&sub.end_time, 0},
            {&commit_of(sub), empty | (refused - told) << 32},
            {&word_at<std::uint64_t>(&sub, offsetof(sub_buffer_header, too_long)), 0},
            first(0),
            first(1),
            first(2),
            first(3),
            first(4),
            {&lane.last, current},
            {&lane.announced, 0},  // closed to all threads
            {&lane.current, sub_address(sub)},
            {&lane.told, refused},
            {&sub.state, state_word(coming.at, sub_buffer_state::active)},
            {&lane.announced, cpu_words::announce(own_thread, now)},
        };
        constexpr std::size_t guards = 7;
        // order: here.ready:A pairs with read:A, file.read:A, chain.look:A, claim.next:A,
        // reclaim.find:A, here.next:C, reclaim.find:C, lane.again:A
        // order: here.index:A pairs with index.look:A, table.read:C, lane.again:A
        if (rseq::store_if(table_.area, cpu, list, list + guards,
                           list + sizeof list / sizeof *list - 1))
            threads_->do_due_work(now);
    }

    /// Closes the sub-buffer that was in use before.
    [[nodiscard]] next_step close(std::uint32_t cpu, cpu_words& lane, std::uint64_t last) noexcept {
        // relaxed, to the end: guards, or words that only this lane writes
        sub_buffer_header& sub = *place<sub_buffer_header>(last);
        const std::uint64_t state = sub.state.load(relaxed);
        const auto seen = stamped::from(state);
        auto& entry = *place<layout::lane_entry>(lane.entry.load(relaxed));
        const bool ours = seen.state == static_cast<unsigned>(sub_buffer_state::active) &&
                          sub.lane.load(relaxed) == entry.number.load(relaxed);
        if (!ours) {
            static_cast<void>(
                change(cpu, {{&lane.last, last}, {&sub.state, state}}, {{&lane.last, 0}}));
            return next_step::again;
        }
        layout::index_entry& index = threads_->memory_.index(threads_->memory_.slot_number(sub));
        const std::uint64_t commit = commit_of(sub).load(relaxed);
        const std::uint64_t closed_at =
            span_of(lane).cursor->load(relaxed);  // as lane_sub_buffers::close
        const std::uint64_t now = threads_->memory_.now();
        // order: here.written:A pairs with table.read:B, snapshot.copy:C
        // order: here.close:A pairs with read:A, file.read:A, batch.read:A, chain.look:A, claim:C,
        // claim.next:A
        if (change(cpu, {{&lane.last, last}, {&sub.state, state}, {&commit_of(sub), commit}},
                   {{&entry.written, records_to(sub, commit)},
                    {&sub.end_time, now},
                    {&word_at<std::uint64_t>(&index, offsetof(layout::index_entry, lane)),
                     entry.number.load(relaxed) | closed_at << 32},
                    {&index.last_time, now},
                    {&sub.state, state_word(seen.pos, sub_buffer_state::closed)}})) {
            drop_held(lane);
        }
        return next_step::again;
    }
};

}  // namespace trace_ring::inline v1::impl
