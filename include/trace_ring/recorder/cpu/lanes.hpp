// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The lanes of a recorder that has one for each processor: they are made here, filled, and closed
/// at the end; steps.hpp moves them from one sub-buffer to the next. A record is written only if
/// its thread is the one announced last. A thread that finds another announced announces itself
/// first, by an owner record: at most once each time that the processor changes threads.

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

#include <trace_ring/atomic.hpp>
#include <trace_ring/recorder/cpu/append.hpp>
#include <trace_ring/recorder/cpu/steps.hpp>
#include <trace_ring/recorder/file/begin_lane.hpp>
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

class cpu_lanes : private cpu_steps {
public:
    enum class answer { yes, no, elsewhere };

    /// Without lanes, and `table().area` is 0, where the processor or kernel has no sequences,
    /// sequences cannot read the file's clock, or the kernel does not wipe pages.
    cpu_lanes(lanes_by_thread* of, bool readable) noexcept : cpu_steps(of) {
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
        for (std::uint32_t i = 0; i < layout::max_rings * was.cpus; ++i)
            close_and_release(was.words[i]);
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
            const next_step next = make_or_step(table.words[cpu], cpu, length, waited);
            if (next == next_step::lost) found = answer::no;
            if (next == next_step::write &&
                rseq::append_words<Timed>(table, header, words, count, span)) {
                found = answer::yes;
            }
        }
        rseq::forget(table_.area);
        return found;
    }

    /// Steps towards one record: it takes a handful, unless other threads come in between.
    static constexpr int tries = 64;
    /// Sequences that change nothing and do not reach their end, before a thread takes its own
    /// lane: it is stepped through.
    static constexpr int most_aborted = 3;
    [[nodiscard]] static std::size_t bytes(std::uint32_t cpus) noexcept {
        return as_size(layout::round_up(layout::max_rings * cpus * sizeof(cpu_words),
                                        storage::machine_page_bytes()));
    }
    /// Which of the file's rings a lane belongs to, by the number that events ask for.
    [[nodiscard]] std::uint32_t ring_number_of(const cpu_words& lane) const noexcept {
        return static_cast<std::uint32_t>(&lane - table_.words) / table_.cpus;
    }
    /// Whether a sequence that changes nothing reaches its end.
    [[nodiscard]] bool reaches_its_end(cpu_words& lane, std::uint32_t cpu) const noexcept {
        return change(cpu, {{&lane.reserved[0], 0}}, {{&lane.reserved[0], 0}});
    }
    /// As cpu_steps::step, also of a lane that has not been made.
    [[nodiscard]] next_step make_or_step(cpu_words& lane, std::uint32_t cpu, std::uint32_t length,
                                         std::uint64_t& waited) noexcept {
        // relaxed: the lane is made by a sequence, if nobody else has made it
        if (lane.entry.load(relaxed) == 0) return make_lane(cpu, lane, waited);
        return step(lane, cpu, length, waited);
    }

    /// Makes a lane of this process for a processor that it has not written on yet.
    [[nodiscard]] next_step make_lane(std::uint32_t cpu, cpu_words& lane,
                                      std::uint64_t& waited) noexcept {
        know_thread();  // this may be a child of a fork
        layout::ring_state& ring = threads_->memory_.ring();
        std::uint32_t slot = 0;
        bool few_left = false;  // makes no difference, as in `draw`
        layout::lane_entry* const entry = threads_->reclaimer_.claim_entry(slot, few_left);
        if (entry == nullptr) {
            if (threads_->claimer_.wait_for_lane(waited, false)) return next_step::again;
            threads_->reclaimer_.note_writers(ring.writers, table_.cpus);
            ring.refused_without_lane.fetch_add(1, relaxed);  // relaxed: a counter
            return next_step::lost;
        }
        char name[16] = {'c', 'p', 'u', ' '};
        std::size_t digits = 4;
        for (std::uint32_t left = cpu; digits == 4 || left != 0; left /= 10) ++digits;
        std::uint32_t left = cpu;
        for (std::size_t at = digits; at-- > 4; left /= 10)
            name[at] = static_cast<char>('0' + left % 10);
        begin_lane(*entry, {threads_->memory_.new_lane_number(),
                            threads_->process(),
                            0,
                            0,
                            cpu + 1,
                            threads_->rings_.number(ring_number_of(lane)),
                            threads_->memory_.now(),
                            {name, digits}});
        if (!change(cpu, {{&lane.entry, 0}},
                    {{&lane.limit, limit()},
                     {&lane.totals, address(threads_->memory_.totals(slot))},
                     {&lane.told, 0},
                     {&lane.entry, address(entry)}})) {
            // order: here.release:B pairs with lane.claim:A, lane.claim:B, table.read:B,
            // snapshot.copy:C, lane.claim:C, lane.claim:D
            entry->state.store(static_cast<std::uint32_t>(layout::presence::departed), release);
        }
        return next_step::again;
    }

    /// Closes the lane's sub-buffers and releases it, when no thread records any more.
    void close_and_release(cpu_words& lane) noexcept {
        // relaxed, to the end: no other thread uses the lane
        const std::uint64_t where = lane.entry.load(relaxed);
        if (where == 0) return;
        auto& entry = *place<layout::lane_entry>(where);
        const std::uint64_t current = lane.current.load(relaxed);
        const std::uint64_t last = lane.last.load(relaxed);
        const auto close_one = [&](std::uint64_t at) {
            sub_buffer_header& sub = *place<sub_buffer_header>(at);
            const auto seen = stamped::from(sub.state.load(relaxed));
            if (seen.state != static_cast<unsigned>(sub_buffer_state::active) ||
                sub.lane.load(relaxed) != entry.number.load(relaxed)) {
                return;
            }
            lane_sub_buffers::close(entry, span_of(lane), sub,
                                    threads_->memory_.index(threads_->memory_.slot_number(sub)),
                                    seen.pos, threads_->memory_.now());
            drop_held(lane);
        };
        if (last != 0) close_one(last);
        if (current != 0 && current != last) close_one(current);
        pending coming;
        if (find_pending(lane, coming)) {
            std::uint64_t taken = state_word(coming.at, sub_buffer_state::reset);
            // order: here.free:B pairs with read:A, file.read:A, chain.look:A, claim:C
            static_cast<void>(coming.sub->state.compare_exchange_strong(
                taken, state_word(coming.at, sub_buffer_state::free), release));
            drop_held(lane);
        }
        entry.ended.store(threads_->memory_.now(), relaxed);
        // order: here.release:A pairs with lane.claim:A, lane.claim:B, table.read:B,
        // snapshot.copy:C, lane.claim:C, lane.claim:D
        entry.state.store(static_cast<std::uint32_t>(layout::presence::departed), release);
    }
};

}  // namespace trace_ring::inline v1::impl
