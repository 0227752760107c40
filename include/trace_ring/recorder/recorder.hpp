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

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include <trace_ring/atomic.hpp>
#include <trace_ring/recorder/file/options.hpp>
#include <trace_ring/recorder/site.hpp>
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
#include <trace_ring/recorder/lane/core.hpp>
#include <trace_ring/recorder/snapshot.hpp>
#include <trace_ring/ring/sub_buffers/lane_writer.hpp>

namespace trace_ring::inline v1 {

namespace impl {

/// The cold path's functions for a recorder whose records are timed with `Clock`.
template <class Clock>
struct cold_functions {
    [[nodiscard]] static opened open_record(recorder_words& to, event_state& type, left_at where,
                                            std::uint32_t bytes, bool ends) noexcept {
        lane_state& lane = *first_lane(type.ring, to.lanes_at);
        const bool is_begun =
            where.idle != not_begun && put_back(lane, where.opener, where.idle) && where.idle < 0;
        const opened found = is_begun
                                 ? to.the_core->open_further(type, bytes, where.opener, ends, lane)
                                 : to.the_core->open(type, bytes, where.opener, ends);
        if (found.lane != nullptr) time_source<Clock>::share(mark_of(*found.lane), found.time);
        return found;
    }
    [[nodiscard]] static opened open(recorder_words& to, event_state& type, left_at where,
                                     std::uint32_t bytes, const void* holder) noexcept {
        const opened found = open_record(to, type, where, bytes, false);
        if (holder != nullptr && found.lane != nullptr)
            to.the_core->hold(*found.lane, where.opener, holder);
        return found;
    }
    static void close(recorder_words& to, lane_state& lane, event_state& type, std::uint32_t bytes,
                      std::uint32_t flags, open_span* span) noexcept {
        if ((flags & record_word::begin) != 0)
            span->begin(mark_of(lane), *lane.sub.load(relaxed));  // relaxed: own lane
        commit_record(lane, bytes);
        if (type.description.counted) count_record(lane, type);
        to.the_core->finish(lane);
    }
    static bool append(recorder_words& to, event_state& type, left_at where,
                       const std::uint64_t* words, std::uint32_t count, std::uint32_t flags,
                       open_span* span) noexcept {
        const bool ends = flags == record_word::end;
        std::uint32_t bytes = record_header_bytes + count * 8;
        // An end may have to say where the span began.
        const std::uint32_t most = ends ? std::uint32_t{layout::span_end_record::bytes} : bytes;
        const auto [lane, time] = open_record(to, type, where, most, ends);
        if (lane == nullptr) return false;
        // relaxed, to the end: `open` saw the id; own lane; and the commit word publishes the rest
        lane_mark& mark = mark_of(*lane);
        const bool elsewhere = ends && !span->is_innermost(mark, *lane->sub.load(relaxed));
        std::uint64_t began[2];
        if (elsewhere) {
            to.the_core->end_elsewhere(*span, began);
            words = began;
            count = 2;
            bytes = most;
            flags = layout::span_end_record::flags;
        }
        const std::uint32_t id = record_word::id(type.header.load(relaxed));
        std::byte* const at = end_of_records(*lane);
        lane_writer::store_head(at,
                                time | std::uint64_t{record_word::pack(id, bytes, flags)} << 32);
        for (std::uint32_t i = 0; i < count; ++i)
            word_at<std::uint64_t>(at, record_header_bytes + i * 8).store(words[i], relaxed);
        if (!ends) {
            close(to, *lane, type, bytes, flags, span);
            return true;
        }
        commit_record(*lane, bytes);
        if (!elsewhere) span->end(mark);
        to.the_core->finish(*lane);
        return true;
    }
    static void discard(recorder_words& to, lane_state& lane) noexcept {
        to.the_core->finish(lane);
    }
    static void hold(recorder_words& to, lane_state& lane, mark_type mark,
                     const void* holder) noexcept {
        to.the_core->hold(lane, mark, holder);
    }
    static void register_type(event_state& type) noexcept { impl::register_type(type); }
    static std::size_t enable(recorder_words& to, name_view glob, bool on) noexcept {
        return to.the_core->events().enable(glob, on);
    }
    static void shut(recorder_words& to, bool now) noexcept { to.the_core->events().shut(now); }
    static int snapshot(recorder_words& to, const char* file) noexcept {
        return write_snapshot(*to.the_core, file);
    }
    static void flush_thread(recorder_words& to) noexcept {
        for (auto& place : thread_lanes) {
            lane_block* const block = place.load(relaxed);  // relaxed: own word
            if (block != &vacant_block) to.the_core->leave_thread(*block, true);
        }
    }
    static void refuse(recorder_words& to) noexcept {
        // relaxed: a counter
        to.the_core->memory().ring().refused_without_lane.fetch_add(1, relaxed);
    }
    static constexpr cold_path table{&append,   &open,          &close,  &discard,
                                     &hold,     &register_type, &enable, &shut,
                                     &snapshot, &flush_thread,  &refuse};
};

}  // namespace impl

template <class Kind>
basic_recorder<Kind>::basic_recorder(const recorder_options& options) {
    static_assert(clock::policy<clock_policy>, "trace_ring: Kind::clock must be a clock policy");
    words_.the_core = new impl::core(options, impl::functions_of<clock_policy>,
                                     words_.gates);  // given back below
    words_.max_record = words_.the_core->max_record();
    words_.cold = &impl::cold_functions<clock_policy>::table;
    words_.home = &impl::vacant_block;
    words_.lanes_at = impl::lanes_at(words_.the_core->index());
    retire_ = [](void* which) noexcept {
        impl::recorder_words& words = static_cast<basic_recorder*>(which)->words_;
        delete words.the_core;
        words.the_core = nullptr;
        words.cold = nullptr;
        words.home = nullptr;
        words.lanes_at = 0;
        signal_fence(seq_cst);  // keeps the compiler from leaving these stores out
    };
}

template <class Kind>
auto basic_recorder<Kind>::path() const noexcept {
    return std::string_view(words_.the_core->memory().path());
}
template <class Kind>
int basic_recorder<Kind>::descriptor() const noexcept {
    return words_.the_core->memory().descriptor();
}
template <class Kind>
auto basic_recorder<Kind>::bytes() const noexcept {
    const impl::trace_memory& memory = words_.the_core->memory();
    return std::pair<const std::byte*, std::size_t>(
        memory.base(), as_size(memory.plan().bytes_for(memory.capacity())));
}
template <class Kind>
recorder_statistics basic_recorder<Kind>::statistics() const noexcept {
    return impl::statistics_of(*words_.the_core);
}

}  // namespace trace_ring::inline v1
#endif
