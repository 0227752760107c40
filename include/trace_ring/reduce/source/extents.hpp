// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Bytes that lie in several places of something larger, as one row: a recorder's mapping in a core
/// dump may be several segments of it.
/// @code
///   the row    |0        a|a       a+b|
///   extents    {offset x, a bytes}, {offset y, b bytes}, ...
/// @endcode

#include <algorithm>
#include <cstdint>
#include <vector>

namespace trace_ring::inline v1::reduce {

/// Bytes of something larger, and where they stand there.
struct extent {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
};

/// Extents, one after the other. Their bytes can be counted in 64 bits, and so can each offset.
class extent_list {
public:
    /// Puts one behind the others; false, and nothing, if it is more than can be counted.
    bool add(extent one) {
        if (one.bytes > ~size_ || one.bytes > ~one.offset) return false;
        if (one.bytes != 0) list_.push_back({size_, one});
        size_ += one.bytes;
        return true;
    }
    /// The same for a part of this row, of which there is as much as there is: `into` gets it in
    /// terms of what this row is made of.
    bool translate(extent of, extent_list& into) const {
        bool added = true;
        visit(of.offset, of.bytes, [&](std::uint64_t, extent there) {
            added = into.add(there);
            return added;
        });
        return added;
    }

    [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

    /// Calls `visit(at, extent)` for what the bytes from `offset` on are made of, `at` being where
    /// they stand in the row, until it returns false. Logarithmic, then linear in the extents.
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
    std::vector<part> list_;  ///< none is empty; by `at`, without gaps
    std::uint64_t size_ = 0;
};

}  // namespace trace_ring::inline v1::reduce
