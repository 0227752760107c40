// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The project's one language of expressions, as a tree: of conditions on records that are read
/// (reduce/where/), and of the predicates and actions of trace clauses. A parser makes it from a
/// text (the programs have one), or a program builds it.
/// @code
///   using namespace trace_ring::point;
///   const auto price = expression::of_name("price");
///   auto large = expression::compare(price, comparison::more, expression::of(number::of(9.5)));
/// @endcode
/// What a name means, and which forms make sense, is said by who uses the tree.

#include <cmath>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace trace_ring::inline v1::point {

/// Whole numbers from -2^63 to 2^64-1, so that signed and unsigned 64-bit fields are of one kind,
/// and doubles. Comparisons are exact, also between a whole number and a double: neither is
/// converted to the other with a loss.
class number {
public:
    number() = default;
    [[nodiscard]] static number of(std::uint64_t value) noexcept { return {false, value}; }
    [[nodiscard]] static number of(std::int64_t value) noexcept {
        const auto bits = static_cast<std::uint64_t>(value);
        return value < 0 ? number(true, 0 - bits) : number(false, bits);
    }
    [[nodiscard]] static number of(double value) noexcept {
        number made;
        made.floating_ = true;
        made.real_ = value;
        return made;
    }

    [[nodiscard]] bool floating() const noexcept { return floating_; }
    /// The nearest double.
    [[nodiscard]] double real() const noexcept {
        if (floating_) return real_;
        const auto size = static_cast<double>(size_);
        return negative_ ? -size : size;
    }
    [[nodiscard]] bool is_nan() const noexcept { return floating_ && std::isnan(real_); }
    [[nodiscard]] bool is_zero() const noexcept { return floating_ ? real_ == 0 : size_ == 0; }

    /// Exact; unordered if one is a NaN.
    [[nodiscard]] friend std::partial_ordering operator<=>(const number& a,
                                                           const number& b) noexcept {
        if (a.floating_ && b.floating_) return a.real_ <=> b.real_;
        if (a.floating_) {
            const auto turned = order(b, a.real_);
            return std::is_lt(turned)   ? std::partial_ordering::greater
                   : std::is_gt(turned) ? std::partial_ordering::less
                                        : turned;
        }
        if (b.floating_) return order(a, b.real_);
        return order(a, b);
    }
    [[nodiscard]] friend bool operator==(const number& a, const number& b) noexcept {
        return std::is_eq(a <=> b);
    }

    // The result of whole numbers is whole; one out of range becomes the nearest in range. With a
    // double the result is a double.

    [[nodiscard]] friend number operator+(const number& a, const number& b) noexcept {
        if (a.floating_ || b.floating_) return of(a.real() + b.real());
        if (a.negative_ == b.negative_) {
            std::uint64_t sum = 0;
            if (__builtin_add_overflow(a.size_, b.size_, &sum)) sum = ~std::uint64_t{0};
            return {a.negative_, sum};
        }
        return a.size_ >= b.size_ ? number(a.negative_, a.size_ - b.size_)
                                  : number(b.negative_, b.size_ - a.size_);
    }
    [[nodiscard]] friend number operator-(const number& a) noexcept {
        return a.floating_ ? of(-a.real_) : number(!a.negative_, a.size_);
    }
    /// Not a + -b: the negative of the greatest whole number is out of range.
    [[nodiscard]] friend number operator-(const number& a, const number& b) noexcept {
        if (a.floating_ || b.floating_) return of(a.real() - b.real());
        number turned;
        turned.size_ = b.size_;
        turned.negative_ = !b.negative_;
        return a + turned;
    }
    [[nodiscard]] friend number operator*(const number& a, const number& b) noexcept {
        if (a.floating_ || b.floating_) return of(a.real() * b.real());
        std::uint64_t product = 0;
        if (__builtin_mul_overflow(a.size_, b.size_, &product)) product = ~std::uint64_t{0};
        return {a.negative_ != b.negative_, product};
    }
    /// Rounds towards zero if both are whole. `b` is not zero.
    [[nodiscard]] friend number operator/(const number& a, const number& b) noexcept {
        if (a.floating_ || b.floating_) return of(a.real() / b.real());
        return {a.negative_ != b.negative_, a.size_ / b.size_};
    }
    /// Has the sign of `a`. `b` is not zero.
    [[nodiscard]] friend number operator%(const number& a, const number& b) noexcept {
        if (a.floating_ || b.floating_) return of(std::fmod(a.real(), b.real()));
        return {a.negative_, a.size_ % b.size_};
    }
    /// The bits that both have; a negative number has ones without end on its left. Both must be
    /// whole.
    [[nodiscard]] friend number operator&(const number& a, const number& b) noexcept {
        const std::uint64_t both = a.bits() & b.bits();
        return a.negative_ && b.negative_ ? number(true, 0 - both) : number(false, both);
    }

private:
    number(bool negative, std::uint64_t size) noexcept : size_(size), negative_(negative) {
        constexpr std::uint64_t lowest = std::uint64_t{1} << 63;
        if (size_ == 0) negative_ = false;
        if (negative_ && size_ > lowest) size_ = lowest;
    }
    [[nodiscard]] std::uint64_t bits() const noexcept { return negative_ ? 0 - size_ : size_; }

    [[nodiscard]] static std::partial_ordering order(const number& a, const number& b) noexcept {
        if (a.negative_ != b.negative_) {
            return a.negative_ ? std::partial_ordering::less : std::partial_ordering::greater;
        }
        return a.negative_ ? b.size_ <=> a.size_ : a.size_ <=> b.size_;
    }
    /// Compares a whole number with a double.
    [[nodiscard]] static std::partial_ordering order(const number& a, double b) noexcept {
        if (std::isnan(b)) return std::partial_ordering::unordered;
        if (b >= 0x1p64) return std::partial_ordering::less;
        if (b <= -0x1p64) return std::partial_ordering::greater;
        const double whole = std::trunc(b);
        number nearest;  // unbounded: a magnitude of 64 bits with either sign
        nearest.size_ = static_cast<std::uint64_t>(std::fabs(whole));
        nearest.negative_ = whole < 0;
        const auto by_whole = order(a, nearest);
        return std::is_neq(by_whole) ? by_whole : whole <=> b;
    }

    std::uint64_t size_ = 0;  // the magnitude of a whole number
    double real_ = 0;
    bool negative_ = false;
    bool floating_ = false;
};

enum class form : std::uint8_t {
    constant,   ///< `value`
    duration,   ///< `value`, in ns
    text,       ///< `word`
    truth,      ///< `value`, 1 or 0
    name,       ///< `word`
    field,      ///< `word`, even if it is also a name of the table above
    type_name,  ///< `word`, as C writes it: only as a call's argument
    // These have parts.
    element,   ///< of a field, number `value`
    negated,   ///< its only part, once for each of `signs`, the last of them first: - ~ *
    sum,       ///< `signs[i]`, + - | or ^, before `parts[i]`; the first is +
    product,   ///< `signs[i]`, * / % & < (<<) or > (>>), before `parts[i]`; the first is *
    member,    ///< of its part, a structure: `word`
    through,   ///< of what its part points to: `word`
    indexed,   ///< the first part's element, whose number is the second
    cast,      ///< its part, as the type `word`
    call,      ///< of `word`, with these arguments
    compared,  ///< two parts by `sign`
    among,     ///< the first part, in a set: further parts, two by two, are its ranges
    like,      ///< the first part, by a glob: `word`
    all_of,
    any_of,
    none_of,  ///< of one part: it does not hold
};

/// One bit for each of less, equal and more.
enum class comparison : std::uint8_t {
    less = 1,
    equal = 2,
    at_most = 3,
    more = 4,
    unequal = 5,
    at_least = 6,
};
[[nodiscard]] constexpr unsigned operator&(comparison a, comparison b) noexcept {
    return static_cast<unsigned>(a) & static_cast<unsigned>(b);
}
/// The comparison that holds of two numbers if and only if this one does not.
[[nodiscard]] constexpr comparison opposite(comparison sign) noexcept {
    return static_cast<comparison>(7 - static_cast<unsigned>(sign));
}
/// The comparison with its sides exchanged.
[[nodiscard]] constexpr comparison mirrored(comparison sign) noexcept {
    const auto bits = static_cast<unsigned>(sign);
    return static_cast<comparison>((bits & 2U) | (bits & 1U) << 2 | bits >> 2);
}

struct expression {
    form what = form::truth;
    comparison sign = comparison::equal;
    number value{};
    std::string word{};
    std::vector<expression> parts{};
    std::string signs{};
    std::size_t column = 0;  ///< where it begins in the text, in bytes from 0
    std::size_t length = 0;  ///< its length there; for an operator between parts, the operator's

    [[nodiscard]] static expression of(number value) {
        return {.what = form::constant, .value = value};
    }
    [[nodiscard]] static expression of(std::uint64_t value) { return of(number::of(value)); }
    [[nodiscard]] static expression of_text(std::string value) {
        return {.what = form::text, .word = std::move(value)};
    }
    [[nodiscard]] static expression of_name(std::string name) {
        return {.what = form::name, .word = std::move(name)};
    }
    [[nodiscard]] static expression compare(expression left, comparison sign, expression right) {
        expression made{.what = form::compared, .sign = sign};
        made.parts.push_back(std::move(left));
        made.parts.push_back(std::move(right));
        return made;
    }
    /// All or any of several conditions, or none of one.
    [[nodiscard]] static expression join(form how, std::vector<expression> parts) {
        return {.what = how, .parts = std::move(parts)};
    }
};

/// A mistake in an expression, and its place in the text, in bytes.
struct mistake {
    std::size_t column = 0;
    std::size_t length = 0;
    std::string what;
};

}  // namespace trace_ring::inline v1::point
