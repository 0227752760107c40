// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// How many sub-buffers of a ring are held by writers: at most half. A claim is counted before the
/// sub-buffer is held, and a close is counted after it, so the count is never below the number
/// held. It stays above if a thread dies or jumps away between the two, and is then taken anew.
///
/// The last quarter of those that may be held (in a quota, the last half) is lent: its holders
/// release it after each record (adoption.hpp), so any number of further threads can share it.

#include <cstdint>

#include <trace_ring/atomic.hpp>
#include <trace_ring/format/layout.hpp>
#include <trace_ring/format/sub_buffer.hpp>
#include <trace_ring/recorder/file/rings.hpp>
#include <trace_ring/recorder/file/trace_memory.hpp>

namespace trace_ring::inline v1::impl {

/// Any thread, signal-safe.
class holdings {
public:
    explicit holdings(const trace_memory& memory) noexcept : memory_(memory) {}

    /// Counts one more, unless half are held; false: it is not counted. `crowded`: this one is
    /// lent. The count may be negative, though the file has it without a sign.
    [[nodiscard]] bool add(const ring_span& of, bool& crowded) const noexcept {
        const std::uint64_t most = at_most(of);
        const std::uint64_t own = most - layout::lent_of_held(most, of.is_quota());
        // relaxed, to the end: a counter
        std::uint32_t held = of.held->load(relaxed);
        for (;;) {
            const auto count = static_cast<std::int32_t>(held);
            if (count > 0 && static_cast<std::uint64_t>(count) >= most) return false;
            crowded = count > 0 && static_cast<std::uint64_t>(count) >= own;
            if (of.held->compare_exchange_weak(held, held + 1, relaxed)) return true;
        }
    }
    static void drop(const ring_span& of) noexcept {
        of.held->fetch_sub(1, relaxed);  // relaxed: a counter
    }
    /// Counts the held sub-buffers anew if the count must be wrong: it is below the number held; or
    /// above it by more than claims under way can explain, two for each live lane; or a writer that
    /// may have had a claim under way is gone (`died`). Only in the last case may other claims
    /// under way be missed, so that more than half are held for once. Otherwise the count is left
    /// alone, because a living claimer that was counted and sleeps looks like a dead one. False:
    /// others claimed, adopted or closed during the count, and nothing was changed.
    [[nodiscard]] bool recount(const ring_span& of, bool died) noexcept {
        // relaxed, to the end: the swap fails if others have changed the count
        const position before = of.cursor->load(relaxed);
        const std::uint32_t adopted = of.adopted->load(relaxed);
        // After those two: a writer that counts later draws or adopts later, which shows below.
        std::uint32_t said = of.held->load(relaxed);
        std::uint32_t found = 0;
        const std::uint64_t end = of.end_now();
        for (std::uint64_t slot = of.first; slot < end; ++slot) {
            const unsigned state =
                stamped::from(memory_.sub_buffer(slot).state.load(relaxed)).state;
            found += state == static_cast<unsigned>(sub_buffer_state::reset) ||
                     state == static_cast<unsigned>(sub_buffer_state::active);
        }
        if (said == found) return true;
        if (!died && said > found) {
            std::uint32_t live = 0;
            for (std::uint32_t i = 0; i < memory_.plan().lane_count; ++i) {
                live += memory_.lane(i).state.load(relaxed) ==
                        static_cast<std::uint32_t>(layout::presence::live);
            }
            if (said - found <= 2 * live) return true;
        }
        // Whoever is seen to have adopted a lane has counted that before.
        // order: held.look:A pairs with adopt:A
        thread_fence(acquire);
        if (of.cursor->load(relaxed) != before || of.adopted->load(relaxed) != adopted)
            return false;
        return of.held->compare_exchange_strong(said, found, relaxed);
    }

private:
    /// Half of the ring, so that writers that close one sub-buffer always find another to claim.
    [[nodiscard]] std::uint64_t at_most(const ring_span& of) const noexcept {
        // order: grow.ended:A pairs with grow.end:A
        const bool ended = of.end == nullptr || memory_.ring().growth_ended.load(acquire) != 0;
        return (ended ? of.size() : memory_.plan().sub_buffer_limit - of.first) / 2;
    }

    const trace_memory& memory_;
};

}  // namespace trace_ring::inline v1::impl
