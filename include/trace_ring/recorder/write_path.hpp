// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// How the words of one record get to their place, by the clock that it is timed with.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>

#include <trace_ring/atomic.hpp>
#include <trace_ring/format/sub_buffer.hpp>
#include <trace_ring/policy/clock/sampled.hpp>
#include <trace_ring/record/payload.hpp>
#include <trace_ring/recorder/lane/core.hpp>
#include <trace_ring/recorder/lane/lane.hpp>
#include <trace_ring/recorder/lane/registry.hpp>

namespace trace_ring::inline v1::impl {

/// The end of a span: no fields, and the id of the span.
template <class E>
struct end_of {
    using wires = std::tuple<>;
    static constexpr bool variable = false;
    static constexpr std::size_t fixed_bytes = 0;
    static constexpr std::size_t field_count = 0;
    static constexpr std::array<field_description, 0> fields{};
    static constexpr std::uint32_t ring = ring_of<E>;
};
template <class E>
inline constexpr bool is_end = false;
template <class E>
inline constexpr bool is_end<end_of<E>> = true;
/// The end of a span that says where it began, as the open record of `lane`, which has room for it.
inline void append_end(core& of, lane_state& lane, std::uint32_t time, std::uint32_t header,
                       const open_span& span) noexcept {
    const std::uint32_t word = record_word::pack(
        record_word::id(header), layout::span_end_record::bytes, layout::span_end_record::flags);
    const std::uint64_t words[] = {time | std::uint64_t{word} << 32, span.begun, span.lane};
    static_assert(sizeof words == layout::span_end_record::bytes);
    std::byte* const to = end_of_records(lane);
    // relaxed, both: the commit word publishes them; and a note to readers
    for (std::size_t i = 0; i < 3; ++i) word_at<std::uint64_t>(to, i * 8).store(words[i], relaxed);
    commit_record(lane, layout::span_end_record::bytes);
    of.memory().ring().ended_elsewhere.store(1, relaxed);
}

/// The steps of writing a record that is timed with `Clock`.
template <class Clock>
struct write_path {
    static constexpr bool timed = Clock::kind != static_cast<std::uint32_t>(clock_kind::none);
    /// Records that share one reading of the clock.
    static constexpr std::uint32_t shared_by = clock::records_per_reading<Clock>;
    static constexpr bool readings_shared = shared_by > 1;
    /// Is the clock not read for each record? Then stores and the loads that wait for them are most
    /// of what a record costs: the commit word and the header are read once, whole, and stored from
    /// a register. Beside a clock reading they cost nothing, and the fewest instructions are best.
    static constexpr bool whole_words = sizeof(void*) == 8 && (readings_shared || !timed);

    /// The head of a record that its type does not change any more, with the flags of a shared
    /// reading, if it bears one. `header` is the type's, if it was read.
    template <class E>
    [[gnu::always_inline]] static std::uint64_t head_of(std::uint64_t time, std::uint32_t header) {
        if constexpr (is_end<E>) {
            header = record_word::pack(record_word::id(header), record_header_bytes);
        }
        return time | std::uint64_t{header} << 32;
    }
    template <class E>
    [[gnu::always_inline]] static std::uint64_t head_of(std::uint64_t time, std::uint32_t header,
                                                        const event_state& type) {
        if constexpr (sizeof(void*) == 8 && !whole_words && !is_end<E>) {
            return or_both(time, type.no_time, type.header);
        } else {
            return head_of<E>(time, header);
        }
    }

    /// Stores a record `Start` bytes behind `to`, whose head is `head` but for what `sizes` and
    /// `Flags` add. It is not there before it is committed.
    template <class E, std::uint32_t Flags, std::size_t Start, class Place>
    [[gnu::always_inline]] static void store_record(Place to, std::uint64_t head,
                                                    const typename E::wires& wires,
                                                    const measured<E>& sizes) noexcept {
        if constexpr (E::variable) {
            head += std::uint64_t{sizes.bytes} / 8 << 48;
            if (sizes.cut) head |= std::uint64_t{record_word::cut} << 60;
        }
        head |= std::uint64_t{Flags} << 60;
        const auto put_word = [to]<std::size_t At>(auto word) __attribute__((always_inline)) {
            if constexpr (std::is_same_v<Place, indexed_place>) {
                store_at<Start + At>(to, word);
            } else {
                // relaxed: the commit word publishes it
                word_at<decltype(word)>(to, Start + At).store(word, relaxed);
            }
        };
        if constexpr (sizeof(void*) == 8) {
            put_word.template operator()<0>(head);
        } else {
            put_word.template operator()<0>(static_cast<std::uint32_t>(head));
            put_word.template operator()<4>(static_cast<std::uint32_t>(head >> 32));
        }
        store_payload<E, Start + record_header_bytes>(to, wires, sizes);
    }

    /// The commit word as it was before a record.
    struct committed {
        mark_type place;  ///< where the next record begins, less the bias
        // As wide as the place, or g++ moves it once more.
        std::uint64_t word;  ///< known if it was read whole
    };
    [[gnu::always_inline]] static committed look(const shared_atomic<std::uint32_t>& commit) {
        if constexpr (whole_words) {
            const std::uint32_t word = commit.load(relaxed);  // relaxed: own word
            return {static_cast<std::int16_t>(word), word};
        } else {
            return {signed_low_half(commit), 0};
        }
    }
    /// The open record of `lane`, on the cold path; the hot one has these steps in its own order.
    template <class E, std::uint32_t Flags, class... Span>
    [[gnu::always_inline]] static void append_open(core& of, lane_state& lane,
                                                   const event_state& type, std::uint32_t time,
                                                   const typename E::wires& wires,
                                                   const measured<E>& sizes,
                                                   Span*... span) noexcept {
        lane_mark& mark = mark_of(lane);
        if constexpr (readings_shared) share_reading(mark, time);
        const std::uint32_t header = type.header.load(relaxed);  // relaxed: `open` saw the id
        const sub_buffer_header& sub = *lane.sub.load(relaxed);  // relaxed: own lane
        if constexpr (Flags == record_word::begin) (span->begin(mark, sub), ...);
        if ((is_end<E> && ... && !span->is_innermost(mark, sub))) {
            return (append_end(of, lane, time, header, *span), ...);
        }
        store_record<E, Flags, 0>(end_of_records(lane), head_of<E>(time, header), wires, sizes);
        commit_record(
            lane, static_cast<std::uint32_t>(record_header_bytes + E::fixed_bytes) + sizes.bytes);
        if constexpr (Flags == record_word::end) (span->end(mark), ...);
        if constexpr (is_counted<E>()) count_record(lane, type);
    }
    /// The record is there.
    [[gnu::always_inline]] static void publish(shared_atomic<std::uint32_t>& commit,
                                               const committed& before, std::uint32_t more) {
        // order: record.commit:A pairs with read:B, file.read:B, batch.read:A, reclaim.find:B
        if constexpr (whole_words) {
            commit.store(static_cast<std::uint32_t>(before.word + more), release);
        } else {
            publish_add(commit, more);
        }
    }

    [[gnu::always_inline]] static void share_reading(lane_mark& mark, std::uint64_t time) {
        mark.reading.store(time | std::uint64_t{record_word::interval} << 60,
                           relaxed);  // relaxed: own lane
    }
    /// The calling thread's next record reads the clock: on the cold path.
    static void forget_readings(std::uint32_t lanes_at) noexcept {
        for (std::size_t i = 0; i < layout::max_rings * lane_depths; ++i) {
            lane_state* const first =
                first_lane(static_cast<std::uint32_t>(i / lane_depths), lanes_at);
            auto& mark = mark_of(first[i % lane_depths]).value;
            if (mark.load(relaxed) < 0) mark.store(0, relaxed);  // relaxed: own lanes
        }
    }
    /// Whether the next record bears the last reading: one in `shared_by` reads the clock, counted
    /// by the records of the sub-buffer, and so by a word that is there anyhow. The cold path
    /// always reads it.
    [[gnu::always_inline]] static bool shares_reading(const shared_atomic<std::uint32_t>& commit,
                                                      const committed& before) {
        constexpr std::uint32_t mask = (std::bit_floor(shared_by) - 1) * commit_word::one_record;
        if constexpr (whole_words) return (before.word & mask) != 0;
        return has_any<mask>(commit);
    }
    [[gnu::always_inline]] static clock::tsc::halves read_halves() noexcept {
        if constexpr (Clock::kind == clock::tsc::kind) {
            return clock::tsc::now_halves();
        } else {
            const std::uint64_t now = Clock::now();
            return {static_cast<std::uint32_t>(now), static_cast<std::uint32_t>(now >> 32)};
        }
    }
};

}  // namespace trace_ring::inline v1::impl
