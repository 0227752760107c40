// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The hot path: one record behind the last, in six steps. One run of code in the caller, without a
/// lock, a call or an allocation; a record that cannot be written in this way takes the cold path.
/// The code is instantiated for a number of words, or a list of field types, not for each event
/// type.

#include <cstddef>
#include <cstdint>

#include <trace_ring/atomic.hpp>
#include <trace_ring/format/words.hpp>
#include <trace_ring/policy/clock/counter.hpp>
#include <trace_ring/record/event/payload.hpp>
#include <trace_ring/recorder/site/cold_path.hpp>
#include <trace_ring/recorder/site/recorder_words.hpp>
#include <trace_ring/ring/sub_buffers/record_writer.hpp>

namespace trace_ring::inline v1::impl {

/// The part of a clock that a recording site needs; for clock::tsc, how to read the counter.
template <class Clock>
struct site_clock {
    using type = Clock;
};
template <>
struct site_clock<clock::tsc> {
    using type = clock::counter;
};

/// The times of records that are timed with `Clock`.
template <class Clock>
struct time_source {
    using read_from = typename site_clock<Clock>::type;
    static constexpr bool timed = read_from::kind != static_cast<std::uint32_t>(clock_kind::none);
    /// Records that share one reading of the clock.
    static constexpr std::uint32_t shared_by = [] {
        if constexpr (requires { read_from::records_per_reading; }) {
            return read_from::records_per_reading;
        } else {
            return std::uint32_t{1};
        }
    }();
    static constexpr bool shared = shared_by > 1;

    [[gnu::always_inline]] static clock::counter::halves read() noexcept {
        if constexpr (read_from::kind == clock::counter::kind) {
            return clock::counter::now_halves();
        } else {
            const std::uint64_t now = read_from::now();
            return {static_cast<std::uint32_t>(now), static_cast<std::uint32_t>(now >> 32)};
        }
    }
    /// Whether the next record has the last reading. One record in `shared_by` reads the clock: the
    /// sub-buffer's record count decides, without an extra counter. The cold path always reads it.
    [[gnu::always_inline]] static bool shares(std::uint32_t commit) noexcept {
        if constexpr (!shared) return false;
        std::uint32_t power = 1;
        while (power * 2 <= shared_by) power *= 2;
        return (commit & (power - 1) * commit_word::one_record) != 0;
    }
    [[gnu::always_inline]] static void share([[maybe_unused]] lane_mark& mark,
                                             [[maybe_unused]] std::uint64_t low) noexcept {
        constexpr std::uint64_t flag = std::uint64_t{record_word::interval} << 60;
        if constexpr (shared) mark.reading.store(low | flag, relaxed);  // relaxed: own lane
    }
};

/// The length of a record, and what its first word adds to the one of its type.
struct record_size {
    std::uint32_t bytes;
    std::uint32_t header = 0;
};

/// A record of a few words, which stay in registers.
template <std::size_t Count>
struct words_record {
    static constexpr std::uint32_t fixed_bytes = Count * 8;
    struct sizes {};
    std::uint64_t word[Count + 1];

    [[gnu::always_inline]] static sizes measure(std::uint32_t) noexcept { return {}; }
    [[gnu::always_inline]] static record_size size(const sizes&) noexcept {
        return {record_header_bytes + fixed_bytes};
    }
    [[gnu::always_inline]] void store(std::byte* to, const sizes&) const noexcept {
        store_words(indices_to<Count>{}, to);
    }
    [[gnu::always_inline]] bool go_cold(recorder_words& to, event_state& type,
                                        mark_type idle) const noexcept {
        return call_cold(indices_to<Count>{}, to, type, idle);
    }

private:
    template <std::size_t... Index>
    [[gnu::always_inline]] void store_words(indices<Index...>,
                                            [[maybe_unused]] std::byte* to) const noexcept {
        // relaxed: the commit word publishes them
        (word_at<std::uint64_t>(to, Index * 8).store(word[Index], relaxed), ...);
    }
    template <std::size_t... Index>
    [[gnu::always_inline]] bool call_cold(indices<Index...>, recorder_words& to, event_state& type,
                                          mark_type idle) const noexcept {
        return append_cold(to, type, idle, stack_position(), word[Index]...);
    }
};

/// A record that is stored and not committed.
struct open_record {
    lane_state* lane = nullptr;  ///< null: it is lost
    std::uint32_t bytes = 0;
};

/// A record with more words than that, or of variable length.
template <class Signature>
struct fields_record : payload<Signature> {
    using base = payload<Signature>;
    using typename base::sizes;
    static constexpr std::uint32_t fixed_bytes = Signature::places.bytes;
    using base::base;

    [[gnu::always_inline]] sizes measure([[maybe_unused]] std::uint32_t max_record) const noexcept {
        constexpr std::uint32_t fixed = record_header_bytes + fixed_bytes;
        if constexpr (Signature::variable) {
            return base::measure(max_record > fixed ? max_record - fixed : 0);
        } else {
            return {};
        }
    }
    [[gnu::always_inline]] static record_size size(const sizes& m) noexcept {
        constexpr std::uint32_t fixed = record_header_bytes + fixed_bytes;
        if constexpr (Signature::variable) {
            static_assert(record_word::cut == 1);
            return {fixed + m.bytes, (m.bytes / 8 << 16) + (m.cut << 28)};
        } else {
            return {fixed};
        }
    }
    [[gnu::always_inline]] bool go_cold(recorder_words& to, event_state& type,
                                        mark_type idle) const noexcept {
        return append_open<0>(to, type, {idle, stack_position()}, nullptr, *this);
    }
    /// Stores it as a record that the cold path has opened.
    [[nodiscard]] open_record open(recorder_words& to, event_state& type, left_at where,
                                   std::uint32_t flags, const void* holder) const noexcept {
        const sizes m = measure(to.max_record);
        const record_size of = size(m);
        const auto [lane, time, header] = to.cold->open(to, type, where, of.bytes, holder);
        if (lane == nullptr) return {};
        std::byte* const at = end_of_records(*lane);
        const std::uint32_t head = header + of.header;
        record_writer::store_head(at, std::uint64_t{head | flags << 28} << 32 | time);
        base::store(at + record_header_bytes, m);
        return {lane, of.bytes};
    }
    /// Writes it by the cold path. `Flags` are 0, or record_word::begin of `span`.
    template <std::uint32_t Flags>
    [[gnu::noinline, gnu::cold]] static bool append_open(recorder_words& to, event_state& type,
                                                         left_at where, open_span* span,
                                                         fields_record record) noexcept {
        if (!has_cold_path(to, type, where)) return false;
        const auto [lane, bytes] = record.open(to, type, where, Flags, nullptr);
        if (lane != nullptr) to.cold->close(to, *lane, type, bytes, Flags, span);
        return lane != nullptr;
    }
};

/// The record of these values, by their number of words or their types.
template <class... T>
[[nodiscard, gnu::always_inline]] inline auto record_of(const T&... values) noexcept {
    using fields = signature<T...>;
    if constexpr (fields::few) {
        words_record<fields::words> record{};
        payload<fields>(values...).pack(record.word);
        return record;
    } else {
        return fields_record<fields>(values...);
    }
}

/// Whether a record of `bytes` at `place` must take the cold path.
[[nodiscard, gnu::always_inline]] inline bool no_room(mark_type place, std::uint32_t bytes,
                                                      mark_type mark) noexcept {
    const mark_type over = static_cast<mark_type>(bytes) - mark_type{usual_record_bytes};
    if (over <= 0) {
        return static_cast<std::uintptr_t>(place) > static_cast<std::uintptr_t>(mark - over);
    }
    return mark >= 0 || place + over > mark;
}

/// Loads a mark and stores the stack pointer in its place, one right after the other: a handler
/// that switches stacks between the two can spoil a record. Optimizers keep them together.
[[nodiscard, gnu::always_inline]] inline mark_type set_mark(atomic<mark_type>& mark) noexcept {
#if defined(__x86_64__) && !defined(__OPTIMIZE__)
    mark_type before;
    asm volatile("movq %1, %0; movq %%rsp, %1"
                 : "=&r"(before), "+m"(reinterpret_cast<volatile mark_type&>(mark)));
    return before;
#else
    const mark_type here = stack_position();
    const mark_type before = mark.load(relaxed);  // relaxed, both: own thread
    mark.store(here, relaxed);
    return before;
#endif
}

/// `of`: the number of the type's total.
inline void count_record(lane_state& lane, std::uint32_t of) noexcept {
    // relaxed, to the end: own lane, whose totals have one writer at a time; a reader sees the old
    // count or the new
    const std::uint32_t column = of - 1;
    if (column >= lane.totals_count.load(relaxed)) return;
    shared_atomic<std::uint64_t>& total = lane.totals.load(relaxed)[column];
    total.store(total.load(relaxed) + 1, relaxed);
}

/// A record that neither begins nor ends a span. The others are in spans.hpp.
struct no_span {
    static constexpr std::uint32_t flags = 0;
};

/// Writes a record. False: its gate is shut, or it is lost and counted.
template <class Clock, std::uint32_t Ring, bool Counted, class Record, class Span = no_span>
[[gnu::always_inline]] inline bool append(recorder_words& to, event_state& type,
                                          const Record& record,
                                          [[maybe_unused]] Span span = {}) noexcept {
    using source = time_source<Clock>;
    constexpr bool of_span = Span::flags != 0;
    constexpr bool ends = Span::flags == record_word::end;
    mark_type idle = not_begun;
    // relaxed, to the end: words of this thread and its signal handlers alone
    do {
        if (!is_known_here(to, type)) [[unlikely]]
            break;
        // order: type.use:A pairs with type.publish:A
        std::uint32_t header = type.header.load(acquire);
        // Before the gate's, so that this load does not wait for those.
        lane_state& lane = *first_lane_of(to, Ring);
        std::uint32_t most = to.max_record;
        if constexpr (of_span) most = span.most_bytes(most);
        const auto sizes = record.measure(most);
        const record_size of = record.size(sizes);
        // 1. gate. The header is the number of the gate plus a constant. The gate of an event that
        // has no id yet is shut, and so are those of events that the recorder has no room for.
        if constexpr (!ends) {
            constexpr std::uint32_t known = header_without_id(Record::fixed_bytes);
            const std::uint8_t gate = gates_of(to).template look<known>(header);
            if (gate != 0) [[unlikely]] {
                if (gate != layout::gate_no_event) return false;
                asm("");  // keeps clang from making one computed answer of all three
                break;
            }
        }
        // 2. begin
        lane_mark& mark = mark_of(lane);
        idle = set_mark(mark.value);
        signal_fence(seq_cst);
        // 3. room. The sub-buffer is loaded before the clock is read: otherwise its cache line
        // arrives late after the caches were swept. The clock is read before the loads that follow,
        // because some processors execute it only after all earlier instructions, and before later
        // ones.
        sub_buffer_header* const sub = lane.sub.load(relaxed);
        [[maybe_unused]] clock::counter::halves now{};
        if constexpr (source::timed && !source::shared) now = source::read();
        const std::uint32_t commit = sub->commit.load(relaxed);
        const mark_type place = static_cast<std::int16_t>(commit);
        if (no_room(place, of.bytes, idle)) [[unlikely]]
            break;
        if constexpr (of_span) {
            if (!span.may_be_here(mark, *sub)) [[unlikely]]
                break;
            header = span.header(header, Record::fixed_bytes);
        }
        std::byte* const at = reinterpret_cast<std::byte*>(sub) + place + commit_word::bias;
        // Without a clock to wait for, the most expensive part of a record is a cache line that
        // comes from a further cache, so it is requested some records earlier. A clock that waits
        // for all loads would wait for this one, too.
        if constexpr (!source::timed) prefetch_to_store(at + 256);
        // 4. stamp
        std::uint64_t low = 0;
        if (source::shares(commit)) [[likely]] {
            low = mark.reading.load(relaxed);
        } else if constexpr (source::timed) {
            if constexpr (source::shared) now = source::read();
            if (lane.high.load(relaxed) != now.high) [[unlikely]]
                break;
            low = now.low;
            source::share(mark, low);
        }
        // 5. store
        record_writer::store_head(
            at, (std::uint64_t{header + of.header} << 32 | std::uint64_t{Span::flags} << 60) | low);
        record.store(at + record_header_bytes, sizes);
        // 6. commit
        if constexpr (of_span) span.before_commit(mark, *sub);
        record_writer::commit(*sub, commit, of.bytes);
        if constexpr (Counted) count_record(lane, type.total.load(relaxed));
        if constexpr (of_span) span.after_commit(mark);
        signal_fence(seq_cst);
        mark.value.store(idle, relaxed);
        return true;
    } while (false);
    if constexpr (of_span) {
        return span.go_cold(record, to, type, idle);
    } else {
        return record.go_cold(to, type, idle);
    }
}

/// Writes the record of the values that it is called with.
template <class Clock, std::uint32_t Ring, bool Counted>
struct append_values {
    recorder_words& to;
    event_state& type;

    template <class... T>
    [[gnu::always_inline]] bool operator()(const T&... values) const noexcept {
        return append<Clock, Ring, Counted>(to, type, record_of(values...));
    }
};

/// Opens a record of the values that it is called with, as the reservation at `holder`.
struct open_values {
    recorder_words& to;
    event_state& type;
    mark_type opener;
    const void* holder;

    template <class... T>
    [[nodiscard]] open_record operator()(const T&... values) const noexcept {
        if (!has_cold_path(to, type, {})) return {};
        return fields_record<signature<T...>>(values...).open(to, type, {not_begun, opener}, 0,
                                                              holder);
    }
};

}  // namespace trace_ring::inline v1::impl
