// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Copies entries of a trace's dense index, 32 bytes for each sub-buffer.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include <trace_ring/reduce/tables.hpp>

namespace trace_ring::inline v1::reduce {

/// One entry, unchecked.
struct index_row {
    position pos = no_position;
    std::uint64_t first_time = 0;
    std::uint64_t last_time = 0;  ///< 0: not closed
    std::uint32_t lane = 0;
};

class index_rows {
public:
    /// Copies the entries of `count` slots from `slot` on; entries beyond the file's end are zero.
    void read(const tables& in, std::uint64_t slot, std::size_t count) {
        constexpr std::size_t bytes = sizeof(layout::index_entry);
        words_.read(in.bytes(), in.plan().index + slot * bytes, count * bytes);
    }
    /// False: the entry was being written.
    [[nodiscard]] bool get(std::size_t i, index_row& out) const noexcept {
        const std::size_t at = i * row_words;
        out = row_of(std::span(words_.first).subspan(at, row_words));
        return words_.first[at] == words_.again[at];
    }

    static constexpr std::size_t row_words = sizeof(layout::index_entry) / 8;

    [[nodiscard]] static index_row row_of(std::span<const std::uint64_t> words) noexcept {
        return {words[0], words[1], words[2], static_cast<std::uint32_t>(words[3])};
    }

private:
    read_twice words_{};
};

}  // namespace trace_ring::inline v1::reduce
