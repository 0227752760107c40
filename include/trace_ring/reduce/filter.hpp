// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Says which records of a trace to read.
/// @code
///   trace_ring::reduce::filter what;
///   what.events = {"order*"};
///   what.lanes = {3};
///   auto cursor = trace.backward(what);
/// @endcode

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <trace_ring/glob.hpp>
#include <trace_ring/reduce/filter/condition.hpp>

namespace trace_ring::inline v1::reduce {

/// The positions from `from` to before `to` of one lane, or of every lane.
struct position_range {
    std::uint32_t lane = 0;      ///< 0: every lane
    position from = 0;           ///< the first position
    position to = ~position{0};  ///< behind the last position

    /// Whether any of the `count` positions from `at` on is in it; a count of 0 means 1.
    [[nodiscard]] bool has_any(position at, std::uint64_t count) const noexcept {
        const std::uint64_t more = count > 1 ? count - 1 : 0;
        return at < to && (at >= from || from - at <= more);
    }
};

/// The ticks from `from` to `to`, including `to`.
struct tick_range {
    std::uint64_t from = 0;                ///< the first tick
    std::uint64_t to = ~std::uint64_t{0};  ///< the last tick
};

/// The direction of reading.
enum class direction { forward, backward };

/// How items of different lanes are ordered.
enum class merging {
    by_time,  ///< merged; without a clock by the positions of their sub-buffers
    by_lane,  ///< one lane after the other: quicker, where the order does not matter
};

class read_ahead;
class tables;

/// The wanted part of a trace; by default everything. Losses and clock jumps within the wanted
/// lanes and times are always included: wanted records may be among the lost ones.
struct filter {
    /// Globs, any of which may match; none: all events.
    std::vector<std::string> events{};
    std::vector<std::uint32_t> threads{};     ///< kernel thread ids; none: all
    std::vector<std::uint32_t> lanes{};       ///< lane numbers; none: all
    std::uint64_t from = 0;                   ///< ticks
    std::uint64_t to = ~std::uint64_t{0};     ///< the last tick that is wanted
    std::vector<tick_range> times{};          ///< if any, only these; ascending, without overlaps
    std::vector<position_range> positions{};  ///< of a lane, only what is in all ranges for it
    std::shared_ptr<const reduce::condition> condition{};  ///< on the records; null: none
    /// Makes an object that copies, decodes and asks the condition ahead of a cursor; empty: none.
    /// The items are the same with it.
    std::function<std::unique_ptr<read_ahead>(const tables&, const filter&, direction, merging)>
        ahead{};

    /// Whether no lane is left out.
    [[nodiscard]] bool all_lanes() const {
        return threads.empty() && lanes.empty() && (!condition || !condition->chooses_lanes());
    }
    /// Whether no time is left out.
    [[nodiscard]] bool all_time() const noexcept {
        return from == 0 && to == ~std::uint64_t{0} && times.empty();
    }
    /// The wanted ticks in one range, from this time on (backward: down).
    [[nodiscard]] tick_range times_at(std::uint64_t time, direction way) const noexcept {
        tick_range next{from, to};
        if (times.empty()) return next;
        const auto ends_before = [](const tick_range& range, std::uint64_t at) {
            return range.to < at;
        };
        const auto begins_after = [](std::uint64_t at, const tick_range& range) {
            return at < range.from;
        };
        if (way == direction::forward) {
            const auto at = std::lower_bound(times.begin(), times.end(), time, ends_before);
            next = at == times.end() ? times.back() : *at;
        } else {
            const auto at = std::upper_bound(times.begin(), times.end(), time, begins_after);
            next = at == times.begin() ? *at : *(at - 1);
        }
        return {(std::max)(next.from, from), (std::min)(next.to, to)};
    }
    /// Whether a record with this time is selected.
    [[nodiscard]] bool wants_time(std::uint64_t time) const noexcept {
        const tick_range next = times_at(time, direction::forward);
        return time >= next.from && time <= next.to;
    }
    /// Whether all of every wanted lane is wanted.
    [[nodiscard]] bool unbounded() const noexcept { return all_time() && positions.empty(); }
    /// The positions of a lane that are selected.
    [[nodiscard]] position_range positions_of(const lane_info& lane) const noexcept {
        position_range all{lane.number};
        for (const auto& each : positions) {
            if (each.lane != 0 && each.lane != lane.number) continue;
            all.from = (std::max)(all.from, each.from);
            all.to = (std::min)(all.to, each.to);
        }
        return all;
    }
    /// `guests`: other threads may have made what a lane has, even if it was not adopted.
    [[nodiscard]] bool wants(const lane_info& lane, bool guests = false) const {
        return (guests || lane.adopted != 0 || wants_thread(lane)) &&
               (lanes.empty() ||
                std::find(lanes.begin(), lanes.end(), lane.number) != lanes.end()) &&
               (!condition || condition->may_want(lane));
    }
    /// In a lane that was adopted only the records say which thread they are from.
    [[nodiscard]] bool wants_thread(const lane_info& lane) const noexcept {
        return threads.empty() ||
               std::find(threads.begin(), threads.end(), lane.thread) != threads.end();
    }
    /// Whether events with this name are selected. Linear in the number of globs.
    [[nodiscard]] bool wants_event(std::string_view name) const noexcept {
        return events.empty() ||
               std::any_of(events.begin(), events.end(),
                           [name](const auto& glob) { return matches_glob(glob, name); });
    }
    /// False: no record of this type is wanted. Null: a type that the dictionary lacks.
    [[nodiscard]] bool may_want(const event_type* type) const {
        return wants_event(type == nullptr ? std::string_view() : type->name) &&
               (!condition || condition->may_want(type));
    }
};

}  // namespace trace_ring::inline v1::reduce
