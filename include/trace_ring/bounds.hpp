// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The lesser and the greater of two numbers, and a number clamped to bounds: std::min, std::max
/// and std::clamp without <algorithm>, which takes longer to compile than a file that only records.

namespace trace_ring::inline v1 {

template <class T>
[[nodiscard, gnu::always_inline]] constexpr T least(T a, T b) noexcept {
    return b < a ? b : a;
}
template <class T>
[[nodiscard, gnu::always_inline]] constexpr T greatest(T a, T b) noexcept {
    return a < b ? b : a;
}
/// `number`, or the bound that it is beyond. `low` is not greater than `high`.
template <class T>
[[nodiscard, gnu::always_inline]] constexpr T clamped(T number, T low, T high) noexcept {
    return number < low ? low : high < number ? high : number;
}

}  // namespace trace_ring::inline v1
