// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Swaps the cursor from the last position to the next one; a writer whose swap fails tries again
/// with the position that it found. It is the DAS rule over 64-bit positions (das/controls.hpp has
/// it over the historic control words). It asks for room before the swap, so a ring with this claim
/// can refuse and wait. Any number of threads and processes; lock-free; signal-safe.

#include <cstdint>

#include <trace_ring/policy/claim/claim.hpp>

namespace trace_ring::inline v1::claim {

/// Writers swap the cursor: a writer that finds no room changes nothing.
struct compare_exchange {
    using family = trace_ring::family::claim;
    static constexpr bool many_writers = true;
    static constexpr bool asks_first = true;
    static constexpr bool counts = true;

    template <class Table>
    [[nodiscard]] static ticket take(line& shared, Table& table) noexcept {
        // relaxed, all of them: a position is only a number; the slot's sequence word orders the
        // record in it
        std::uint64_t last = shared.cursor.load(relaxed);
        for (std::uint64_t missed = 0;;) {
            const position p = last + 1;
            if (!table.admits(p)) return {};
            // relaxed: as above
            if (!shared.cursor.compare_exchange_weak(last, p, relaxed)) continue;
            if (table.hold(p)) return {table.index_of(p), p};
            if (++missed > laps_before_refusal * table.capacity()) break;
            last = p;
        }
        table.count(loss_cause::refused);
        return {};
    }
    static void commit(line&, const ticket&) noexcept {}
    static void discard(line&, const ticket&) noexcept {}
};
static_assert(policy<compare_exchange>);

}  // namespace trace_ring::inline v1::claim
