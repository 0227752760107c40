// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What a recorder with a lane for each processor does with a record that the first try did not
/// write: it makes what the lane lacks, or writes the record to the thread's own lane. Also the end
/// of a span that has to say where the span began.

#include <cstddef>
#include <cstdint>

#include <trace_ring/recorder/cpu/lanes.hpp>
#include <trace_ring/recorder/lane/core.hpp>

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

/// Writes a record. `header` may lack the id. `span`: the one that the record begins or ends, else
/// null. False: the record was lost, and counted, or its gate is shut.
template <bool Timed>
[[nodiscard]] bool write_slowly(core& of, cpu_lanes& lanes, event_state& type, std::uint32_t header,
                                const std::uint64_t* words, std::uint32_t count, bool counted,
                                open_span* span) noexcept {
    const bool ends = (header & std::uint32_t{record_word::end} << 28) != 0;
    const auto length = [&] { return static_cast<std::uint32_t>(record_header_bytes) + count * 8; };
    using answer = cpu_lanes::answer;
    const auto whole = [&] {  // relaxed: after its id was made sure of
        return (header & ~0xFFFFU) | record_word::id(type.header.load(relaxed));
    };
    std::uint64_t began[2] = {};
    const auto tell = [&] {  // makes an end say where the span began
        header =
            record_word::pack(0, layout::span_end_record::bytes, layout::span_end_record::flags);
        began[0] = span->begun;
        began[1] = span->lane;
        words = began;
        count = 2;
        of.memory().ring().ended_elsewhere.store(1, relaxed);  // relaxed: a note to readers
    };
    const auto most = ends ? std::uint32_t{layout::span_end_record::bytes} : length();
    if (lanes.table().area != 0) {
        rseq::forget(lanes.table().area);  // a sequence may have been left unfinished
        answer found = lanes.admit(type, most, ends);
        if (found == answer::yes) {
            const bool bare = ends && is_innermost_here(*span);
            if (ends && !bare) tell();
            found = lanes.template write<Timed>(type.ring, whole(), words, count,
                                                ends ? nullptr : span);
            if (found == answer::yes && bare) leave_here(*span);
            if (found == answer::yes && span != nullptr && !ends) enter_here(*span);
        }
        if (found == answer::yes && counted) lanes.count(type);
        if (found != answer::elsewhere) return found == answer::yes;
    }
    const auto [lane, time] = of.open(type, most, stack_position(), ends);
    if (lane == nullptr) return false;
    lane_mark& mark = mark_of(*lane);
    const sub_buffer_header& sub = *lane->sub.load(relaxed);  // relaxed: own lane
    const bool bare = ends && span->is_innermost(mark, sub);
    if (ends && !bare) tell();
    if (span != nullptr && !ends) span->begin(mark, sub);
    std::byte* const to = end_of_records(*lane);
    // relaxed, to the end: the commit word publishes them
    word_at<std::uint32_t>(to, 0).store(time, relaxed);
    word_at<std::uint32_t>(to, 4).store(whole(), relaxed);
    for (std::uint32_t i = 0; i < count; ++i)
        word_at<std::uint64_t>(to, record_header_bytes + i * 8).store(words[i], relaxed);
    commit_record(*lane, length());
    if (bare) span->end(mark);
    if (counted) count_record(*lane, type);
    of.finish(*lane);
    return true;
}

}  // namespace trace_ring::inline v1::impl
