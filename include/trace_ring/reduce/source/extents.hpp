// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Bytes in several places of something larger, read as one row: a recorder's mapping may be
/// several segments of a core dump.
/// @code
///   the row    |0        a|a       a+b|
///   extents    {offset x, a bytes}, {offset y, b bytes}, ...
/// @endcode

#include <algorithm>
#include <cstdint>
#include <vector>

namespace trace_ring::inline v1::reduce {

/// Bytes of something larger, by their offset there.
struct extent {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
};

/// Extents, one after the other. The number of their bytes and each offset fit into 64 bits.
class extent_list {
public:
    /// Adds an extent at the end; false, and no change, if 64 bits cannot count the bytes.
    bool add(extent one) {
        if (one.bytes > ~size_ || one.bytes > ~one.offset) return false;
        if (one.bytes != 0) list_.push_back({size_, one});
        size_ += one.bytes;
        return true;
    }
    /// Adds to `into` the part of this row that `of` names, as far as the row has it, in extents of
    /// what this row is made of. False as in `add`.
    bool translate(extent of, extent_list& into) const {
        bool added = true;
        visit(of.offset, of.bytes, [&](std::uint64_t, extent there) {
            added = into.add(there);
            return added;
        });
        return added;
    }

    [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

    /// Calls `visit(at, extent)` for the extents of the bytes from `offset` on, with `at` as their
    /// offset in the row, until it returns false. Logarithmic, then linear in the extents.
    template <class Visit>
    void visit(std::uint64_t offset, std::uint64_t bytes, Visit&& visit) const {
        if (offset >= size_) return;
        bytes = (std::min)(bytes, size_ - offset);
        auto p =
            std::upper_bound(list_.begin(), list_.end(), offset,
                             [](std::uint64_t value, const part& one) { return value < one.at; }) -
            1;
        for (; bytes != 0; ++p) {
            const std::uint64_t within = offset - p->at;
            const std::uint64_t there = (std::min)(bytes, p->from.bytes - within);
            if (!visit(offset, extent{p->from.offset + within, there})) return;
            offset += there;
            bytes -= there;
        }
    }

private:
    struct part {
        std::uint64_t at;
        extent from;
    };
    std::vector<part> list_{};  ///< by `at`, without gaps; no part is empty
    std::uint64_t size_ = 0;
};

}  // namespace trace_ring::inline v1::reduce
