// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A lane's sub-buffers, as a first look at a trace file found them.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <trace_ring/format/layout.hpp>
#include <trace_ring/format/sub_buffer.hpp>
#include <trace_ring/loss.hpp>
#include <trace_ring/position.hpp>
#include <trace_ring/reduce/tables/clock_eras.hpp>

namespace trace_ring::inline v1::reduce {

/// What may be wrong with a sub-buffer's header.
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
/// Where in the header that shows.
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

/// One sub-buffer as the first look found it; in a live file it may be another by now. A long trace
/// has hundreds of thousands of them.
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
    std::uint32_t commit =
        0;  ///< the commit word, if it was closed; 0: it was not, or is not known
    bool positions_known = false;  ///< where its records begin and end is: a header was looked at
    bool readable = true;
    link_fault fault = link_fault::none;
    std::uint8_t era = 0;  ///< of its times, which are as tables/clock_eras.hpp has them

    /// Where in the file its fault is.
    [[nodiscard]] std::uint64_t fault_offset(const layout::plan& plan) const noexcept {
        return plan.bytes_for(slot) + place_of(fault);
    }
};
static_assert(sizeof(chain_link) <= 64);

/// The sub-buffers of one lane, oldest first.
struct chain {
    std::uint32_t lane = 0;
    std::vector<chain_link> links;
    bool cut_begin = false;  ///< trimmed: there were links before the first
    bool cut_end = false;
    std::optional<position> start{};  ///< where the first link's records should begin, if known
};

/// The times that the file has of a sub-buffer of a known era become those that are read.
inline void raise(chain_link& link, const clock_eras& eras) noexcept {
    const std::uint64_t by = eras.shift(link.era);
    link.base_time += by;
    if (link.last_time != ~std::uint64_t{0}) link.last_time += by;
}
/// The same of a lane, after telling the eras: they ascend, and where its time goes back one
/// begins.
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

/// What headers say was lost.
[[nodiscard]] inline loss_counts told_by(const chain_link& link) noexcept {
    loss_counts told;
    told.add(loss_cause::refused, link.refused);
    told.add(loss_cause::too_long, link.too_long);
    told.add(loss_cause::nested, link.nested);
    return told;
}
[[nodiscard]] inline loss_counts told_by(const chain& what) noexcept {
    loss_counts told;
    for (const auto& link : what.links) told += told_by(link);
    return told;
}

struct chain_list {
    std::vector<chain> chains;  ///< by lane number
    /// Damaged sub-buffers of which not even the lane can be told.
    std::vector<chain_link> strays;
};

/// The stray that lies where the sub-buffer at `pos` did; null if there is none.
[[nodiscard]] inline const chain_link* find_stray(const std::vector<chain_link>& strays,
                                                  position pos, std::uint64_t limit) noexcept {
    if (pos == no_position) return nullptr;
    const auto found = std::find_if(strays.begin(), strays.end(), [&](const chain_link& stray) {
        return stray.slot == slot_of(pos, limit);
    });
    return found == strays.end() ? nullptr : &*found;
}

}  // namespace trace_ring::inline v1::reduce
