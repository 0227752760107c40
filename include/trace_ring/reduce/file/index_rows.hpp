// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Copies entries of a trace's dense index, 32 bytes for each sub-buffer.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <trace_ring/atomic.hpp>
#include <trace_ring/format/layout.hpp>
#include <trace_ring/position.hpp>
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
        const std::uint64_t at = in.plan().index + slot * sizeof(layout::index_entry);
        first_.assign(count * row_words, 0);
        again_.assign(count * row_words, 0);
        (void)in.bytes().read(at, first_.data(), first_.size() * 8);
        // An entry that is being written would be a mixture: its position differs between reads.
        // order: index.look:A pairs with claim:A, here.index:A
        thread_fence(acquire);
        (void)in.bytes().read(at, again_.data(), again_.size() * 8);
    }
    /// False: the entry was being written.
    [[nodiscard]] bool get(std::size_t i, index_row& out) const noexcept {
        const std::size_t at = i * row_words;
        out = row_of(std::span(first_).subspan(at, row_words));
        return first_[at] == again_[at];
    }

    static constexpr std::size_t row_words = sizeof(layout::index_entry) / 8;

    [[nodiscard]] static index_row row_of(std::span<const std::uint64_t> words) noexcept {
        return {words[0], words[1], words[2], static_cast<std::uint32_t>(words[3])};
    }

private:
    std::vector<std::uint64_t> first_;
    std::vector<std::uint64_t> again_;
};

}  // namespace trace_ring::inline v1::reduce
