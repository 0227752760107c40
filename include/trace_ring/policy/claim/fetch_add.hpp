// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Claims a position by one locked add, so writers never make one another try again. If a writer
/// slept for a lap, two would have the same slot: so a sequenced table also swaps the slot's
/// sequence word, and a writer that finds it newer or held claims another position. The cursor
/// moves before it can ask for room, so this claim can neither refuse nor wait: it goes with
/// full::overwrite_oldest. Any number of threads and processes; wait-free except for held slots;
/// signal-safe.

#include <cstdint>

#include <trace_ring/policy/claim/claim.hpp>

namespace trace_ring::inline v1::claim {

/// Writers add to the cursor: each gets a different position with one instruction.
struct fetch_add {
    using family = trace_ring::family::claim;
    static constexpr bool many_writers = true;
    static constexpr bool asks_first = false;
    static constexpr bool counts = true;

    template <class Table>
    [[nodiscard]] static ticket take(line& shared, Table& table) noexcept {
        for (std::uint64_t missed = 0; missed <= laps_before_refusal * table.capacity(); ++missed) {
            // relaxed: a position is only a number; the slot's sequence word orders the record
            const position p = shared.cursor.fetch_add(1, relaxed) + 1;
            // There is always room, by overwriting; a ring that grows does so here.
            if (table.admits(p) && table.hold(p)) return {table.index_of(p), p};
        }
        table.count(loss_cause::refused);
        return {};
    }
    static void commit(line&, const ticket&) noexcept {}
    static void discard(line&, const ticket&) noexcept {}
};
static_assert(policy<fetch_add>);

}  // namespace trace_ring::inline v1::claim
