// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A reader's view of a table that it has copied out of a trace.

#include <cstddef>
#include <cstdint>
#include <span>

namespace trace_ring::inline v1::layout {

/// The entries of one table that a reader has copied out of a trace, one after the other.
template <class Entry>
struct copied_entries {
    std::span<const std::uint64_t> words;
    std::uint64_t at = 0;  ///< where the table lies in the trace

    [[nodiscard]] std::size_t size() const noexcept { return words.size_bytes() / sizeof(Entry); }
    [[nodiscard]] const Entry& operator[](std::size_t i) const noexcept {
        return *static_cast<const Entry*>(
            static_cast<const void*>(words.data() + i * (sizeof(Entry) / sizeof words[0])));
    }
    /// Where a field of an entry lies in the trace.
    template <class Field>
    [[nodiscard]] std::uint64_t offset(const Field& field) const noexcept {
        const auto* const first = reinterpret_cast<const std::byte*>(words.data());
        return at + static_cast<std::uint64_t>(reinterpret_cast<const std::byte*>(&field) - first);
    }
};

}  // namespace trace_ring::inline v1::layout
