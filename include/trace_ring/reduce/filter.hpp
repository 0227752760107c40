// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What to read of a trace, and in which order.

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <trace_ring/glob.hpp>
#include <trace_ring/reduce/tables/writers.hpp>

namespace trace_ring::inline v1::reduce {

/// What is wanted of a trace; everything, by default. Losses and clock jumps of the lanes and the
/// time wanted always come along: they may hide what is looked for.
struct filter {
    std::vector<std::string> events{};     ///< globs, any of which may match; none: all events
    std::vector<std::uint32_t> threads{};  ///< kernel thread ids; none: all
    std::vector<std::uint32_t> lanes{};    ///< lane numbers; none: all
    std::uint64_t from = 0;                ///< ticks
    std::uint64_t to = ~std::uint64_t{0};

    [[nodiscard]] bool all_lanes() const noexcept { return threads.empty() && lanes.empty(); }
    [[nodiscard]] bool all_time() const noexcept { return from == 0 && to == ~std::uint64_t{0}; }
    [[nodiscard]] bool wants(const lane_info& lane) const noexcept {
        const auto in = [](const auto& list, std::uint32_t value) {
            return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
        };
        return (lane.handed_on != 0 || in(threads, lane.thread)) && in(lanes, lane.number);
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
};

enum class direction { forward, backward };

/// How items of different lanes are ordered.
enum class merging {
    by_time,  ///< merged
    by_lane,  ///< one lane after the other: quicker, where the order does not matter
};

}  // namespace trace_ring::inline v1::reduce
