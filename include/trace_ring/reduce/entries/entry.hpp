// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The parts of a decoded sub-buffer: records in stretches, and notes between them.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include <trace_ring/format/records.hpp>
#include <trace_ring/reduce/filter.hpp>
#include <trace_ring/reduce/tables.hpp>

namespace trace_ring::inline v1::reduce {

using note_type = std::variant<loss_item, clock_jump>;

/// The words of a sub-buffer, and of the records that its records pack (unpacking.hpp).
struct record_words {
    const std::uint64_t* copied;
    const std::uint64_t* unpacked;
};

/// A stretch of records, or a note: a note has no records, and `begin` is its number. An unwanted
/// entry represents `count` records in a row, of any kind, and has only the time of the one read
/// last, in `latest`.
struct entry : stretch {
    enum class answer : std::uint8_t { none, wanted, unwanted };

    std::uint64_t latest = 0;          // of intervals: the next reading of the clock
    const lane_info* owner = nullptr;  // the thread, if not the lane's first
    std::uint32_t number = 0;          // how many records the sub-buffer has before the first
    // Where the record begins, in words, from which these were unpacked; 0: they are the
    // sub-buffer's own. All of them have its number.
    std::uint16_t packed = 0;
    answer asked = answer::none;  // whether its records are wanted, if known

    [[nodiscard]] bool is_note() const noexcept { return count == 0; }
    /// The address of record `i`.
    [[nodiscard]] const std::uint64_t* at(const record_words& words,
                                          std::uint32_t i) const noexcept {
        return (packed == 0 ? words.copied : words.unpacked) + begin + std::size_t{i} * stride();
    }
    [[nodiscard]] std::uint64_t time(const record_words& words, std::uint32_t i) const noexcept {
        return high | (*at(words, i) & 0xFFFFFFFFU);
    }
    /// How many records the sub-buffer has before record `i`.
    [[nodiscard]] std::uint32_t number_of(std::uint32_t i) const noexcept {
        return number + (packed == 0 ? i : 0);
    }
    /// What its records share, as those of this lane and type in a sub-buffer at `offset`.
    [[nodiscard]] record_view::kind shared(const lane_info* lane, const event_type* type,
                                           std::uint64_t offset,
                                           const record_words& words) const noexcept {
        if (packed != 0) return {lane, type, high, latest, offset + packed * 8ULL, nullptr};
        return {lane, type, high, latest, offset, words.copied};
    }
};

/// The result of walking a sub-buffer.
struct walked {
    std::uint32_t records = 0;  ///< the sound ones
    std::uint64_t last_time = 0;
    bool sound = true;  ///< all records are
};

/// The result of a walk that was made ahead of time.
struct walked_ahead {
    bool there = false;
    walked result{};
    std::vector<entry> entries{};
    std::vector<note_type> notes{};
};

}  // namespace trace_ring::inline v1::reduce
