// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What a decoded sub-buffer consists of: records in stretches, and notes between them.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include <trace_ring/format/sub_buffer.hpp>
#include <trace_ring/reduce/item.hpp>
#include <trace_ring/reduce/tables/writers.hpp>

namespace trace_ring::inline v1::reduce {

using note_type = std::variant<loss_item, clock_jump>;

/// A stretch, or a note: then it has no records, and `begin` is the note's number. What is not
/// wanted is so many records in a row, of any kind, and only the time of the one read last, as
/// `latest`.
struct entry : stretch {
    enum class answer : std::uint8_t { none, wanted, unwanted };

    std::uint64_t latest = 0;          // of intervals: the next reading of the clock
    const lane_info* whose = nullptr;  // if another thread's than the lane's first
    answer asked = answer::none;       // what is wanted of records

    [[nodiscard]] bool is_note() const noexcept { return count == 0; }
    /// Where number `i` of its records lies in the sub-buffer.
    [[nodiscard]] const std::uint64_t* at(const std::uint64_t* words,
                                          std::uint32_t i) const noexcept {
        return words + begin + std::size_t{i} * stride();
    }
    [[nodiscard]] std::uint64_t time(const std::uint64_t* words, std::uint32_t i) const noexcept {
        return high | (*at(words, i) & 0xFFFFFFFFU);
    }
};

/// What came of walking a sub-buffer.
struct walked {
    std::uint32_t records = 0;  ///< that make sense
    std::uint64_t last_time = 0;
    bool sound = true;  ///< all of it does
};

/// What was walked before anybody asked for it.
struct walked_ahead {
    bool there = false;
    walked result{};
    std::vector<entry> entries{};
    std::vector<note_type> notes{};

    void swap(walked_ahead& other) noexcept {
        std::swap(there, other.there);
        std::swap(result, other.result);
        entries.swap(other.entries);
        notes.swap(other.notes);
    }
};

}  // namespace trace_ring::inline v1::reduce
