// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The byte code's exact arithmetic, for conditions on records: a number is two columns, its bits
/// and above them its number_kind.
/// @code
///   end = impl::compute_numbers(instruction{op::number_add}, which, end);  // four become two
/// @endcode
/// Only the records whose bits are set are computed; the others do not change.

#include <bit>
#include <cstddef>
#include <cstdint>

#include <trace_ring/point/machine/code.hpp>
#include <trace_ring/point/machine/number.hpp>
#include <trace_ring/point/machine/word_columns.hpp>

namespace trace_ring::inline v1::point {

[[nodiscard]] inline number_kind kind_of(const number& of) noexcept {
    return of.floating()   ? number_kind::real
           : of.negative() ? number_kind::negative
                           : number_kind::whole;
}
[[nodiscard]] inline std::uint64_t bits_of(const number& of) noexcept {
    return of.floating() ? std::bit_cast<std::uint64_t>(of.real()) : of.bits();
}
/// The number with these words, which must be valid.
[[nodiscard]] inline number number_of(std::uint64_t bits, std::uint64_t kind) noexcept {
    switch (static_cast<number_kind>(kind)) {
        case number_kind::real:
            return number::of(std::bit_cast<double>(bits));
        case number_kind::negative:
            return number::of(static_cast<std::int64_t>(bits));
        default:
            return number::of(bits);
    }
}

inline constexpr std::size_t records_at_once = 64;
using record_column = column<records_at_once>;
/// The bit of each in a mask.
inline constexpr record_column record_bits = [] {
    record_column all{};
    for (std::size_t k = 0; k < records_at_once; ++k) all[k] = std::uint64_t{1} << k;
    return all;
}();

namespace impl {

template <class Do>
void for_each(std::uint64_t which, const Do& visit) {
    if (which == ~std::uint64_t{0}) {
        for (std::size_t k = 0; k < records_at_once; ++k) visit(k);
    } else {
        for (std::uint64_t left = which; left != 0; left &= left - 1) {
            visit(static_cast<std::size_t>(std::countr_zero(left)));
        }
    }
}

/// Two columns of the stack.
struct numbers {
    record_column& bits;
    record_column& kinds;

    explicit numbers(record_column* at) noexcept : bits(at[0]), kinds(at[1]) {}
    [[nodiscard]] bool is_there(std::size_t k) const noexcept {
        return kinds[k] < static_cast<std::uint64_t>(number_kind::undefined);
    }
    [[nodiscard]] bool is_unknown(std::size_t k) const noexcept {
        return kinds[k] >= static_cast<std::uint64_t>(number_kind::unknown);
    }
    [[nodiscard]] number operator[](std::size_t k) const noexcept {
        return number_of(bits[k], kinds[k]);
    }
    void put(std::size_t k, const number& value) const noexcept {
        bits[k] = bits_of(value);
        kinds[k] = static_cast<std::uint64_t>(kind_of(value));
    }
};

/// `result` receives the two numbers, and is undefined if there is none.
template <class Do>
[[nodiscard]] record_column* combine(record_column* into, std::uint64_t which, bool divides,
                                     const Do& result) noexcept {
    const numbers a(into);
    const numbers b(into + 2);
    for_each(which, [&](std::size_t k) {
        if (!a.is_there(k) || !b.is_there(k)) {
            a.kinds[k] =
                a.kinds[k] < b.kinds[k] ? b.kinds[k] : a.kinds[k];  // unknown: the greatest
        } else if (const number by = b[k]; divides && by.is_zero()) {
            a.kinds[k] = static_cast<std::uint64_t>(number_kind::undefined);
        } else {
            a.put(k, result(a[k], by));
        }
    });
    return into + 2;
}

/// An operation on numbers; `end` is the end of the stack; returns the new end. Null: not an
/// operation on numbers.
[[nodiscard]] inline record_column* compute_numbers(const instruction& one, std::uint64_t which,
                                                    record_column* end) noexcept {
    switch (one.code) {
        case op::number: {
            const bool is_signed = one.what == static_cast<std::uint8_t>(number_kind::negative);
            for_each(which,
                     [&](std::size_t k) { end[0][k] = is_signed ? end[-1][k] >> 63 : one.what; });
            return end + 1;
        }
        case op::number_negate: {
            const numbers of(end - 2);
            for_each(which, [&](std::size_t k) {
                if (of.is_there(k)) of.put(k, -of[k]);
            });
            return end;
        }
        case op::number_add:
            return combine(end - 4, which, false,
                           [](const number& a, const number& b) { return a + b; });
        case op::number_subtract:
            return combine(end - 4, which, false,
                           [](const number& a, const number& b) { return a - b; });
        case op::number_multiply:
            return combine(end - 4, which, false,
                           [](const number& a, const number& b) { return a * b; });
        case op::number_divide:
            return combine(end - 4, which, true,
                           [](const number& a, const number& b) { return a / b; });
        case op::number_remainder:
            return combine(end - 4, which, true,
                           [](const number& a, const number& b) { return a % b; });
        case op::number_and:
            return combine(end - 4, which, false,
                           [](const number& a, const number& b) { return a & b; });
        case op::number_compare: {
            const numbers a(end - 4);
            const numbers b(end - 2);
            const auto sign = static_cast<comparison>(one.what);
            for_each(which, [&](std::size_t k) {
                const bool there = a.is_there(k) && b.is_there(k);
                const bool unknown = a.is_unknown(k) || b.is_unknown(k);
                a.bits[k] = unknown                               ? truth_unknown
                            : there && holds(sign, a[k] <=> b[k]) ? truth_yes
                                                                  : truth_no;
            });
            return end - 3;
        }
        default:
            return nullptr;
    }
}

}  // namespace impl

}  // namespace trace_ring::inline v1::point
