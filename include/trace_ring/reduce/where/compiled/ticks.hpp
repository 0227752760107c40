// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Turns times into ranges of ticks, where the clock allows it: then no record's time is computed,
/// and the index tells which sub-buffers have no such record.

#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include <trace_ring/reduce/tables/timeline.hpp>
#include <trace_ring/reduce/where/compiled/ranges.hpp>
#include <trace_ring/reduce/where/expression.hpp>
#include <trace_ring/reduce/where/expression/number.hpp>

namespace trace_ring::inline v1::reduce::where {

/// The time since the trace began, in ns; nothing if ticks cannot be converted to ns.
[[nodiscard]] inline std::optional<std::int64_t> since_begin(const timeline& time,
                                                             std::uint64_t ticks) noexcept {
    if (!time.known()) return std::nullopt;
    return time.relative_ns(ticks);
}

/// True if a later tick never has an earlier time: the clock did not jump. Linear in the readings.
[[nodiscard]] inline bool ascends(const timeline& time) noexcept {
    if (!time.known() || !time.consistent()) return false;
    std::int64_t last = (std::numeric_limits<std::int64_t>::min)();
    const auto rises = [&](std::uint64_t ticks) {
        const std::int64_t now = since_begin(time, ticks).value_or(last);
        return std::exchange(last, now) <= now;
    };
    bool all = rises(0);
    for (const auto& reading : time.readings()) {
        if (reading.ticks != 0) all = all && rises(reading.ticks - 1);
        all = all && rises(reading.ticks);
    }
    return all && rises(~std::uint64_t{0});
}

/// The ticks whose time compares with `ns` by `sign`; only where times ascend.
[[nodiscard]] inline std::optional<range> ticks_compared(const timeline& time, comparison sign,
                                                         const number& ns) {
    return keys_compared({0, ~std::uint64_t{0}}, sign, ns, [&time](std::uint64_t ticks) {
        return number::of(since_begin(time, ticks).value_or(0));
    });
}

}  // namespace trace_ring::inline v1::reduce::where
