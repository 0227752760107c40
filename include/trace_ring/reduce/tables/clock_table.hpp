// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Reads the clock readings of a trace file.

#include <cstddef>
#include <cstdint>
#include <vector>

#include <trace_ring/atomic.hpp>
#include <trace_ring/format/layout.hpp>
#include <trace_ring/position.hpp>
#include <trace_ring/reduce/source.hpp>
#include <trace_ring/reduce/tables/clock_eras.hpp>
#include <trace_ring/reduce/tables/writers.hpp>

namespace trace_ring::inline v1::reduce {

/// The readings that are not being replaced, in the order of the file. Throws std::bad_alloc.
[[nodiscard]] inline std::vector<clock_triple> read_clock_triples(const source& from,
                                                                  const layout::plan& plan) {
    using layout::clock_entry;
    using layout::ring_state;
    const std::size_t size = plan.clock_count * sizeof(clock_entry) / 8;
    std::vector<std::uint64_t> words(size);
    std::vector<std::uint64_t> again(size);
    (void)from.read(plan.clocks, words.data(), size * 8);
    // A triple that is being replaced would be a mixture: its number differs between the reads.
    // order: clocks.look:A pairs with clocks.write:A
    thread_fence(acquire);
    (void)from.read(plan.clocks, again.data(), size * 8);
    // Positions of several rings have no common order.
    std::uint64_t quota = 0;
    (void)from.read(
        plan.ring + offsetof(ring_state, quotas) + offsetof(ring_state::quota, sub_buffers), &quota,
        sizeof quota);
    std::vector<clock_triple> out;
    for (std::uint32_t i = 0; i < plan.clock_count; ++i) {
        const table_row row{words, plan.clocks, i * sizeof(clock_entry)};
        const table_row later{again, plan.clocks, i * sizeof(clock_entry)};
        const auto u32 = [&row](std::size_t field) { return row.get<std::uint32_t>(field); };
        const auto u64 = [&row](std::size_t field) { return row.get<std::uint64_t>(field); };
        clock_triple one;
        one.number = u64(offsetof(clock_entry, sequence));
        if (one.number == 0 ||
            one.number != later.get<std::uint64_t>(offsetof(clock_entry, sequence))) {
            continue;
        }
        one.ticks = u64(offsetof(clock_entry, ticks));
        one.monotonic = u64(offsetof(clock_entry, monotonic));
        one.realtime = u64(offsetof(clock_entry, realtime));
        one.width = u64(offsetof(clock_entry, width));
        one.process = u32(offsetof(clock_entry, process));
        one.lanes = u32(offsetof(clock_entry, lanes));
        one.cursor = quota == 0 ? u64(offsetof(clock_entry, cursor)) : ~position{0};
        one.since = u64(offsetof(clock_entry, since));
        out.push_back(one);
    }
    return out;
}

}  // namespace trace_ring::inline v1::reduce
