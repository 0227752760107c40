// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The cold path as a site sees it: a table of functions that a recorder's constructor sets, so
/// that a file that only records does not compile the cold path.

#include <cstddef>
#include <cstdint>

#include <trace_ring/recorder/site/event_type.hpp>
#include <trace_ring/recorder/site/lane.hpp>
#include <trace_ring/recorder/site/recorder_words.hpp>

namespace trace_ring::inline v1::impl {

struct open_span;

/// A lane with an open record, the low half of that record's time, and its type's header.
struct opened {
    lane_state* lane = nullptr;
    std::uint32_t time = 0;
    std::uint32_t header = 0;
};

/// In place of the mark before: the hot path has not set its own.
inline constexpr mark_type not_begun = 1;

/// Where a record left the hot path: the mark of its lane before, and now (a place on the stack).
struct left_at {
    mark_type idle = not_begun;
    mark_type opener = 0;
};

/// `flags`: the record's. With record_word::begin or end, at most one of them, `span` is that span.
struct cold_path {
    /// Writes a record of `count` words; for the end of a span they are its results.
    bool (*append)(recorder_words& to, event_state& type, left_at where, const std::uint64_t* words,
                   std::uint32_t count, std::uint32_t flags, open_span* span) noexcept;
    /// Opens a record of `bytes`, its header included; no lane if it is lost, and counted. It is
    /// stored at `end_of_records` and closed by one of the two that follow. `holder`: the
    /// reservation that it is, if it is one.
    opened (*open)(recorder_words& to, event_state& type, left_at where, std::uint32_t bytes,
                   const void* holder) noexcept;
    /// Commits it.
    void (*close)(recorder_words& to, lane_state& lane, event_state& type, std::uint32_t bytes,
                  std::uint32_t flags, open_span* span) noexcept;
    /// Gives it up.
    void (*discard)(recorder_words& to, lane_state& lane) noexcept;
    /// Says that the reservation of the open record of `lane` is the object at `holder` now.
    void (*hold)(recorder_words& to, lane_state& lane, mark_type mark, const void* holder) noexcept;
    void (*register_type)(recorder_words& to, event_state& type) noexcept;
    std::size_t (*enable)(recorder_words& to, name_view glob, bool on) noexcept;
    void (*shut)(recorder_words& to, bool now) noexcept;
    int (*snapshot)(recorder_words& to, const char* file) noexcept;
    void (*flush_thread)(recorder_words& to) noexcept;
    /// basic_recorder::pause_ends.
    void (*pause_ends)(recorder_words& to) noexcept;
    /// runtime_event::lose.
    void (*lose)(recorder_words& to, std::uint32_t count) noexcept;
};

/// Where the next record of an open lane goes.
[[nodiscard]] inline std::byte* end_of_records(lane_state& lane) noexcept {
    sub_buffer_header* const sub = lane.sub.load(relaxed);  // relaxed: own lane, twice
    return reinterpret_cast<std::byte*>(sub) + commit_word::offset(sub->commit.load(relaxed));
}

// A record that the hot path could not write: from where it left off if it had opened the lane, or
// from its beginning. One such call a site, shared by all records of as many words.

/// Whether the cold path can be asked. If not, nothing is constructed, and the mark is put back.
[[nodiscard]] inline bool has_cold_path(const recorder_words& to,
                                        [[maybe_unused]] const event_state& type,
                                        [[maybe_unused]] left_at where) noexcept {
    if (to.cold != nullptr) [[likely]]
        return true;
#if !defined(TRACE_RING_LIBRARY_CODE)  // there a record has not begun: no home is known
    if (where.idle != not_begun) {
        // relaxed: own thread
        mark_of(*first_lane(type.ring, to.lanes_at)).value.store(where.idle, relaxed);
    }
#endif
    return false;
}

[[gnu::noinline, gnu::cold]] inline bool append_words(recorder_words& to, event_state& type,
                                                      left_at where, const std::uint64_t* words,
                                                      std::uint32_t count, std::uint32_t flags,
                                                      open_span* span) noexcept {
    return has_cold_path(to, type, where) &&
           to.cold->append(to, type, where, words, count, flags, span);
}
template <class... Words>
[[gnu::noinline, gnu::cold]] bool append_cold(recorder_words& to, event_state& type, mark_type idle,
                                              mark_type opener, Words... words) noexcept {
    const std::uint64_t all[] = {words..., 0};
    return append_words(to, type, {idle, opener}, all, sizeof...(Words), 0, nullptr);
}

}  // namespace trace_ring::inline v1::impl
