// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Sums and differences of times in ns that stop at the ends of 64 bits, so that a damaged clock
/// does not wrap to a time at the other end.

#include <cstdint>
#include <limits>

namespace trace_ring::inline v1::reduce {

namespace impl {

[[nodiscard]] constexpr std::int64_t plus(std::int64_t a, std::int64_t b) noexcept {
    std::int64_t sum = 0;
    if (!__builtin_add_overflow(a, b, &sum)) return sum;
    return b > 0 ? (std::numeric_limits<std::int64_t>::max)()
                 : (std::numeric_limits<std::int64_t>::min)();
}
[[nodiscard]] constexpr std::int64_t minus(std::int64_t a, std::int64_t b) noexcept {
    std::int64_t rest = 0;
    if (!__builtin_sub_overflow(a, b, &rest)) return rest;
    return b < 0 ? (std::numeric_limits<std::int64_t>::max)()
                 : (std::numeric_limits<std::int64_t>::min)();
}

}  // namespace impl

}  // namespace trace_ring::inline v1::reduce
