// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The parts of a decoded sub-buffer: records in stretches, and notes between them.

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

/// A stretch of records, or a note: a note has no records, and `begin` is its number. An unwanted
/// entry stands for `count` records in a row, of any kind, and has only the time of the one read
/// last, in `latest`.
struct entry : stretch {
    enum class answer : std::uint8_t { none, wanted, unwanted };

    std::uint64_t latest = 0;          // of intervals: the next reading of the clock
    const lane_info* whose = nullptr;  // the thread, if not the lane's first
    answer asked = answer::none;       // whether its records are wanted, if known

    [[nodiscard]] bool is_note() const noexcept { return count == 0; }
    /// The address of record `i`.
    [[nodiscard]] const std::uint64_t* at(const std::uint64_t* words,
                                          std::uint32_t i) const noexcept {
        return words + begin + std::size_t{i} * stride();
    }
    [[nodiscard]] std::uint64_t time(const std::uint64_t* words, std::uint32_t i) const noexcept {
        return high | (*at(words, i) & 0xFFFFFFFFU);
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

    void swap(walked_ahead& other) noexcept {
        std::swap(there, other.there);
        std::swap(result, other.result);
        entries.swap(other.entries);
        notes.swap(other.notes);
    }
};

}  // namespace trace_ring::inline v1::reduce
