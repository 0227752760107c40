// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Readings of three clocks together, which tell a reader what ticks are worth. The newest replace
/// each other; those after which the clocks did not advance evenly are kept apart, so that a date
/// that was set, or a machine that started again, is known long after.

#include <cstddef>
#include <cstdint>

#include <trace_ring/atomic.hpp>
#include <trace_ring/bounds.hpp>
#include <trace_ring/clock_snapshot.hpp>
#include <trace_ring/format/layout.hpp>
#include <trace_ring/recorder/file/trace_memory.hpp>

namespace trace_ring::inline v1::impl {

/// The readings of the file whose memory, laid out by a checked plan, is at `memory`.
class clock_readings {
public:
    clock_readings(std::byte* memory, const layout::plan& plan) noexcept
        : memory_(memory),
          plan_(plan),
          kept_(layout::kept_clocks(plan.clock_count)),
          newest_(plan.clock_count - 1 - kept_) {}

    /// Takes a reading by `take()`, and numbers readings in the order in which they were taken.
    /// Lock-free; signal-safe if `take` is.
    template <class Take>
    void add(const Take& take, std::uint32_t process) const noexcept {
        auto& ring = at<layout::ring_state>(plan_.ring);
        // relaxed, to the end: a number out of a counter, and what the sequence publishes
        reading taken{{}, process, 0, 0, 0};
        std::uint32_t before = ring.clock_cursor.load(relaxed);
        do {
            taken.lanes = ring.last_lane.load(relaxed) + 1;
            taken.cursor = ring.cursor.load(relaxed);
            taken.clocks = take();
        } while (!ring.clock_cursor.compare_exchange_weak(before, before + 1, relaxed));
        const std::uint64_t number = before + 1ULL;
        store(slot_of(number), number, taken);
        clock_snapshot last;
        if (number == 1 || kept_ == 0 || !load(number - 1, last)) return;
        const auto& header = at<layout::file_header>(0);
        const auto rate = static_cast<double>(header.ticks_per_second.load(relaxed));
        if (advance_of(last, taken.clocks, rate).even) return;
        taken.since = greatest<std::uint64_t>(last.ticks, 1);
        const std::uint32_t first = 1 + newest_;
        std::uint32_t oldest = first;
        for (std::uint32_t slot = first; slot < first + kept_; ++slot) {
            if (entry(slot).sequence.load(relaxed) < entry(oldest).sequence.load(relaxed)) {
                oldest = slot;
            }
        }
        store(oldest, number, taken);
    }

private:
    struct reading {
        clock_snapshot clocks;
        std::uint32_t process, lanes;
        std::uint64_t cursor, since;
    };

    template <class T>
    [[nodiscard]] T& at(std::uint64_t offset) const noexcept {
        return *static_cast<T*>(static_cast<void*>(memory_ + offset));
    }
    [[nodiscard]] layout::clock_entry& entry(std::uint32_t slot) const noexcept {
        return at<layout::clock_entry>(plan_.clocks + slot * sizeof(layout::clock_entry));
    }
    [[nodiscard]] std::uint32_t slot_of(std::uint64_t number) const noexcept {
        return number == 1 ? 0 : 1 + static_cast<std::uint32_t>((number - 2) % newest_);
    }
    void store(std::uint32_t slot, std::uint64_t number, const reading& from) const noexcept {
        auto& to = entry(slot);
        // relaxed, to the end: what the sequence publishes
        to.sequence.store(0, relaxed);
        // order: clocks.write:A pairs with clocks.look:A, clocks.last:B, snapshot.mark:B
        thread_fence(release);
        to.ticks.store(from.clocks.ticks, relaxed);
        to.monotonic.store(from.clocks.monotonic, relaxed);
        to.realtime.store(from.clocks.realtime, relaxed);
        to.width.store(from.clocks.uncertainty * 2, relaxed);
        to.process.store(from.process, relaxed);
        to.lanes.store(from.lanes, relaxed);
        to.cursor.store(from.cursor, relaxed);
        to.since.store(from.since, relaxed);
        // order: clocks.write:B pairs with clocks.last:A, table.read:A, snapshot.mark:A
        to.sequence.store(number, release);
    }
    /// False: it was replaced, or is not there yet.
    [[nodiscard]] bool load(std::uint64_t number, clock_snapshot& into) const noexcept {
        const auto& from = entry(slot_of(number));
        // order: clocks.last:A pairs with clocks.write:B
        if (from.sequence.load(acquire) != number) return false;
        // relaxed, to the end: acquired, and checked again behind the fence
        into = {from.ticks.load(relaxed), from.monotonic.load(relaxed), from.realtime.load(relaxed),
                from.width.load(relaxed) / 2};
        // order: clocks.last:B pairs with clocks.write:A
        thread_fence(acquire);
        return from.sequence.load(relaxed) == number;
    }

    std::byte* memory_;
    const layout::plan& plan_;
    std::uint32_t kept_;
    std::uint32_t newest_;  // entries in the ring of the newest
};

/// Adds a reading of the trace's clock, which the process in this slot takes. Signal-safe.
inline void add_clocks(const trace_memory& memory, std::uint32_t process) noexcept {
    clock_readings(memory.base(), memory.plan())
        .add([&memory] { return memory.snapshot(); }, process);
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
