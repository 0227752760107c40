// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The numbers of all types in conditions on records, and how they compare.
/// @code
///   const bool more = holds(comparison::more, number::of(9.5) <=> number::of(std::uint64_t{9}));
/// @endcode

#include <cmath>
#include <compare>
#include <cstdint>

namespace trace_ring::inline v1::point {

/// Whole numbers from -2^63 to 2^64-1, so that signed and unsigned 64-bit fields have one kind, and
/// doubles. Comparisons are exact, also between a whole number and a double: neither is converted
/// to the other with a loss.
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
    [[nodiscard]] bool negative() const noexcept { return floating_ ? real_ < 0 : negative_; }
    /// Of a whole number, in two's complement.
    [[nodiscard]] std::uint64_t bits() const noexcept { return negative_ ? 0 - size_ : size_; }
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
    /// Bitwise and; a negative number has infinitely many ones on its left. Both must be whole.
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
/// Whether numbers, or texts, of this order compare by `sign`: unordered ones are unequal.
[[nodiscard]] constexpr bool holds(comparison sign, std::partial_ordering order) noexcept {
    if (std::is_lt(order)) return (sign & comparison::less) != 0;
    if (std::is_gt(order)) return (sign & comparison::more) != 0;
    return std::is_eq(order) ? (sign & comparison::equal) != 0 : sign == comparison::unequal;
}
/// The comparison with its sides exchanged.
[[nodiscard]] constexpr comparison mirrored(comparison sign) noexcept {
    const auto bits = static_cast<unsigned>(sign);
    return static_cast<comparison>((bits & 2U) | (bits & 1U) << 2 | bits >> 2);
}

}  // namespace trace_ring::inline v1::point
