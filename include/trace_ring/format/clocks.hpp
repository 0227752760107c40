// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Clock snapshots as a trace file keeps them: clock_snapshot.hpp, with what had been claimed by
/// then. The table of them has three parts:
/// @code
///   entry 0 | 1 ... newest      | the last quarter
///   first   | a ring of the     | a second copy of those after which
///           | newest            | the clocks had not advanced evenly
/// @endcode

#include <cstdint>

#include <trace_ring/atomic.hpp>
#include <trace_ring/clock_snapshot.hpp>
#include <trace_ring/position.hpp>

namespace trace_ring::inline v1::layout {

/// A clock snapshot of a trace. `ticks` are of the trace's clock.
struct taken_snapshot : clock_snapshot {
    std::uint32_t process = 0;  ///< slot of the process that took it
    std::uint32_t lanes = 0;    ///< lanes entered by then + 1; 0: not known
    position cursor = 0;        ///< sub-buffer position claimed last by then
    std::uint64_t number = 0;   ///< from 1, in the order in which they were taken
    std::uint64_t since = 0;    ///< of one kept: ticks of the one before, or 1; else 0
};

/// One entry. The writer stores `sequence` first, as 0, and last.
struct clock_entry {
    shared_atomic<std::uint64_t> sequence;   ///< 0 while it is written; then its number
    shared_atomic<std::uint64_t> ticks;      ///< of the file's clock, the middle of the bracket
    shared_atomic<std::uint64_t> monotonic;  ///< nanoseconds
    shared_atomic<std::uint64_t> realtime;   ///< nanoseconds since 1970
    shared_atomic<std::uint64_t> width;      ///< ticks between the bracketing reads
    shared_atomic<std::uint32_t> process;
    shared_atomic<std::uint32_t> lanes;
    shared_atomic<std::uint64_t> cursor;
    shared_atomic<std::uint64_t> since;

    /// For the one thread that took the snapshot of this number.
    void store(const taken_snapshot& from) noexcept {
        // relaxed, to the end: what the sequence publishes
        sequence.store(0, relaxed);
        // order: clocks.write:A pairs with clocks.look:A, clocks.last:B, snapshot.mark:B
        thread_fence(release);
        ticks.store(from.ticks, relaxed);
        monotonic.store(from.monotonic, relaxed);
        realtime.store(from.realtime, relaxed);
        width.store(from.uncertainty * 2, relaxed);
        process.store(from.process, relaxed);
        lanes.store(from.lanes, relaxed);
        cursor.store(from.cursor, relaxed);
        since.store(from.since, relaxed);
        // order: clocks.write:B pairs with clocks.last:A, table.read:A, snapshot.mark:A
        sequence.store(from.number, release);
    }
    /// What it holds, in a copy that nobody writes.
    [[nodiscard]] taken_snapshot values() const noexcept {
        // relaxed, to the end: a copy, or as `load` says
        const std::uint64_t bracket = width.load(relaxed);
        return {{ticks.load(relaxed), monotonic.load(relaxed), realtime.load(relaxed),
                 bracket / 2 + bracket % 2},
                process.load(relaxed),
                lanes.load(relaxed),
                cursor.load(relaxed),
                sequence.load(relaxed),
                since.load(relaxed)};
    }
    /// The snapshot of this number. False: another has replaced it, or it is not there yet.
    [[nodiscard]] bool load(std::uint64_t number, taken_snapshot& into) const noexcept {
        // order: clocks.last:A pairs with clocks.write:B
        if (sequence.load(acquire) != number) return false;
        into = values();
        // order: clocks.last:B pairs with clocks.write:A
        thread_fence(acquire);
        return sequence.load(relaxed) == number;  // relaxed: behind the fence
    }
};
static_assert(sizeof(clock_entry) == 64);

/// How many of `count` entries keep a jump of the clocks.
[[nodiscard]] constexpr std::uint32_t kept_clocks(std::uint32_t count) noexcept {
    return count / 4;
}

}  // namespace trace_ring::inline v1::layout
