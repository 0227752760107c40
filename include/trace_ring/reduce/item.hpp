// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The items that a cursor returns: records, and losses and clock jumps in their places. Items are
/// views: they are good until the cursor is asked for the next.

#include <cstdint>
#include <string_view>
#include <variant>

#include <trace_ring/loss.hpp>
#include <trace_ring/position.hpp>
#include <trace_ring/reduce/item/record_view.hpp>
#include <trace_ring/reduce/tables/writers.hpp>

namespace trace_ring::inline v1::reduce {

/// Records that are missing, in the place where they would be.
struct loss_item {
    loss_cause cause = loss_cause::overwritten;
    std::uint64_t count = 0;  ///< 0: damaged, and the number is not known
    position at = 0;          ///< in the lane, of the first that is lost, or of the next record
    const lane_info* lane = nullptr;  ///< null: lost before they had a lane, or with it
    std::uint64_t time = 0;           ///< its place among the others: not before this
    std::uint64_t offset = 0;         ///< damaged: the offset in the file
    std::string_view what;            ///< damaged: the fault there
};

/// The clock jumped. With a lane: the lane's time goes back, as the clock was set back or stopped,
/// or the file is damaged; the records stay in the order in which they were written. Without a
/// lane: the clocks jumped between two readings of them (tables/timeline.hpp), as the date was set,
/// or the machine slept or started again. It is not known when in the interval; dates jump at its
/// end.
struct clock_jump {
    const lane_info* lane = nullptr;
    position at = 0;         ///< of the record that is earlier than the one before it
    std::uint64_t from = 0;  ///< the time of the one before, or the interval's begin
    std::uint64_t time = 0;  ///< the record's own, or the interval's end
    std::uint64_t offset = 0;
    std::int64_t step = 0;  ///< without a lane: ns by which dates jump
    bool anew = false;      ///< without a lane: the trace's clock began anew
};

using item = std::variant<record_view, loss_item, clock_jump>;

[[nodiscard]] inline std::uint64_t time_of(const item& what) noexcept {
    if (const auto* record = std::get_if<record_view>(&what)) return record->time();
    if (const auto* loss = std::get_if<loss_item>(&what)) return loss->time;
    return std::get_if<clock_jump>(&what)->time;  // the third of three; std::get could throw
}

}  // namespace trace_ring::inline v1::reduce
