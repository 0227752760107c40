// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Decides when to reclaim what dead writers hold. Looking for them costs a pass over the threads,
/// the processes and the lanes, so it is done only if something is refused or becomes scarce, and
/// then at every 64th such event.

#include <cstdint>

#include <trace_ring/atomic.hpp>
#include <trace_ring/format/layout.hpp>
#include <trace_ring/recorder/file/rings.hpp>
#include <trace_ring/recorder/file/trace_memory.hpp>
#include <trace_ring/recorder/lane/claimer.hpp>
#include <trace_ring/recorder/lane/holdings.hpp>
#include <trace_ring/recorder/lane/lane_book.hpp>
#include <trace_ring/recorder/site/undisturbed.hpp>

namespace trace_ring::inline v1::impl {

/// Any thread, signal-safe. A function that reclaims is linear in the process's threads and in the
/// processes and lanes of the file; the others take constant time.
class reclaimer {
public:
    /// Releases the lanes of this process's threads that are gone. Returns how many threads have
    /// lanes.
    using release_gone = std::uint32_t (*)() noexcept;

    reclaimer(const trace_memory& memory, const rings& all, lane_book& book, claimer& waiting,
              release_gone threads) noexcept
        : memory_(memory),
          rings_(all),
          book_(book),
          claimer_(waiting),
          held_(memory),
          release_gone_(threads) {}

    /// Reclaims what dead threads and processes hold.
    [[gnu::cold]] void reclaim() noexcept {
        const undisturbed scope;
        static_cast<void>(release_gone_());
        book_.reclaim_dead();
        const bool died = book_.was_count_lost();
        bool settled = true;
        for (const ring_span& each : rings_) settled &= held_.recount(each, died);
        if (died && !settled) book_.count_is_lost();
    }
    /// The same if it is due after another failed claim. True if it reclaimed.
    [[nodiscard, gnu::cold]] bool reclaim_if_due() noexcept {
        // relaxed: advice on when to look again
        if (failed_.fetch_add(1, relaxed) % 64 != 0) return false;
        reclaim();
        return true;
    }

    /// Counts one more sub-buffer of the ring as held; reclaims first if that is due. False: half
    /// of the ring is held, and nothing was counted. `crowded`: the lane must release this one
    /// after its record.
    [[nodiscard, gnu::cold]] bool hold(const ring_span& of, bool& crowded) noexcept {
        if (!held_.add(of, crowded)) return reclaim_if_due() && held_.add(of, crowded);
        if (!crowded || !is_due_while_scarce()) return true;
        holdings::drop(of);  // a recount would miss a sub-buffer that is counted and not held yet
        reclaim();
        return held_.add(of, crowded);
    }
    /// The same. In a full mode in which writers wait for room, they wait for this as well.
    [[nodiscard, gnu::cold]] bool wait_to_hold(const ring_span& of, bool& crowded,
                                               std::uint64_t& waited) noexcept {
        while (!hold(of, crowded)) {
            if (!claimer_.wait_for_lane(waited, true)) return false;
        }
        return true;
    }

    /// An entry for a new lane; reclaims first if that is due. Null: all entries are in use.
    /// `few_left` is as in lane_book::claim_entry.
    [[nodiscard, gnu::cold]] layout::lane_entry* claim_entry(std::uint32_t& slot,
                                                             bool& few_left) noexcept {
        layout::lane_entry* entry = book_.claim_entry(slot, few_left);
        if (entry == nullptr && reclaim_if_due()) entry = book_.claim_entry(slot, few_left);
        if (few_left && is_due_while_scarce()) reclaim();
        few_entries_.store(few_left ? 1 : 0, relaxed);  // relaxed: advice
        return entry;
    }
    /// Whether few entries were left when one was taken last.
    [[nodiscard]] bool few_entries() const noexcept {
        return few_entries_.load(relaxed) != 0;  // relaxed: advice
    }

    /// Notes that a record was lost because lanes or sub-buffers are too few: raises `most` to the
    /// number of writers now and `more`, from which readers compute how many would be enough
    /// (layout::room_for). Writers are the threads of this process that have recorded, and the
    /// lanes in use of other processes and of signal handlers.
    [[gnu::cold]] void note_writers(shared_atomic<std::uint32_t>& most,
                                    std::uint32_t more = 0) const noexcept {
        std::uint32_t now = release_gone_() + more;
        // relaxed, to the end: a count for advice
        for (std::uint32_t i = 0; i < memory_.plan().lane_count; ++i) {
            const layout::lane_entry& entry = memory_.lane(i);
            const bool is_thread = entry.depth.load(relaxed) == 0 && entry.cpu.load(relaxed) == 0 &&
                                   entry.process.load(relaxed) == book_.process();
            now += !is_thread &&
                   entry.state.load(relaxed) == static_cast<std::uint32_t>(layout::presence::live);
        }
        std::uint32_t before = most.load(relaxed);
        while (before < now && !most.compare_exchange_weak(before, now, relaxed)) {
        }
    }

private:
    /// Nothing is refused yet, but what the dead hold slows the living down.
    [[nodiscard]] bool is_due_while_scarce() noexcept {
        return scarce_.fetch_add(1, relaxed) % 64 == 0;  // relaxed: advice
    }

    const trace_memory& memory_;
    const rings& rings_;
    lane_book& book_;
    claimer& claimer_;
    holdings held_;
    release_gone release_gone_;
    atomic<std::uint32_t> failed_{0};       ///< claims of sub-buffers and entries
    atomic<std::uint32_t> scarce_{0};       ///< the same that succeeded while few were left
    atomic<std::uint32_t> few_entries_{0};  ///< 1: few were left when one was taken last
};

}  // namespace trace_ring::inline v1::impl
