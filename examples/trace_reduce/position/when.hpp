// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A place in a trace as a person gives it: a date, a duration, a share or a position. range.hpp
/// finds it in a trace; texts for it are up to the program (trace-reduce has `13:00:03.25`,
/// `+1.5s`, `25%`, `3:1500`).
/// @code
///   trace_reduce::when last_second;
///   last_second.what = trace_reduce::when::form::before_end;
///   last_second.ns = 1'000'000'000;
/// @endcode

#include <time.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

#include <trace_ring/position.hpp>

namespace trace_reduce {

// Sums and differences of times in ns that stop at the ends of 64 bits, so that a damaged clock
// does not wrap to a time at the other end.
namespace impl {

[[nodiscard]] constexpr std::int64_t most_ns(bool positive) noexcept {
    using limits = std::numeric_limits<std::int64_t>;
    return positive ? (limits::max)() : (limits::min)();
}
[[nodiscard]] constexpr std::int64_t plus(std::int64_t a, std::int64_t b) noexcept {
    std::int64_t sum = 0;
    return __builtin_add_overflow(a, b, &sum) ? most_ns(b > 0) : sum;
}
[[nodiscard]] constexpr std::int64_t minus(std::int64_t a, std::int64_t b) noexcept {
    std::int64_t rest = 0;
    return __builtin_sub_overflow(a, b, &rest) ? most_ns(b < 0) : rest;
}

}  // namespace impl

struct when {
    enum class form : std::uint8_t {
        date,         ///< `day`, `ns` of the day, `zone`
        time_of_day,  ///< `ns` of the day, `zone`
        since_begin,  ///< `ns`
        before_end,   ///< `ns`
        per_cent,     ///< `share`
        record,       ///< `at` in `lane`
    };

    form what = form::date;
    std::int64_t day = 0;                ///< days since 1970-01-01
    std::int64_t ns = 0;                 ///< never negative
    std::optional<std::int32_t> zone{};  ///< seconds east of Greenwich; none: local time
    std::uint64_t share = 0;             ///< in units of 10^-11 of the whole, up to `whole`
    std::uint32_t lane = 0;              ///< 0: every lane
    trace_ring::position at = 0;

    static constexpr std::uint64_t whole = 100'000'000'000;

    friend bool operator==(const when&, const when&) = default;
};

/// Ns since 1970 of a date or a time of day; `first_day` is any moment of that day. Nothing if the
/// system has no such local time.
[[nodiscard]] inline std::optional<std::int64_t> realtime_of(const when& what,
                                                             std::int64_t first_day) {
    constexpr std::int64_t second = 1'000'000'000;
    constexpr std::int64_t day = 86'400 * second;
    const auto floor = [](std::int64_t value, std::int64_t unit) {
        return value / unit - (value % unit < 0 ? 1 : 0);
    };
    const bool of_day = what.what == when::form::time_of_day;
    constexpr std::int64_t farthest = 9'100'000'000'000'000'000;  // a damaged clock's
    first_day = std::clamp(first_day, -farthest, farthest);
    if (what.zone) {
        const std::int64_t east = std::int64_t{*what.zone} * second;
        const std::int64_t days = of_day ? floor(first_day + east, day) : what.day;
        return days * day + what.ns - east;
    }
    tm parts{};
    const std::int64_t of_that_day = of_day ? floor(first_day, second) : what.day * 86'400;
    auto moment = static_cast<time_t>(of_that_day);
    if (std::int64_t{moment} != of_that_day) return std::nullopt;  // time_t has 32 bits
    if ((of_day ? ::localtime_r(&moment, &parts) : ::gmtime_r(&moment, &parts)) == nullptr) {
        return std::nullopt;
    }
    const std::int64_t seconds = what.ns / second;
    parts.tm_hour = static_cast<int>(seconds / 3600);
    parts.tm_min = static_cast<int>(seconds / 60 % 60);
    parts.tm_sec = static_cast<int>(seconds % 60);
    parts.tm_isdst = -1;
    parts.tm_wday = -1;  // mktime leaves it if it fails; its result -1 is also a moment
    moment = ::mktime(&parts);
    if (parts.tm_wday == -1) return std::nullopt;
    return std::int64_t{moment} * second + what.ns % second;
}

}  // namespace trace_reduce
