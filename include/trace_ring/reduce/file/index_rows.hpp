// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Copies entries of a trace's dense index, 32 bytes for each sub-buffer.

#include <cstddef>
#include <cstdint>

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
        rows_.read(in.bytes(), in.plan().index_at(slot), count);
    }
    /// False: the entry was being written.
    [[nodiscard]] bool get(std::size_t i, index_row& out) const noexcept {
        out = row_of(rows_.first()[i]);
        return out.pos == rows_.again()[i].pos.load(relaxed);  // relaxed: a copy
    }
    [[nodiscard]] static index_row row_of(const layout::index_entry& copy) noexcept {
        // relaxed, all: nobody writes it
        return {copy.pos.load(relaxed), copy.first_time.load(relaxed), copy.last_time.load(relaxed),
                copy.lane.load(relaxed)};
    }

private:
    read_twice<layout::index_entry> rows_{};
};

}  // namespace trace_ring::inline v1::reduce
