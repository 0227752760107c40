// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The lanes of a recorder that has one for each processor, and how the threads that run there move
/// a lane from one sub-buffer to the next. A thousand threads may be preempted in the middle of
/// that, so no thread holds anything meanwhile. Each step is either a sequence that changes the
/// processor's words if they are still those it was planned from, or a swap that only one thread
/// can win; the next thread continues from there.
/// @code
///   draw     position p of the ring              next = sub-buffer at p
///   take     its state: (older, closed) --swap--> (p, reset)
///   go on    header; old closed to all           current = next
///            (p, reset) -> (p, active)           open to this thread      last
///   close    the old: count, end time            (q, active) -> (q, closed)
/// @endcode
/// A record is written only if its thread is the one announced last. A thread that finds another
/// announced announces itself first, by an owner record: at most once each time that the processor
/// changes threads.
///
/// A process killed at any instruction leaves at most three sub-buffers held by a lane: the one to
/// come, the one in use and the one before. They are found by the lane's number when they are
/// reclaimed (lane_book.hpp).

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

#include <trace_ring/atomic.hpp>
#include <trace_ring/recorder/cpu/append.hpp>
#include <trace_ring/recorder/thread/lanes_by_thread.hpp>

namespace trace_ring::inline v1::impl {

/// Whether this span is the last one open of those that this thread began in processors' lanes.
[[nodiscard]] inline bool is_innermost_here(const open_span& span) noexcept {
    return own_span.begun == span.begun && own_span.lane == span.lane;
}
/// Notes that it has begun in a processor's lane.
inline void enter_here(open_span& span) noexcept {
    span.around = own_span.begun;
    span.around_lane = own_span.lane;
    signal_fence(seq_cst);  // a handler's own spans come and go in between
    own_span.begun = span.begun;
    own_span.lane = span.lane;
}
/// Notes that it has ended; it was the last one open.
inline void leave_here(const open_span& span) noexcept {
    own_span.begun = span.around;
    own_span.lane = span.around_lane;
}

class cpu_lanes {
public:
    enum class answer { yes, no, elsewhere };

    /// Without lanes, and `table().area` is 0, where the processor or kernel has no sequences,
    /// sequences cannot read the file's clock, or the kernel does not wipe pages.
    cpu_lanes(lanes_by_thread* of, bool readable) noexcept : threads_(of) {
#if defined(TRACE_RING_RSEQ) && defined(MADV_WIPEONFORK)
        if (of == nullptr || !readable || of->idle_mark_ == 0 || rseq::offset() == 0) return;
        table_.cpus = rseq::possible_cpus();
        void* const memory = ::mmap(nullptr, bytes(table_.cpus), PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (memory == MAP_FAILED) return;
        if (::madvise(memory, bytes(table_.cpus), MADV_WIPEONFORK) != 0) {
            ::munmap(memory, bytes(table_.cpus));
            return;
        }
        table_.words = static_cast<cpu_words*>(memory);
        table_.area = rseq::offset();
#else
        static_cast<void>(readable);
#endif
    }
    cpu_lanes(const cpu_lanes&) = delete;
    cpu_lanes& operator=(const cpu_lanes&) = delete;
    /// Closes the lanes. By then no thread records; from then on there are none.
    ~cpu_lanes() {
        const cpu_table was = table_;
        table_ = {};
        signal_fence(seq_cst);  // keeps the compiler from leaving this out
        if (was.area == 0) return;
        for (std::uint32_t i = 0; i < layout::max_rings * was.cpus; ++i) leave(was.words[i]);
        ::munmap(was.words, bytes(was.cpus));
    }

    [[nodiscard]] const cpu_table& table() const noexcept {
        return table_;
    }
    /// Writes a record that the first try did not write, and makes what the lane lacks for it.
    /// `header` may lack the id. `span`: the one that the record begins or ends, else null. No: its
    /// gate is shut, or the record was lost and counted. Elsewhere: the thread's own lane has to
    /// take it, because there are no sequences here, they fail again and again, it is too long, or
    /// its event has no id.
    template <bool Timed>
    [[nodiscard]] answer write(event_state& type, std::uint32_t header, const std::uint64_t* words,
                               std::uint32_t count, bool counted, open_span* span) noexcept {
        if (table_.area == 0) return answer::elsewhere;
        rseq::forget(table_.area);  // a sequence may have been left unfinished
        const bool ends = (record_word::flags(header) & record_word::end) != 0;
        const undisturbed scope;
        // An end may have to say where its span began, before its results.
        constexpr std::uint32_t place = layout::span_end_record::bytes - record_header_bytes;
        const std::uint32_t bytes = static_cast<std::uint32_t>(record_header_bytes) + count * 8;
        answer found = admit(type, ends ? bytes + place : bytes, ends);
        if (found != answer::yes) return found;
        const bool innermost = ends && is_innermost_here(*span);
        if (ends && !innermost) {
            std::uint64_t began[place / 8];
            threads_->end_elsewhere(*span, began);
            auto* const all = static_cast<std::uint64_t*>(__builtin_alloca(place + bytes));
            for (std::uint32_t i = 0; i < place / 8; ++i) all[i] = began[i];
            for (std::uint32_t i = 0; i < count; ++i) all[place / 8 + i] = words[i];
            words = all;
            count += place / 8;
            header = record_word::pack(0, bytes + place,
                                       record_word::flags(header) | layout::span_end_record::flags);
        }
        header = (header & ~0xFFFFU) | record_word::id(register_type(type).header);
        found = try_often<Timed>(type.ring, header, words, count, ends ? nullptr : span);
        if (found != answer::yes) return found;
        if (innermost) leave_here(*span);
        if (span != nullptr && !ends) enter_here(*span);
        if (counted) this->count(type.ring, register_type(type).total);
        return found;
    }

    /// Counts one more record of an event of this ring that has this total. With a locked
    /// instruction, because this thread may have left the processor.
    void count(std::uint32_t ring, std::uint32_t total) noexcept {
        const std::uint32_t cpu = rseq::cpu(table_.area);
        if (cpu >= table_.cpus) return;
        const std::uint32_t column = total - 1;
        const std::uint64_t row = table_.of(threads_->rings_.number(ring))
                                      .words[cpu]
                                      .totals.load(relaxed);  // relaxed: never changes
        if (row == 0 || column >= threads_->memory_.plan().totals_per_lane) return;
        // relaxed: a counter
        place<shared_atomic<std::uint64_t>>(row)[column].fetch_add(1, relaxed);
    }

private:
    enum class next_step { write, again, lost };

    /// Whether a record of `length` bytes may be written here; registers the event's type if need
    /// be.
    [[nodiscard]] answer admit(event_state& type, std::uint32_t length, bool ends) noexcept {
        // An owner record may have to fit in before it.
        if (threads_->home_ != &the_registry ||
            length + named_owner_record_bytes > threads_->max_record())
            return answer::elsewhere;
        const std::uint32_t id = record_word::id(register_type(type).header);
        if (id == 0) return answer::elsewhere;
        const std::uint32_t gate = threads_->gate_of(id);
        if (!ends && (gate & ~std::uint32_t{layout::gate_no_event}) != 0) return answer::no;
        if ((gate & layout::gate_no_event) != 0) return answer::elsewhere;  // counted there
        return threads_->process_.may_record() ? answer::yes : answer::no;
    }
    template <bool Timed>
    [[nodiscard]] answer try_often(std::uint32_t ring, std::uint32_t header,
                                   const std::uint64_t* words, std::uint32_t count,
                                   open_span* span) noexcept {
        const cpu_table table = table_.of(threads_->rings_.number(ring));
        if (own_thread == no_thread) know_thread();
        const auto length = static_cast<std::uint32_t>(record_header_bytes) + count * 8;
        answer found = answer::elsewhere;
        std::uint64_t waited = 0;
        int aborted = 0;
        for (int i = 0; i < tries && found == answer::elsewhere; ++i) {
            const std::uint32_t cpu = rseq::cpu(table_.area);
            if (cpu >= table_.cpus) break;
            // Before anything is taken that a sequence would have to make the lane's.
            if (!reaches_its_end(table.words[cpu], cpu)) {
                if (++aborted == most_aborted) break;
                continue;
            }
            const next_step next = step(table.words[cpu], cpu, length, waited);
            if (next == next_step::lost) found = answer::no;
            if (next == next_step::write &&
                rseq::append_words<Timed>(table, header, words, count, span)) {
                found = answer::yes;
            }
        }
        rseq::forget(table_.area);
        return found;
    }

    static void know_thread() noexcept;
    /// Steps towards one record: it takes a handful, unless other threads come in between.
    static constexpr int tries = 64;
    /// Sequences that change nothing and do not reach their end, before a thread takes its own
    /// lane: it is stepped through.
    static constexpr int most_aborted = 3;
    static constexpr std::uint64_t half = 0xFFFFFFFFU;

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
    [[nodiscard]] static std::size_t bytes(std::uint32_t cpus) noexcept {
        return as_size(layout::round_up(layout::max_rings * cpus * sizeof(cpu_words),
                                        storage::machine_page_bytes()));
    }
    [[nodiscard]] std::uint64_t limit() const noexcept {
        return threads_->memory_.plan().sub_buffer_bytes;
    }
    /// Which of the file's rings a lane belongs to, by the number that events ask for.
    [[nodiscard]] std::uint32_t ring_number_of(const cpu_words& lane) const noexcept {
        return static_cast<std::uint32_t>(&lane - table_.words) / table_.cpus;
    }
    [[nodiscard]] const ring_span& share_of(const cpu_words& lane) const noexcept {
        // relaxed, both: neither changes
        return threads_
            ->rings_[place<layout::lane_entry>(lane.entry.load(relaxed))->ring.load(relaxed)];
    }
    void drop_held(const cpu_words& lane) const noexcept {
        share_of(lane).held->fetch_sub(1, relaxed);  // relaxed: a counter
    }

    /// Whether a sequence that changes nothing reaches its end.
    [[nodiscard]] bool reaches_its_end(cpu_words& lane, std::uint32_t cpu) const noexcept {
        return change(cpu, {{&lane.reserved[0], 0}}, {{&lane.reserved[0], 0}});
    }
    /// A list of guards, then of stores, for rseq::store_if.
    template <std::size_t N, std::size_t M>
    [[nodiscard]] bool change(std::uint32_t cpu, const rseq::word_value (&guards)[N],
                              const rseq::word_value (&stores)[M]) const noexcept {
        rseq::word_value list[N + M];
        for (std::size_t i = 0; i < N; ++i) list[i] = guards[i];
        for (std::size_t i = 0; i < M; ++i) list[N + i] = stores[i];
        return rseq::store_if(table_.area, cpu, list, list + N, list + N + M - 1);
    }

    /// Makes one step towards a record of `length` bytes by this thread on `cpu`, if need be.
    /// `waited` is as in claimer::wait_for_room.
    [[nodiscard]] next_step step(cpu_words& lane, std::uint32_t cpu, std::uint32_t length,
                                 std::uint64_t& waited) noexcept {
        // relaxed, to the end: each is a guard of what is planned from it
        if (lane.entry.load(relaxed) == 0) return make_lane(cpu, lane, waited);
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
        return go_on(cpu, lane, current, last, coming);
    }

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
    /// The sub-buffer that was drawn for this lane.
    struct pending {
        sub_buffer_header* sub = nullptr;
        position at = no_position;
    };
    /// Whether there is one, at some moment during the call. Positions are drawn once, and stored
    /// before `next`: while the position stays the same, so does the sub-buffer it belongs to.
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

    [[nodiscard]] next_step draw(std::uint32_t cpu, cpu_words& lane, std::uint64_t current,
                                 std::uint64_t& waited) noexcept;
    [[nodiscard]] static bool may_be_taken(stamped found, position at) noexcept {
        return found.pos < at && (found.state == static_cast<unsigned>(sub_buffer_state::free) ||
                                  found.state == static_cast<unsigned>(sub_buffer_state::closed));
    }
    [[nodiscard]] static next_step refuse(cpu_words& lane) noexcept {
        // relaxed, both: never changes, and a counter
        auto& entry = *place<layout::lane_entry>(lane.entry.load(relaxed));
        entry.refused.fetch_add(1, relaxed);  // told in the next sub-buffer
        return next_step::lost;
    }
    [[nodiscard]] next_step go_on(std::uint32_t cpu, cpu_words& lane, std::uint64_t current,
                                  std::uint64_t last, const pending& coming) noexcept;
    void install(std::uint32_t cpu, cpu_words& lane, std::uint64_t current, std::uint64_t last,
                 const pending& coming) noexcept;
    [[nodiscard]] next_step close(std::uint32_t cpu, cpu_words& lane, std::uint64_t last) noexcept;
    [[nodiscard]] next_step make_lane(std::uint32_t cpu, cpu_words& lane,
                                      std::uint64_t& waited) noexcept;
    void leave(cpu_words& lane) noexcept;

    lanes_by_thread* threads_;  ///< null in a recorder that records nothing
    cpu_table table_{};
};

}  // namespace trace_ring::inline v1::impl

#include <trace_ring/recorder/cpu/steps.hpp>
