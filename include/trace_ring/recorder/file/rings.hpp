// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The rings of one recorder. Beside the first, which takes all other events, there may be up to
/// three of a fixed size for events that ask for one (`static constexpr std::uint32_t ring = 1;`):
/// a quota, which no flood of other events can use up.
/// @code
///   slots    0 ... | ring 1 | ring 2 | the first, which may grow ... | limit
///   position 1 ...                                                   | limit + 1: slot 0 again
/// @endcode
/// Why rings in one array, and not files, or priorities in one ring: a flood cannot reach what it
/// must not overwrite, by construction and not by a decision at each claim. Each ring has its own
/// cursor, so that rare events do not wait for a cache line that busy ones pull back and forth. And
/// a reader need not know of them: it finds sub-buffers by lanes, a lane's are all in one ring, and
/// a position names a slot by the limit, in every ring and however far it has grown. A cursor
/// at the end of its part of the array continues at the beginning of that part in the next round.

#include <bit>
#include <cstdint>
#include <utility>

#include <trace_ring/bounds.hpp>
#include <trace_ring/format/layout.hpp>
#include <trace_ring/recorder/file/extent.hpp>

namespace trace_ring::inline v1::impl {

/// A position, and the slot where it lies.
struct sub_buffer_place {
    std::uint64_t slot = 0;
    position pos = no_position;
};

/// One ring: the words that its claimers share, and where its sub-buffers lie.
struct alignas(64) ring_span {
    shared_atomic<std::uint64_t>* cursor = nullptr;
    shared_atomic<std::uint32_t>* held = nullptr;
    shared_atomic<std::uint32_t>* adopted = nullptr;
    shared_atomic<std::uint32_t>* writers = nullptr;
    const extent* end = nullptr;  ///< null: `fixed_end`
    std::uint64_t first = 0;
    std::uint64_t fixed_end = 0;
    std::uint64_t lap = 0;      ///< from a position to the next one in the same slot
    std::uint64_t mask = 0;     ///< `lap` - 1 if that is a power of two: saves a division
    std::uint64_t half = 0;     ///< of `lap`, if the ring cannot grow and is the only one; else 0
    std::uint64_t soon = 0;     ///< a lane that claims before others have drawn more is busy
    std::uint32_t longest = 1;  ///< most positions that are drawn in one step

    /// For a ring that cannot grow and is the only one. All lanes together hold back about a
    /// sixteenth of it, because lanes that claim later draw fewer positions.
    void be_whole() noexcept {
        half = lap / 2;
        longest = static_cast<std::uint32_t>(clamped<std::uint64_t>(lap / 32, 1, 16));
        soon = least<std::uint64_t>(lap / 16, 4 * std::uint64_t{longest});
    }

    [[nodiscard]] std::uint64_t slot_at(position at) const noexcept {
        return mask != 0 ? (at - 1) & mask : slot_of(at, lap);
    }

    /// One behind the ring's last sub-buffer; never outside the file, even if others store nonsense
    /// there.
    [[nodiscard]] std::uint64_t end_now() const noexcept {
        return end == nullptr ? fixed_end : clamped(end->now(), first, lap);
    }
    [[nodiscard]] std::uint64_t size() const noexcept { return end_now() - first; }
    /// Whether it is one of the rings after the first.
    [[nodiscard]] bool is_quota() const noexcept { return end == nullptr; }
    [[nodiscard]] bool has(std::uint64_t slot) const noexcept {
        return half != 0 || (slot >= first && slot < end_now());
    }
    /// The ring's next position, in this round or the next; `at` has a slot beyond the ring's end.
    [[nodiscard]] position next_round(position at) const noexcept {
        const std::uint64_t slot = slot_at(at);
        return at - slot + (slot < first ? 0 : lap) + first;
    }
    /// The ring's next position after `at`; at its end, the first of the next round.
    [[nodiscard]] position following(position at) const noexcept {
        return has(slot_at(at + 1)) ? at + 1 : next_round(at + 1);
    }
};

class rings {
public:
    rings(layout::ring_state& ring, const layout::plan& plan, const extent& there) noexcept {
        const std::uint64_t lap = plan.sub_buffer_limit;
        const std::uint64_t mask = std::has_single_bit(lap) ? lap - 1 : 0;
        const std::uint64_t present = there.now();
        std::uint64_t at = 0;
        for (auto& quota : ring.quotas) {
            const std::uint64_t count = quota.sub_buffers.load(relaxed);  // relaxed: fixed
            if (count == 0 || count >= present - at) break;  // changed since it was checked
            all_[++last_] = {&quota.cursor,  &quota.held, &quota.adopted,
                             &quota.writers, nullptr,     at,
                             at + count,     lap,         mask};
            at += count;
        }
        const bool whole = at == 0 && present == lap;  // and stays so
        all_[0] = {&ring.cursor, &ring.held, &ring.adopted, &ring.writers, &there,
                   at,           0,          lap,           mask};
        if (whole) all_[0].be_whole();
    }
    /// The ring of that number; the first for an event that asks for one that does not exist.
    [[nodiscard]] std::uint32_t number(std::uint32_t wanted) const noexcept {
        return wanted <= last_ ? wanted : 0;
    }
    [[nodiscard]] const ring_span& operator[](std::uint32_t ring) const noexcept {
        return all_[number(ring)];
    }
    [[nodiscard]] const ring_span* begin() const noexcept { return all_; }
    [[nodiscard]] const ring_span* end() const noexcept { return all_ + last_ + 1; }

    /// Sub-buffers held, and claimed so far (by the positions drawn).
    [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> in_use() const noexcept {
        std::pair<std::uint64_t, std::uint64_t> sum{};
        for (const ring_span& each : *this) {
            // relaxed, both: counters
            const auto held = static_cast<std::int32_t>(each.held->load(relaxed));
            sum.first += held > 0 ? static_cast<std::uint64_t>(held) : 0;
            sum.second += each.cursor->load(relaxed) - each.first;
        }
        return sum;
    }

private:
    ring_span all_[layout::max_rings];
    std::uint32_t last_ = 0;
};

}  // namespace trace_ring::inline v1::impl
