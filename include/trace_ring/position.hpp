// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Logical positions: 64-bit counts that are never masked and never wrap in practice (at a billion
/// a second, 584 years), so that "older" is a plain comparison and a value identifies a slot's
/// owner.

#include <cstdint>

namespace trace_ring::inline v1 {

/// The number of a record in a lane or table, or of a sub-buffer in a recorder. Positions of
/// sub-buffers and slots begin at 1: zero is "never", which a freshly zeroed mapping holds anyway.
using position = std::uint64_t;

inline constexpr position no_position = 0;  ///< no position: never

/// The last that fits into a state word, next to the state. No sub-buffer is claimed behind it:
/// records that would need one are refused, and counted.
inline constexpr position last_position = ~position{0} >> 3;

/// Where position `p` (at least 1) lies in a ring of `count` slots.
[[nodiscard]] constexpr std::uint64_t slot_of(position p, std::uint64_t count) noexcept {
    return (p - 1) % count;
}

/// A position in the upper 61 bits and a state in the lower three, in one word that can be swapped.
struct stamped {
    position pos = no_position;  ///< the position
    unsigned state = 0;          ///< the state, below 8

    /// From a word in shared memory.
    [[nodiscard]] static constexpr stamped from(std::uint64_t word) noexcept {
        return {word >> 3, static_cast<unsigned>(word & 7U)};
    }
    /// As a word that can be swapped.
    [[nodiscard]] constexpr std::uint64_t word() const noexcept { return pos << 3 | state; }
    friend constexpr bool operator==(stamped, stamped) noexcept = default;
};

}  // namespace trace_ring::inline v1
