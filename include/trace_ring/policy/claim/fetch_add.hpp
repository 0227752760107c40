// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// One locked add gives the ticket; no writer makes another one try again. The ticket alone would
/// tear when a writer sleeps a lap, so a sequenced table swaps the slot's sequence too, and who
/// finds it newer or in flight claims again. The cursor has moved before room could be asked for,
/// so this claim can neither refuse nor wait: it goes with full::overwrite_oldest. Any number of
/// threads and processes; wait-free but for held slots; signal-safe.

#include <cstdint>

#include <trace_ring/policy/claim/claim.hpp>

namespace trace_ring::inline v1::claim {

struct fetch_add {
    using family = trace_ring::family::claim;
    static constexpr bool many_writers = true;
    static constexpr bool asks_first = false;
    static constexpr bool counts = true;

    template <class Table>
    [[nodiscard]] static ticket take(line& shared, Table& table) noexcept {
        for (std::uint64_t missed = 0; missed <= laps_before_refusal * table.capacity(); ++missed) {
            // relaxed: a position is a number; what lies in its slot is ordered by the slot's own
            // sequence word
            const position p = shared.cursor.fetch_add(1, relaxed) + 1;
            // Always room in the end; a ring that grows does so here.
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
