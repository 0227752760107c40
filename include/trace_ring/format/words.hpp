// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The words of the format that each record is made of or uses: the header of a sub-buffer, its
/// commit word, the first words of a record, and the gates of events. They are apart from the rest
/// of the format because every file that records includes them.

#include <cstddef>
#include <cstdint>

#include <trace_ring/atomic.hpp>

namespace trace_ring::inline v1 {

inline constexpr std::size_t min_sub_buffer_bytes = 512;
inline constexpr std::size_t default_sub_buffer_bytes = 4096;
inline constexpr std::size_t max_sub_buffer_bytes = 32768;

/// The first 64 bytes of a sub-buffer. Fields of 8 bytes are 8-aligned, also on i386. All but
/// `state` are written only by the lane that claimed the sub-buffer.
struct sub_buffer_header {
    shared_atomic<std::uint32_t> magic;           ///< see numbered_magic
    shared_atomic<std::uint32_t> lane;            ///< number of the lane; 0 in a single ring
    shared_atomic<std::uint64_t> state;           ///< position << 3 | sub_buffer_state
    shared_atomic<std::uint64_t> first_position;  ///< position in the lane of the first record
    shared_atomic<std::uint64_t> base_time;       ///< clock when it was claimed
    shared_atomic<std::uint64_t> previous;        ///< the lane's sub-buffer before; 0: none
    shared_atomic<std::uint64_t> end_time;        ///< clock when it was closed; 0: not closed
    shared_atomic<std::uint32_t> commit;          ///< a commit_word
    shared_atomic<std::uint32_t> refused;         ///< lost before the first record: no room
    shared_atomic<std::uint32_t> too_long;        ///< lost while this was current
    shared_atomic<std::uint32_t> nested;          ///< lost while this was current
};
static_assert(sizeof(sub_buffer_header) == 64);

/// The commit word: one store publishes a record, and no byte past its offset is ever read. A
/// sub-buffer holds at most 4088 records, so the count never reaches the word's top.
/// @code
///   bit 31......16  15.................................0
///       records     offset of the first free byte - bias
/// @endcode
/// The bias makes the lower half, read with its sign, negative for each possible offset (64 to
/// 32768). So one unsigned comparison shows a writer whether there is room, for any other value of
/// the mark (recorder/site/lane.hpp).
struct commit_word {
    static constexpr std::uint32_t bias = 0x8008;
    static constexpr std::uint32_t one_record = 1U << 16;

    [[nodiscard]] static constexpr std::uint32_t pack(std::uint32_t records,
                                                      std::uint32_t offset) noexcept {
        return records << 16 | ((offset - bias) & 0xFFFFU);
    }
    [[nodiscard]] static constexpr std::uint32_t offset(std::uint32_t word) noexcept {
        return (word + bias) & 0xFFFFU;
    }
    [[nodiscard]] static constexpr std::uint32_t records(std::uint32_t word) noexcept {
        return word >> 16;
    }
    static constexpr std::uint32_t empty = (sizeof(sub_buffer_header) - bias) & 0xFFFFU;
};
static_assert(commit_word::empty == commit_word::pack(0, sizeof(sub_buffer_header)));
static_assert(commit_word::pack(1, 32768) == 0x1FFF8 && commit_word::offset(0x1FFF8) == 32768);
static_assert(commit_word::pack(0, 64) + commit_word::one_record + 24 == commit_word::pack(1, 88));

/// The first 8 bytes of a record: the clock's low half, then this word.
/// @code
///   bit 31..28  27........16  15.........0
///       flags   length / 8    event id      (length with this header; 1 to 4095 words)
/// @endcode
struct record_word {
    enum flag : std::uint32_t {
        cut = 1,       ///< a string or array did not fit and was cut
        interval = 2,  ///< the time is the last anchor's: a lower bound
        begin = 4,     ///< a span begins
        end = 8,       ///< a span ends: the one that began last in this lane and has not ended
    };
    /// The id of the library's own records, told apart by their lengths: time and owner.
    static constexpr std::uint16_t time_id = 0;

    [[nodiscard]] static constexpr std::uint32_t pack(std::uint32_t id, std::size_t bytes,
                                                      std::uint32_t flags = 0) noexcept {
        return id | static_cast<std::uint32_t>(bytes / 8) << 16 | flags << 28;
    }
    [[nodiscard]] static constexpr std::uint16_t id(std::uint32_t word) noexcept {
        return static_cast<std::uint16_t>(word & 0xFFFFU);
    }
    [[nodiscard]] static constexpr std::uint32_t bytes(std::uint32_t word) noexcept {
        return (word >> 16 & 0xFFFU) * 8;
    }
    [[nodiscard]] static constexpr std::uint32_t flags(std::uint32_t word) noexcept {
        return word >> 28;
    }
};
inline constexpr std::size_t record_header_bytes = 8;
inline constexpr std::size_t time_record_bytes = 16;
inline constexpr std::size_t owner_record_bytes = 24;
inline constexpr std::size_t named_owner_record_bytes = 40;

namespace layout {

struct index_entry;
struct lane_entry;

/// The unit of the file's layout, the same on all machines: the header and each page of gates have
/// this many bytes, and each region begins at a multiple of it. Not a page of the machine's memory.
inline constexpr std::size_t format_page_bytes = 4096;

/// The end of a span that is not the last one open in the lane: a coroutine was suspended in it, or
/// another thread or the child of a fork ends it. It says where the
/// span began.
/// @code
///   0  clock's low half, record word with the flags begin and end
///   8  u64 number of the record that began it, in its lane, from 1    16 u32 lane, u32 zero
///   24 the results of the span, if it has any
/// @endcode
struct span_end_record {
    static constexpr std::uint32_t flags = record_word::begin | record_word::end;
    static constexpr std::size_t bytes = 24;  ///< without results
};

/// Rings that a file may have: the first, and those of events with a quota.
inline constexpr std::size_t max_rings = 4;

/// Ids of event types are 1 to this.
inline constexpr std::uint32_t max_event_id = 4095;

/// Totals that a lane may have: counters of events that ask for one.
inline constexpr std::uint32_t max_totals = 64;

/// The bits of a gate; zero is open. Each is a reason to be shut, and can be lifted alone.
enum gate_bits : std::uint8_t {
    gate_event_off = 1,     ///< this event was switched off
    gate_recorder_off = 2,  ///< recording as a whole was stopped
    gate_no_event = 4,      ///< there is no such event: id 0, always
};

/// A gate for each event, by its id.
struct gate_page {
    shared_atomic<std::uint8_t> gates[max_event_id + 1];
};
static_assert(sizeof(gate_page) == format_page_bytes);

/// Shuts a gate for this reason, or lifts the reason. Signal-safe.
inline void set_gate(shared_atomic<std::uint8_t>& gate, gate_bits reason, bool shut) noexcept {
    // relaxed, to the end: a gate is advice that takes effect soon
    if (shut) {
        gate.fetch_or(reason, relaxed);
    } else {
        gate.fetch_and(static_cast<std::uint8_t>(~reason), relaxed);
    }
}

}  // namespace layout
}  // namespace trace_ring::inline v1
