// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What to read of a trace, and in which order.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <trace_ring/glob.hpp>
#include <trace_ring/position.hpp>
#include <trace_ring/reduce/filter/condition.hpp>
#include <trace_ring/reduce/tables/dictionary.hpp>
#include <trace_ring/reduce/tables/writers.hpp>

namespace trace_ring::inline v1::reduce {

/// Positions from `from` to before `to` of one lane, or of each.
struct position_range {
    std::uint32_t lane = 0;  ///< 0: each
    position from = 0;
    position to = ~position{0};

    /// Whether any of the `count` from `at` on is in it; 0 counts as one.
    [[nodiscard]] bool has_any(position at, std::uint64_t count) const noexcept {
        const std::uint64_t more = count > 1 ? count - 1 : 0;
        return at < to && (at >= from || from - at <= more);
    }
};

/// Ticks from `from` to `to`, that one included.
struct tick_range {
    std::uint64_t from = 0;
    std::uint64_t to = ~std::uint64_t{0};
};

enum class direction { forward, backward };

/// How items of different lanes are ordered.
enum class merging {
    by_time,  ///< merged; without a clock by the positions of their sub-buffers
    by_lane,  ///< one lane after the other: quicker, where the order does not matter
};

class read_ahead;
class tables;

/// What is wanted of a trace; everything, by default. Losses and clock jumps of the lanes and the
/// time wanted always come along: they may hide what is looked for.
struct filter {
    std::vector<std::string> events{};     ///< globs, any of which may match; none: all events
    std::vector<std::uint32_t> threads{};  ///< kernel thread ids; none: all
    std::vector<std::uint32_t> lanes{};    ///< lane numbers; none: all
    std::uint64_t from = 0;                ///< ticks
    std::uint64_t to = ~std::uint64_t{0};  ///< the last that is wanted
    std::vector<tick_range> times{};  ///< if any, only what is in one of them; ascending, apart
    std::vector<position_range> positions{};  ///< of a lane, only what is in all that concern it
    std::shared_ptr<const where::condition> condition{};  ///< of what records say; null: nothing
    /// Makes who copies, decodes and asks ahead of a cursor; empty: nobody. What is read is the
    /// same.
    std::function<std::unique_ptr<read_ahead>(const tables&, const filter&, direction, merging)>
        ahead{};

    [[nodiscard]] bool all_lanes() const {
        return threads.empty() && lanes.empty() && (!condition || !condition->chooses_lanes());
    }
    [[nodiscard]] bool all_time() const noexcept {
        return from == 0 && to == ~std::uint64_t{0} && times.empty();
    }
    /// What is wanted, in a row, of the times from this one on (backward: down).
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
    [[nodiscard]] bool wants_time(std::uint64_t time) const noexcept {
        const tick_range next = times_at(time, direction::forward);
        return time >= next.from && time <= next.to;
    }
    /// All of every lane that is wanted.
    [[nodiscard]] bool unbounded() const noexcept { return all_time() && positions.empty(); }
    [[nodiscard]] position_range positions_of(const lane_info& lane) const noexcept {
        position_range all{lane.number};
        for (const auto& each : positions) {
            if (each.lane != 0 && each.lane != lane.number) continue;
            all.from = (std::max)(all.from, each.from);
            all.to = (std::min)(all.to, each.to);
        }
        return all;
    }
    [[nodiscard]] bool wants(const lane_info& lane) const {
        const auto in = [](const auto& list, std::uint32_t value) {
            return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
        };
        return (lane.handed_on != 0 || in(threads, lane.thread)) && in(lanes, lane.number) &&
               (!condition || condition->may_want(lane));
    }
    /// Of a lane that was handed on the records alone tell whose they are.
    [[nodiscard]] bool wants_thread(const lane_info& lane) const noexcept {
        return threads.empty() ||
               std::find(threads.begin(), threads.end(), lane.thread) != threads.end();
    }
    [[nodiscard]] bool wants_event(std::string_view name) const noexcept {
        return events.empty() ||
               std::any_of(events.begin(), events.end(),
                           [name](const auto& glob) { return matches_glob(glob, name); });
    }
    /// Of a type; null: one that the dictionary lacks. False: no record of it is wanted.
    [[nodiscard]] bool may_want(const event_type* type) const {
        return wants_event(type == nullptr ? std::string_view() : type->name) &&
               (!condition || condition->may_want(type));
    }
};

}  // namespace trace_ring::inline v1::reduce
