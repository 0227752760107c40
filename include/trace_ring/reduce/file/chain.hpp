// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The sub-buffers of each lane, as a first look at a trace file found them, and what their reader
/// keeps to report missing records.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <trace_ring/format/layout.hpp>
#include <trace_ring/format/plan.hpp>
#include <trace_ring/loss.hpp>
#include <trace_ring/reduce/tables/timeline.hpp>

namespace trace_ring::inline v1::reduce {

/// The faults that a sub-buffer's header may have.
enum class link_fault : std::uint8_t { none, twice, state, position, magic, length, lane };

[[nodiscard]] constexpr std::string_view to_string(link_fault fault) noexcept {
    constexpr std::array<std::string_view, 7> names{"",
                                                    "a second sub-buffer at the same position",
                                                    "a sub-buffer in no known state",
                                                    "a sub-buffer at an impossible position",
                                                    "not a sub-buffer",
                                                    "a sub-buffer of impossible length",
                                                    "a sub-buffer of no known lane"};
    return names[static_cast<std::size_t>(fault)];
}
/// The offset in the header of the word that shows the fault.
[[nodiscard]] constexpr std::size_t place_of(link_fault fault) noexcept {
    constexpr std::array<std::size_t, 7> places{0,
                                                offsetof(sub_buffer_header, state),
                                                offsetof(sub_buffer_header, state),
                                                offsetof(sub_buffer_header, state),
                                                offsetof(sub_buffer_header, magic),
                                                offsetof(sub_buffer_header, commit),
                                                offsetof(sub_buffer_header, lane)};
    return places[static_cast<std::size_t>(fault)];
}

/// One sub-buffer as the first look found it; in a live file another may have replaced it since.
/// Kept small: a long trace has hundreds of thousands.
struct chain_link {
    position pos = no_position;
    std::uint64_t slot = 0;
    std::uint64_t base_time = 0;
    std::uint64_t last_time = 0;  ///< at its close; the greatest number if it was not closed
    std::uint64_t first = 0;      ///< position in the lane of its first record
    std::uint32_t records = 0;
    std::uint32_t refused = 0;  ///< as the header counts
    std::uint32_t too_long = 0;
    std::uint32_t nested = 0;
    std::uint32_t commit = 0;      ///< the commit word; 0: not closed, or not known
    bool positions_known = false;  ///< `first` and `records` are: the header was read
    bool readable = true;
    link_fault fault = link_fault::none;
    std::uint8_t era = 0;  ///< of its times; see tables/timeline.hpp

    /// Where its fault is in the file, in bytes.
    [[nodiscard]] std::uint64_t fault_offset(const layout::plan& plan) const noexcept {
        return plan.bytes_for(slot) + place_of(fault);
    }
};
static_assert(sizeof(chain_link) <= 64);

/// The sub-buffers of one lane, oldest first.
struct chain {
    std::uint32_t lane = 0;
    std::vector<chain_link> links{};
    bool cut_begin = false;  ///< trimmed: earlier links were left out
    bool cut_end = false;
    std::optional<position> start{};  ///< where the first link's records should begin, if known
};

/// Raises the times of a link, as the file has them, by the shift of its era.
inline void raise(chain_link& link, const clock_eras& eras) noexcept {
    const std::uint64_t by = eras.shift(link.era);
    link.base_time += by;
    if (link.last_time != ~std::uint64_t{0}) link.last_time += by;
}
/// The same for a whole lane, whose eras are determined first. They ascend: where the lane's time
/// goes back, the next era begins.
inline void raise(chain& what, const clock_eras& eras) noexcept {
    if (!eras.several()) return;
    std::size_t era = 0;
    std::uint64_t last = 0;  // of the one before, as the file has it
    for (chain_link& link : what.links) {
        const std::size_t least = eras.of(what.lane, link.pos, link.base_time);
        const std::size_t begin = least > era ? least : eras.next(era, last, link.base_time);
        link.era = static_cast<std::uint8_t>(begin);
        last = link.last_time != ~std::uint64_t{0} ? link.last_time : link.base_time;
        era = eras.next(begin, link.base_time, last);
        if (era != begin) link.last_time += eras.shift(era) - eras.shift(begin);
        raise(link, eras);
    }
}

/// The losses that headers count.
[[nodiscard]] inline loss_counts losses_counted_by(const chain_link& link) noexcept {
    loss_counts sum;
    sum.add(loss_cause::refused, link.refused);
    sum.add(loss_cause::too_long, link.too_long);
    sum.add(loss_cause::nested, link.nested);
    return sum;
}
[[nodiscard]] inline loss_counts losses_counted_by(const chain& what) noexcept {
    loss_counts sum;
    for (const auto& link : what.links) sum += losses_counted_by(link);
    return sum;
}

/// The losses that a lane's entry counts.
inline constexpr loss_cause counted_by_writers[] = {loss_cause::refused, loss_cause::too_long,
                                                    loss_cause::nested, loss_cause::abandoned};

/// Losses that a follower reported by the lane's entry, and that a sub-buffer may count later.
struct early_losses {
    std::array<std::uint64_t, loss_cause_count> counts{};

    [[nodiscard]] std::uint64_t& operator[](loss_cause cause) noexcept {
        return counts[static_cast<std::size_t>(cause)];
    }
    /// Takes off `count` what was reported before. True if nothing is left.
    [[nodiscard]] bool has_all(loss_cause cause, std::uint64_t& count) noexcept {
        const std::uint64_t before = (std::min)(count, (*this)[cause]);
        (*this)[cause] -= before;
        count -= before;
        return before != 0 && count == 0;
    }
};

struct chain_list {
    std::vector<chain> chains{};  ///< by lane number
    /// Damaged sub-buffers whose lane is not known.
    std::vector<chain_link> strays{};
};

/// The stray in the slot of position `pos`; null if there is none.
[[nodiscard]] inline const chain_link* find_stray(const std::vector<chain_link>& strays,
                                                  position pos, std::uint64_t limit) noexcept {
    if (pos == no_position) return nullptr;
    const auto found = std::find_if(strays.begin(), strays.end(), [&](const chain_link& stray) {
        return stray.slot == slot_of(pos, limit);
    });
    return found == strays.end() ? nullptr : &*found;
}

/// Where the records of a sub-buffer begin or end.
struct edge {
    position at = 0;
    std::uint64_t time = 0;
    position self = no_position;      // of the sub-buffer
    position previous = no_position;  // beginnings: of the lane's sub-buffer before
    std::uint64_t offset = 0;         // of the sub-buffer
    bool whole = true;                // ends: the sub-buffer was closed when it was read
};

/// A sub-buffer that was to be read and could not be.
struct hole {
    loss_cause cause;
    bool known;  // its first and last positions are; the last as far as was seen
    position first;
    position end;
    std::uint32_t refused;
    std::string_view what;
    std::uint64_t offset;

    /// Copying it, from `at` in the file, failed with `result`.
    void was_not_copied(copy_result result, std::uint64_t at) noexcept {
        cause = loss_cause::overrun;
        if (result != copy_result::damaged) return;
        cause = loss_cause::damaged;
        what = "a sub-buffer that cannot be read";
        offset = at;
    }
    /// Where the gap that this hole leaves in [from, to] ends: at the latest before `next`.
    [[nodiscard]] position end_before(const hole* next, position from, position to) const noexcept {
        if (next == nullptr) return to;
        if (next->known) return std::clamp(next->first, from, to);
        return known ? std::clamp(end, from, to) : from;
    }
};
[[nodiscard]] inline hole hole_of(const chain_link& link, const layout::plan& plan) noexcept {
    const bool sound = link.fault == link_fault::none;
    return {loss_cause::damaged,
            link.positions_known,
            link.first,
            link.first + link.records,
            link.refused,
            to_string(link.fault),
            sound ? 0 : link.fault_offset(plan)};
}

}  // namespace trace_ring::inline v1::reduce
