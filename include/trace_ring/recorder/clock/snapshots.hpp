// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The clock snapshots of a trace, which let a reader convert ticks to times. The newest replace
/// each other. Those after which the clocks did not advance evenly are kept apart, so that a date
/// that was set, or a machine that started again, is known long after.

#include <cstdint>

#include <trace_ring/atomic.hpp>
#include <trace_ring/bounds.hpp>
#include <trace_ring/clock_snapshot.hpp>
#include <trace_ring/format/clocks.hpp>
#include <trace_ring/format/view.hpp>
#include <trace_ring/recorder/file/trace_memory.hpp>

namespace trace_ring::inline v1::impl {

/// Adds a snapshot, which `take()` takes for the process in this slot, and numbers snapshots in the
/// order in which they were taken. Lock-free; signal-safe if `take` is.
template <class Take>
void add_clocks(const layout::view& trace, const Take& take, std::uint32_t process) noexcept {
    layout::ring_state& ring = trace.ring();
    const std::uint32_t kept = layout::kept_clocks(trace.plan().clock_count);
    const std::uint32_t newest = trace.plan().clock_count - 1 - kept;  // in the ring of those
    const auto entry_of = [&](std::uint64_t number) -> layout::clock_entry& {
        const auto slot = number == 1 ? 0 : 1 + static_cast<std::uint32_t>((number - 2) % newest);
        return trace.clocks(slot);
    };
    layout::taken_snapshot taken;
    taken.process = process;
    // relaxed, to the end: a number out of a counter, and what the sequence publishes
    std::uint32_t before = ring.clock_cursor.load(relaxed);
    do {
        taken.lanes = ring.last_lane.load(relaxed) + 1;
        taken.cursor = ring.cursor.load(relaxed);
        static_cast<clock_snapshot&>(taken) = take();
    } while (!ring.clock_cursor.compare_exchange_weak(before, before + 1, relaxed));
    taken.number = before + 1ULL;
    entry_of(taken.number).store(taken);
    layout::taken_snapshot last;
    if (taken.number == 1 || kept == 0 || !entry_of(taken.number - 1).load(taken.number - 1, last))
        return;
    const auto rate = static_cast<double>(trace.header().ticks_per_second.load(relaxed));
    if (advance_of(last, taken, rate).even) return;
    taken.since = greatest<std::uint64_t>(last.ticks, 1);
    std::uint32_t oldest = 1 + newest;
    for (std::uint32_t slot = oldest; slot < trace.plan().clock_count; ++slot) {
        if (trace.clocks(slot).sequence.load(relaxed) <
            trace.clocks(oldest).sequence.load(relaxed)) {
            oldest = slot;
        }
    }
    trace.clocks(oldest).store(taken);
}
/// Adds a snapshot of the trace's clock. Signal-safe.
inline void add_clocks(const trace_memory& memory, std::uint32_t process) noexcept {
    add_clocks(
        memory, [&memory] { return memory.snapshot(); }, process);
}

/// When the clocks are read together: after 1 ms, 2 ms, 4 ms ... and then each second. The words
/// that say when are advice: one reading more or less does not matter.
class clock_schedule {
public:
    /// From now on; before others use it.
    void begin(const trace_memory& memory) noexcept {
        // relaxed, all: no other thread has this yet
        const std::uint64_t second = memory.header().ticks_per_second.load(relaxed);
        quick_ = second / 2'000'000 + 1;  // at least one tick
        gap_.store(second / 1000 + 1, relaxed);
        due_.store(memory.now() + second / 1000 + 1, relaxed);
        next_.store(due_.load(relaxed), relaxed);
    }
    /// Called by a claim that began at `now`. One that was slow has waited for memory, and then the
    /// clocks' code and data are out of the caches as well: reading takes as long again, and the
    /// readings lie too far apart to say much. So slow claims leave it to others for 32 times as
    /// long. They also put it off a little, because where all claims are slow each would ask the
    /// clock in vain. Any thread, signal-safe.
    void read_if_due(const trace_memory& memory, std::uint32_t process,
                     std::uint64_t now) noexcept {
        // relaxed, to the end: advice, and a swap
        std::uint64_t next = next_.load(relaxed);
        if (now < next || memory.clock() == 0) return;
        const std::uint64_t gap = gap_.load(relaxed);
        const bool takes = memory.now() - now < quick_ || now - due_.load(relaxed) >= 31 * gap;
        const std::uint64_t later = now + (takes ? gap : gap / 32);
        if (!next_.compare_exchange_strong(next, later, relaxed) || !takes) return;
        const std::uint64_t second = memory.header().ticks_per_second.load(relaxed);
        due_.store(later, relaxed);
        gap_.store(least(gap * 2, second), relaxed);
        add_clocks(memory, process);
    }

private:
    atomic<std::uint64_t> next_{0}, due_{0}, gap_{0};
    std::uint64_t quick_ = 0;  // half a microsecond, in ticks
};

}  // namespace trace_ring::inline v1::impl
