// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A place in a trace as a person gives it: a date, a duration, a share or a position. range.hpp
/// finds it in a trace; texts for it are up to the program (trace-reduce has `13:00:03.25`,
/// `+1.5s`, `25%`, `3:1500`).
/// @code
///   trace_ring::reduce::when last_second;
///   last_second.what = trace_ring::reduce::when::form::before_end;
///   last_second.ns = 1'000'000'000;
/// @endcode

#include <cstdint>
#include <optional>

#include <trace_ring/position.hpp>

namespace trace_ring::inline v1::reduce {

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
    position at = 0;

    static constexpr std::uint64_t whole = 100'000'000'000;

    friend bool operator==(const when&, const when&) = default;
};

namespace impl {
inline constexpr std::int64_t second_ns = 1'000'000'000;
inline constexpr std::int64_t day_ns = 86'400 * second_ns;
}  // namespace impl

}  // namespace trace_ring::inline v1::reduce
