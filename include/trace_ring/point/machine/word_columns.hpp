// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The byte code's arithmetic on words, for one firing or for many records: each operation works on
/// a column, which has the records' words for one place of the stack.
/// @code
///   end = impl::compute(instruction{op::add}, end, 64);  // two columns become one
/// @endcode

#include <array>
#include <cstddef>
#include <cstdint>

#include <trace_ring/point/machine/code.hpp>

namespace trace_ring::inline v1::point {

/// The words of N records for one place of the stack; for a firing N is 1.
template <std::size_t N>
using column = std::array<std::uint64_t, N>;

namespace impl {

/// For the first `count` of a column. A full column has a separate loop, which is faster because
/// compilers know its length.
template <std::size_t N, class Visit>
void for_first(std::size_t count, const Visit& visit) {
    if (count == N) {
        for (std::size_t k = 0; k < N; ++k) visit(k);
    } else {
        for (std::size_t k = 0; k < count; ++k) visit(k);
    }
}
template <std::size_t N, class Do>
[[nodiscard]] column<N>* each(column<N>* end, std::size_t count, const Do& result) noexcept {
    std::uint64_t* const x = end[-1].data();
    for_first<N>(count, [=](std::size_t k) { x[k] = result(x[k]); });
    return end;
}
/// Replaces the two uppermost columns by one.
template <std::size_t N, class Do>
[[nodiscard]] column<N>* both(column<N>* end, std::size_t count, const Do& result) noexcept {
    std::uint64_t* __restrict const w = end[-2].data();
    const std::uint64_t* __restrict const x = end[-1].data();
    for_first<N>(count, [=](std::size_t k) { w[k] = result(w[k], x[k]); });
    return end - 1;
}

/// `x` is not 0.
[[nodiscard]] constexpr std::uint64_t quotient(op how, std::uint64_t w, std::uint64_t x) noexcept {
    if (how == op::divide_unsigned) return w / x;
    if (how == op::remainder_unsigned) return w % x;
    // -2^63 / -1 is out of range, and would trap: by magnitudes it is 2^63, which wraps.
    const bool negative = static_cast<std::int64_t>(w) < 0;
    const bool differs = negative != (static_cast<std::int64_t>(x) < 0);
    const std::uint64_t a = negative ? 0 - w : w;
    const std::uint64_t b = static_cast<std::int64_t>(x) < 0 ? 0 - x : x;
    if (how == op::remainder) return negative ? 0 - a % b : a % b;
    return differs ? 0 - a / b : a / b;
}

/// An operation on the first `count` words that reads nothing else; `end` is the end of the stack;
/// returns the new end. Null: another operation.
template <std::size_t N>
[[nodiscard]] column<N>* compute(const instruction& one, column<N>* end,
                                 std::size_t count) noexcept {
    using word = std::uint64_t;
    const auto is_signed = [](word of) { return static_cast<std::int64_t>(of); };
    switch (one.code) {
        case op::constant:
            return each(end + 1, count,
                        [x = static_cast<word>(std::int64_t{one.value})](word) { return x; });
        case op::constant_high: {
            const word high = word{static_cast<std::uint32_t>(one.value)} << 32;
            return each(end, count, [high](word x) { return (x & 0xFFFFFFFFU) | high; });
        }
        case op::add:
            return both(end, count, [](word w, word x) { return w + x; });
        case op::subtract:
            return both(end, count, [](word w, word x) { return w - x; });
        case op::multiply:
            return both(end, count, [](word w, word x) { return w * x; });
        case op::bit_and:
            return both(end, count, [](word w, word x) { return w & x; });
        case op::bit_or:
            return both(end, count, [](word w, word x) { return w | x; });
        case op::bit_xor:
            return both(end, count, [](word w, word x) { return w ^ x; });
        case op::shift_left:
            return both(end, count, [](word w, word x) { return w << (x & 63); });
        case op::shift_right:
            return both(end, count, [is_signed](word w, word x) {
                return static_cast<word>(is_signed(w) >> (x & 63));
            });
        case op::shift_right_unsigned:
            return both(end, count, [](word w, word x) { return w >> (x & 63); });
        case op::equals:
            return both(end, count, [](word w, word x) { return word{w == x}; });
        case op::exceeds:
            return both(end, count,
                        [is_signed](word w, word x) { return word{is_signed(w) > is_signed(x)}; });
        case op::exceeds_unsigned:
            return both(end, count, [](word w, word x) { return word{w > x}; });
        case op::negate:
            return each(end, count, [](word x) { return 0 - x; });
        case op::invert:
            return each(end, count, [](word x) { return ~x; });
        case op::is_zero:
            return each(end, count, [](word x) { return word{x == 0}; });
        case op::narrow:
            return each(end, count,
                        [to = static_cast<width>(one.what)](word x) { return narrowed(x, to); });
        default:
            return nullptr;
    }
}

}  // namespace impl

}  // namespace trace_ring::inline v1::point
