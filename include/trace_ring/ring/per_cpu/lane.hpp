// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// One lane of a ring with a lane for each processor: its sub-buffers, and how the threads that run
/// on the processor claim the next one.
///
/// Each change is a list of guards and stores. Either all stores are made, or only the first few;
/// then the change is planned again from what the lane holds. No lock is held during a change, and
/// a thread that sleeps in the middle of one finds on waking that its guards no longer hold.
/// @code
///   guards: current sub-buffer, its position, its commit word     (no other thread was faster)
///   stores: next: (p + 1, reset); header; (p + 1, active)         (no reader looks there yet)
///           old: end time
///           lane: current = next                          last    (from here on readers do)
///   then    old: (p, active) --swap--> (p, closed)                (for readers that come later)
/// @endcode

#include <cstddef>
#include <cstdint>

#include <trace_ring/atomic.hpp>
#include <trace_ring/format/sub_buffer.hpp>
#include <trace_ring/position.hpp>
#include <trace_ring/ring/per_cpu/section.hpp>
#include <trace_ring/ring/sub_buffers/reader.hpp>

namespace trace_ring::inline v1 {

/// A lane as its readers see it. Any thread, at any time, while the ring lives.
template <std::uint32_t SubBytes>
class cpu_lane {
public:
    static constexpr std::uint32_t sub_buffer_bytes = SubBytes;

    cpu_lane(lanes_head* head, std::uint32_t number) noexcept
        : head_(head),
          number_(number),
          slots_(head->per_lane.load(relaxed)) {}  // relaxed: set up by this thread

    /// The processor's number; above those are the spare lanes, for threads that cannot use their
    /// processor's.
    [[nodiscard]] std::uint32_t number() const noexcept { return number_; }
    /// Sub-buffers.
    [[nodiscard]] std::uint64_t capacity() const noexcept { return slots_; }
    /// The newest sub-buffer; 0 before the first record.
    [[nodiscard]] position produced() const noexcept {
        for (;;) {
            // order: cpu.current:A pairs with cpu.install:A, cpu.install_alone:A
            const std::uint64_t word = lane().current.load(acquire);
            if (lane_word::distance(word) == 0) return no_position;
            // relaxed: a lane that has claimed the next sub-buffer meanwhile is noticed below
            const auto state = stamped::from(sub_at(word).state.load(relaxed));
            // order: cpu.current:C pairs with cpu.install:A, cpu.install_alone:A
            thread_fence(acquire);
            if (lane().current.load(relaxed) == word) return state.pos;  // relaxed: after the fence
        }
    }
    /// Records committed so far.
    [[nodiscard]] std::uint64_t written() const noexcept {
        for (;;) {
            // order: cpu.current:B pairs with cpu.install:A, cpu.install_alone:A
            const std::uint64_t word = lane().current.load(acquire);
            if (lane_word::distance(word) == 0) return 0;
            const sub_buffer_header& sub = sub_at(word);
            const std::uint64_t state = sub.state.load(relaxed);  // relaxed: compared again below
            const std::uint64_t before = sub.first_position.load(relaxed);  // relaxed: as above
            const std::uint32_t commit = sub.commit.load(relaxed);          // relaxed: as above
            // order: cpu.current:D pairs with cpu.install:A, cpu.install_alone:A
            thread_fence(acquire);
            // relaxed: after the fence; a sub-buffer used again has another position
            if (sub.state.load(relaxed) == state && lane().current.load(relaxed) == word)
                return before + commit_word::records(commit);
        }
    }
    /// How many of them have been overwritten.
    [[nodiscard]] std::uint64_t overwritten() const noexcept {
        for (;;) {
            const position newest = produced();
            if (newest <= slots_) return 0;
            for (position p = newest - slots_ + 1; p <= newest; ++p) {
                const auto& sub = *reinterpret_cast<sub_buffer_header*>(slot_at(index_of(p)));
                const std::uint64_t state = sub.state.load(relaxed);  // relaxed: compared below
                const std::uint64_t before = sub.first_position.load(relaxed);  // relaxed: as above
                // order: cpu.current:E pairs with cpu.reset:A, cpu.reset_alone:A,
                // cpu.install_alone:A
                thread_fence(acquire);
                // relaxed: after the fence
                if (stamped::from(state).pos == p && sub.state.load(relaxed) == state)
                    return before;
            }
        }
    }

    /// Reads from the oldest record on, and new ones as they come.
    [[nodiscard]] sub_buffer_reader<cpu_lane> reader() const {
        return sub_buffer_reader<cpu_lane>(*this);
    }
    /// Reads from the newest record back.
    [[nodiscard]] backward_sub_buffer_reader<cpu_lane> backward_reader() const {
        return backward_sub_buffer_reader<cpu_lane>(*this);
    }

    [[nodiscard]] std::uint64_t index_of(position p) const noexcept { return slot_of(p, slots_); }
    [[nodiscard]] std::byte* slot_at(std::uint64_t index) const noexcept {
        // relaxed: never changes
        const std::uint64_t first = head_->sub_offset.load(relaxed) * lane_word::unit;
        return reinterpret_cast<std::byte*>(head_) +
               static_cast<std::size_t>(first + (number_ * slots_ + index) * SubBytes);
    }

    /// The words of a lane that a writer plans a change from.
    struct look {
        std::uint64_t word;
        sub_buffer_header* sub;  ///< before the first sub-buffer: the lanes' head
        std::uint64_t state;
        std::uint64_t commit;  ///< low half; high half: `refused`
        [[nodiscard]] std::uint32_t end() const noexcept {
            return commit_word::offset(static_cast<std::uint32_t>(commit));
        }
        /// There is room, also for a time record where one must go first.
        [[nodiscard]] bool fits(std::uint32_t length, std::uint64_t time) const noexcept {
            return end() + length + (announced(time) ? 0 : time_record_bytes) <= SubBytes;
        }
        [[nodiscard]] bool announced(std::uint64_t time) const noexcept {
            return lane_word::high(word) == static_cast<std::uint32_t>(time >> 32);
        }
    };
    [[nodiscard]] look now() const noexcept {
        // relaxed, to the end: each is a guard of the change that is planned from it
        look at{};
        at.word = lane().current.load(relaxed);
        at.sub = &sub_at(at.word);
        at.state = at.sub->state.load(relaxed);
        at.commit = commit_of(*at.sub).load(relaxed);
        return at;
    }

    /// Writes a time record, because the clock's high half has changed. `do_it(guard, store, last)`
    /// does what rseq::store_if does. `time` was read after `at`. The commit word need not be the
    /// last store, because a second time record would do no harm.
    template <class Do>
    bool put_time(const look& at, std::uint64_t time, Do&& do_it) const noexcept {
        const std::uint64_t word = record_word::pack(record_word::time_id, time_record_bytes);
        const std::uint64_t half = 0xFFFFFFFFU;
        const rseq::word_value list[] = {
            {&lane().current, at.word},
            {&at.sub->state, at.state},
            {&commit_of(*at.sub), at.commit},
            {&word_at<std::uint64_t>(at.sub, at.end()), (time & half) | word << 32},
            {&word_at<std::uint64_t>(at.sub, at.end() + 8), time},
            {&commit_of(*at.sub), at.commit + time_record_bytes},
            {&lane().current, (at.word & half) | time >> 32 << 32},
        };
        return do_it(list, list + 3, list + 6);
    }

    /// Claims the next sub-buffer for the lane, and closes the current one.
    template <class Do>
    bool go_on(const look& at, std::uint64_t time, Do&& do_it) const noexcept {
        const bool first = lane_word::distance(at.word) == 0;
        const position last = first ? no_position : stamped::from(at.state).pos;
        auto& next = *reinterpret_cast<sub_buffer_header*>(slot_at(index_of(last + 1)));
        const auto state = [last](sub_buffer_state s) {
            return stamped{last + 1, static_cast<unsigned>(s)}.word();
        };
        const auto distance = static_cast<std::uint64_t>(reinterpret_cast<std::byte*>(&next) -
                                                         reinterpret_cast<std::byte*>(head_));
        std::uint64_t before = 0;
        if (!first) {
            before = at.sub->first_position.load(relaxed) +  // relaxed: guarded by the state
                     commit_word::records(static_cast<std::uint32_t>(at.commit));
        }
        // Before the first sub-buffer the commit word is the head's, and no other word of the head
        // is touched.
        auto* const end_time = first ? &next.end_time : &at.sub->end_time;
        auto* const old_state = first ? &lane().current : &at.sub->state;
        const rseq::word_value list[] = {
            {&lane().current, at.word},
            {old_state, first ? at.word : at.state},
            {&commit_of(*at.sub), at.commit},
            {&next.state, state(sub_buffer_state::reset)},
            {&word_at<std::uint64_t>(&next, 0), sub_buffer_magic | std::uint64_t{number_} << 32},
            {&next.first_position, before},
            {&next.base_time, time},
            {&next.previous, last},
            {&next.end_time, 0},
            {&commit_of(next), commit_word::empty},
            {&word_at<std::uint64_t>(&next, 56), 0},
            {&next.state, state(sub_buffer_state::active)},
            {end_time, first ? 0 : time},
            {&lane().current, lane_word::pack(distance, time)},
        };
        if (!do_it(list, list + 3, list + 13)) return false;
        if (!first) {
            // A swap, because this thread may have slept since the stores, and the sub-buffer may
            // be in use for another position.
            std::uint64_t old = at.state;
            const auto closed = static_cast<unsigned>(sub_buffer_state::closed);
            // order: cpu.close:A pairs with read:A
            static_cast<void>(
                at.sub->state.compare_exchange_strong(old, stamped{last, closed}.word(), release));
        }
        return true;
    }

    /// The lane's own words.
    [[nodiscard]] lane_word& lane() const noexcept {
        return reinterpret_cast<lane_word*>(head_ + 1)[number_];
    }

private:
    [[nodiscard]] sub_buffer_header& sub_at(std::uint64_t word) const noexcept {
        return *reinterpret_cast<sub_buffer_header*>(
            reinterpret_cast<std::byte*>(head_) +
            static_cast<std::size_t>(lane_word::distance(word)));
    }
    /// The commit word and, above it, `refused`, which a lane does not use.
    [[nodiscard]] static shared_atomic<std::uint64_t>& commit_of(sub_buffer_header& sub) noexcept {
        return word_at<std::uint64_t>(&sub, offsetof(sub_buffer_header, commit));
    }

    lanes_head* head_;
    std::uint32_t number_;
    std::uint64_t slots_;
};

}  // namespace trace_ring::inline v1
