// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The application's flight recorder: typed events of any thread into one trace file (or memory),
/// at about the cost of reading the clock.
/// @code
///   trace_ring::recorder recorder{{.file = "orders.trace"}};
///   recorder.record<order_sent>(42, 3.14);
/// @endcode
/// A file that only records into a recorder constructed elsewhere needs site.hpp alone, which
/// compiles much faster. That header documents the members, and TRACE_RING_DISABLE.

#include <trace_ring/fwd.hpp>

#if __cplusplus >= 202002L

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include <trace_ring/atomic.hpp>
#include <trace_ring/record/event/as_field.hpp>
#include <trace_ring/record/event/duration.hpp>
#include <trace_ring/record/event/members.hpp>
#include <trace_ring/record/event/value_names.hpp>
#include <trace_ring/recorder/file/options.hpp>
#include <trace_ring/recorder/site.hpp>
#include <trace_ring/recorder/spans.hpp>
#include <trace_ring/recorder/statistics.hpp>

#if defined(TRACE_RING_DISABLE)
namespace trace_ring::inline v1::inline disabled {

template <class Kind>
auto silent_recorder<Kind>::path() const noexcept {
    return std::string_view();
}
template <class Kind>
auto silent_recorder<Kind>::bytes() const noexcept {
    return std::pair<const std::byte*, std::size_t>();
}
template <class Kind>
recorder_statistics silent_recorder<Kind>::statistics() const noexcept {
    return {};
}

}  // namespace trace_ring::inline v1::inline disabled
#else

#include <trace_ring/policy/clock/clock.hpp>
#include <trace_ring/policy/clock/tsc.hpp>
#include <trace_ring/recorder/no_recording.hpp>
#include <trace_ring/recorder/thread/lanes_by_thread.hpp>
#include <trace_ring/ring/sub_buffers/lane_writer.hpp>

namespace trace_ring::inline v1 {

namespace impl {

inline void commit_record(lane_state& lane, std::uint32_t bytes) noexcept {
    sub_buffer_header* const sub = lane.sub.load(relaxed);  // relaxed: own lane, twice
    lane_writer::commit(*sub, sub->commit.load(relaxed), bytes);
}

/// The cold path's functions for a recorder whose records are timed with `Clock`.
template <class Clock>
struct cold_functions {
    [[nodiscard]] static opened open_record(recorder_words& to, event_state& type, left_at where,
                                            std::uint32_t bytes, bool ends) noexcept {
        lane_state& lane = *first_lane(type.ring, to.library.lanes_at);
        const bool is_begun = where.idle != not_begun && restore_mark(lane, where.idle);
        const opened found = is_begun
                                 ? to.lanes->open_further(type, bytes, where.opener, ends, lane)
                                 : to.lanes->open(type, bytes, where.opener, ends);
        if (found.lane != nullptr) time_source<Clock>::share(mark_of(*found.lane), found.time);
        return found;
    }
    [[nodiscard]] static opened open(recorder_words& to, event_state& type, left_at where,
                                     std::uint32_t bytes, const void* holder) noexcept {
        const opened found = open_record(to, type, where, bytes, false);
        if (holder != nullptr && found.lane != nullptr)
            to.lanes->hold(*found.lane, where.opener, holder);
        return found;
    }
    static void close(recorder_words& to, lane_state& lane, event_state& type, std::uint32_t bytes,
                      std::uint32_t flags, open_span* span) noexcept {
        if ((flags & record_word::begin) != 0)
            span->begin(mark_of(lane), *lane.sub.load(relaxed));  // relaxed: own lane
        commit_record(lane, bytes);
        if (type.description.counted) count_record(lane, impl::register_type(type).total);
        to.lanes->finish(lane);
    }
    static bool append(recorder_words& to, event_state& type, left_at where,
                       const std::uint64_t* words, std::uint32_t count, std::uint32_t flags,
                       open_span* span) noexcept {
        const bool ends = (flags & record_word::end) != 0;
        std::uint32_t bytes = record_header_bytes + count * 8;
        // An end may have to say where the span began, before its results.
        constexpr std::uint32_t place = layout::span_end_record::bytes - record_header_bytes;
        const auto [lane, time, header] =
            open_record(to, type, where, ends ? bytes + place : bytes, ends);
        if (lane == nullptr) return false;
        // relaxed, to the end: own lane; and the commit word publishes the rest
        lane_mark& mark = mark_of(*lane);
        const bool elsewhere = ends && !span->is_innermost(mark, *lane->sub.load(relaxed));
        std::uint64_t began[place / 8];
        std::uint32_t at_word = record_header_bytes;
        if (elsewhere) {
            to.lanes->end_elsewhere(*span, began);
            bytes += place;
            flags |= layout::span_end_record::flags;
        }
        const std::uint32_t id = record_word::id(header);
        std::byte* const at = end_of_records(*lane);
        lane_writer::store_head(at,
                                time | std::uint64_t{record_word::pack(id, bytes, flags)} << 32);
        const auto store = [&](const std::uint64_t* from, std::uint32_t n) {
            for (std::uint32_t i = 0; i < n; ++i, at_word += 8)
                word_at<std::uint64_t>(at, at_word).store(from[i], relaxed);
        };
        if (elsewhere) store(began, place / 8);
        store(words, count);
        if (!ends) {
            close(to, *lane, type, bytes, flags, span);
            return true;
        }
        commit_record(*lane, bytes);
        if (!elsewhere) span->end(mark);
        to.lanes->finish(*lane);
        return true;
    }
    static void discard(recorder_words& to, lane_state& lane) noexcept { to.lanes->finish(lane); }
    static void hold(recorder_words& to, lane_state& lane, mark_type mark,
                     const void* holder) noexcept {
        to.lanes->hold(lane, mark, holder);
    }
    static void register_type(recorder_words& /*to*/, event_state& type) noexcept {
        static_cast<void>(impl::register_type(type));
    }
    static std::size_t enable(recorder_words& to, name_view glob, bool on) noexcept {
        return to.lanes->events.enable(glob, on);
    }
    static void shut(recorder_words& to, bool now) noexcept { to.lanes->events.shut(now); }
    static int snapshot(recorder_words& to, const char* file) noexcept {
        return to.lanes->write_snapshot(file);
    }
    static void flush_thread(recorder_words& to) noexcept {
        for (auto& place : thread_lanes) {
            lane_block* const block = place.load(relaxed);  // relaxed: own word
            if (block != &vacant_block) to.lanes->release_lanes(*block, true);
        }
    }
    static void pause_ends(recorder_words& to) noexcept {
        for (std::uint32_t ring = 0; ring < layout::max_rings; ++ring) {
            lane_state* const first = first_lane(ring, to.library.lanes_at);
            for (std::size_t depth = 0; depth < lane_depths; ++depth) {
                auto& mark = mark_of(first[depth]).value;
                if (mark.load(relaxed) < 0) mark.store(0, relaxed);  // relaxed, both: own lanes
            }
        }
    }
    static void lose(recorder_words& to, std::uint32_t count) noexcept { to.lanes->lose(count); }
    static constexpr cold_path table{&append,   &open,          &close,      &discard,
                                     &hold,     &register_type, &enable,     &shut,
                                     &snapshot, &flush_thread,  &pause_ends, &lose};
};

}  // namespace impl

template <class Kind>
basic_recorder<Kind>::basic_recorder(const recorder_options& options) {
    static_assert(clock::policy<clock_policy>, "trace_ring: Kind::clock must be a clock policy");
    words_.lanes = impl::make_lanes(options, impl::functions_of<clock_policy>, words_);
    // By the code that constructed it, whose registry has it, whichever code destroys it.
    retire_ = [](void* which) noexcept {
        impl::recorder_words& words = static_cast<basic_recorder*>(which)->words_;
        if (words.lanes == nullptr) {
            delete static_cast<const impl::no_recording*>(words.cold);
            words.gates.lead_nowhere();
            words.library.gates.lead_nowhere();
        }
        delete words.lanes;
        words.lanes = nullptr;
        words.cold = nullptr;
        words.lanes_at = 0;
        words.library.home = 0;
        signal_fence(seq_cst);  // keeps the compiler from leaving these stores out
    };
    if (words_.lanes == nullptr) return;  // it records nothing
    words_.max_record = words_.lanes->max_record();
    words_.cold = &impl::cold_functions<clock_policy>::table;
    words_.library.home = impl::make_id() | (impl::lanes_are_moving ? words_.library.moving : 0);
    words_.library.lanes_from_thread_pointer = impl::from_thread_pointer(&impl::thread_lanes);
    words_.library.lanes_at = impl::lanes_at(words_.lanes->index());
    if (impl::is_of_program(&impl::the_registry)) words_.lanes_at = words_.library.lanes_at;
}

template <class Kind>
auto basic_recorder<Kind>::path() const noexcept {
    if (words_.lanes == nullptr) return std::string_view();
    return std::string_view(words_.lanes->memory().path());
}
template <class Kind>
int basic_recorder<Kind>::descriptor() const noexcept {
    return words_.lanes == nullptr ? -1 : words_.lanes->memory().descriptor();
}
template <class Kind>
auto basic_recorder<Kind>::bytes() const noexcept {
    if (words_.lanes == nullptr) return std::pair<const std::byte*, std::size_t>();
    const impl::trace_memory& memory = words_.lanes->memory();
    return std::pair<const std::byte*, std::size_t>(
        memory.base(), as_size(memory.plan().bytes_for(memory.capacity())));
}
template <class Kind>
recorder_statistics basic_recorder<Kind>::statistics() const noexcept {
    if (words_.lanes != nullptr) return impl::statistics_of(*words_.lanes);
    recorder_statistics nothing;
    const auto& why = *static_cast<const impl::no_recording*>(words_.cold);
    nothing.failure = why.text;
    nothing.failure_error = why.error;
    return nothing;
}

}  // namespace trace_ring::inline v1
#endif

#endif
