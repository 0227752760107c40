// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Summarizes many numbers without keeping them: the count, the least, the greatest, the mean, and
/// the rest by a log-linear histogram: each power of two in 128 buckets of equal width. A
/// percentile is the middle of its bucket, so within 1/256 (0.4 %) of the exact number, and exact
/// for integers below 256. (Debian 12 has no library of this kind for C++: HdrHistogram is
/// there for Java and Go, and Boost.Accumulators' quantiles have no bound on their error.)
///
/// Negative numbers have buckets like positive ones, on the other side of 0. NaN and the infinities
/// are counted apart, and are in no other figure. Memory: 1 KiB for each power of two met.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace trace_reduce::measure {

/// One bucket: numbers from `from`, included, to `to`, not included; below zero the other way
/// round. `from` equals `to` for the bucket of zeros.
struct bucket {
    double from = 0;
    double to = 0;
    std::uint64_t count = 0;
};

class numbers {
public:
    enum class kind { natural, integer, floating };

    explicit numbers(kind of = kind::natural) noexcept : kind_(of) {}

    void add(std::uint64_t value) {
        ++count_;
        if (value < natural_.first) natural_.first = value;
        if (value > natural_.second) natural_.second = value;
        sum(static_cast<double>(value));
        count_in(value, false);
    }
    void add(std::int64_t value) {
        ++count_;
        if (value < integer_.first) integer_.first = value;
        if (value > integer_.second) integer_.second = value;
        sum(static_cast<double>(value));
        const auto bits = static_cast<std::uint64_t>(value);
        count_in(value < 0 ? 0 - bits : bits, value < 0);
    }
    void add(double value) {
        if (std::isnan(value)) {
            ++nan_;
        } else if (std::isinf(value)) {
            ++(value < 0 ? below_ : above_);
        } else {
            ++count_;
            floating_.first = std::min(floating_.first, value);
            floating_.second = std::max(floating_.second, value);
            sum(value);
            if (value == 0) {
                ++zeros_;
            } else {
                int exponent = 0;  // |value| = fraction * 2^exponent, fraction in [1/2, 1)
                const double fraction = std::frexp(std::fabs(value), &exponent);
                const auto slot = static_cast<std::size_t>((2 * fraction - 1) * slots);
                ++of_power(exponent - 1, value < 0)[slot];
            }
        }
    }
    void add(const numbers& other) {
        count_ += other.count_;
        zeros_ += other.zeros_;
        nan_ += other.nan_;
        below_ += other.below_;
        above_ += other.above_;
        sum(other.sum_);
        sum(other.rest_);
        natural_.first = std::min(natural_.first, other.natural_.first);
        natural_.second = std::max(natural_.second, other.natural_.second);
        integer_.first = std::min(integer_.first, other.integer_.first);
        integer_.second = std::max(integer_.second, other.integer_.second);
        floating_.first = std::min(floating_.first, other.floating_.first);
        floating_.second = std::max(floating_.second, other.floating_.second);
        for (const auto& each : other.powers_) {
            auto& into = of_key(each.key);
            for (std::size_t i = 0; i < slots; ++i) into[i] += each.counts[i];
        }
    }

    [[nodiscard]] kind what() const noexcept { return kind_; }
    /// Numbers, without NaN and the infinities.
    [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
    [[nodiscard]] std::uint64_t not_numbers() const noexcept { return nan_; }
    [[nodiscard]] std::uint64_t negative_infinities() const noexcept { return below_; }
    [[nodiscard]] std::uint64_t infinities() const noexcept { return above_; }
    /// The least and the greatest, exactly, of the kind that was added; nothing if `count` is 0.
    [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> natural() const noexcept {
        return natural_;
    }
    [[nodiscard]] std::pair<std::int64_t, std::int64_t> integer() const noexcept {
        return integer_;
    }
    [[nodiscard]] std::pair<double, double> floating() const noexcept { return floating_; }
    [[nodiscard]] double least() const noexcept {
        return kind_ == kind::natural   ? static_cast<double>(natural_.first)
               : kind_ == kind::integer ? static_cast<double>(integer_.first)
                                        : floating_.first;
    }
    [[nodiscard]] double greatest() const noexcept {
        return kind_ == kind::natural   ? static_cast<double>(natural_.second)
               : kind_ == kind::integer ? static_cast<double>(integer_.second)
                                        : floating_.second;
    }
    /// To the precision of a double. What is beyond a double's range is an infinity.
    [[nodiscard]] double mean() const noexcept {
        return count_ == 0 ? 0 : (sum_ + rest_) / static_cast<double>(count_);
    }
    /// The number that `share` (from 0 to 1) of all do not exceed, as above.
    [[nodiscard]] double percentile(double share) const {
        if (count_ == 0) return 0;
        const double wanted = std::ceil(share * static_cast<double>(count_));
        const auto rank = std::clamp<std::uint64_t>(static_cast<std::uint64_t>(wanted), 1, count_);
        if (rank == count_) return greatest();
        std::uint64_t before = 0;
        double found = 0;
        for_each_bucket([&](const bucket& each) {
            if (before < rank) found = middle(each);
            before += each.count;
        });
        return std::clamp(found, least(), greatest());
    }

    /// Calls `visit(bucket)` for each that is not empty, in ascending order.
    template <class Visit>
    void for_each_bucket(Visit&& visit) const {
        const auto show = [&](const power& of) {
            const bool negative = of.key < 0;
            const int exponent = exponent_of(of.key);
            for (std::size_t k = 0; k < slots; ++k) {
                const std::size_t i = negative ? slots - 1 - k : k;
                const std::uint64_t count = of.counts[i];
                if (count == 0) continue;
                double from = std::ldexp(static_cast<double>(slots + i), exponent - slot_bits);
                double to = std::ldexp(static_cast<double>(slots + i + 1), exponent - slot_bits);
                if (negative) {
                    from = -from;
                    to = -to;
                }
                visit(bucket{from, to, count});
            }
        };
        std::size_t i = 0;
        for (; i < powers_.size() && powers_[i].key < 0; ++i) show(powers_[i]);
        if (zeros_ != 0) visit(bucket{0, 0, zeros_});
        for (; i < powers_.size(); ++i) show(powers_[i]);
    }

private:
    static constexpr int slot_bits = 7;
    static constexpr std::size_t slots = std::size_t{1} << slot_bits;
    static constexpr int middle_key = 2048;  // exponents of doubles are from -1074 to 1023

    struct power {
        int key;                            // ascending as the numbers do
        std::vector<std::uint64_t> counts;  // of each slot
    };
    [[nodiscard]] static int exponent_of(int key) noexcept {
        return (key < 0 ? -key : key) - middle_key;
    }
    [[nodiscard]] std::vector<std::uint64_t>& of_power(int exponent, bool negative) {
        return of_key(negative ? -(exponent + middle_key) : exponent + middle_key);
    }
    [[nodiscard]] std::vector<std::uint64_t>& of_key(int key) {
        if (last_ < powers_.size() && powers_[last_].key == key) return powers_[last_].counts;
        auto at = std::lower_bound(powers_.begin(), powers_.end(), key,
                                   [](const power& a, int b) { return a.key < b; });
        if (at == powers_.end() || at->key != key) {
            at = powers_.insert(at, power{key, std::vector<std::uint64_t>(slots)});
        }
        last_ = static_cast<std::size_t>(at - powers_.begin());
        return at->counts;
    }
    void count_in(std::uint64_t size, bool negative) {
        if (size == 0) {
            ++zeros_;
            return;
        }
        const int exponent = 63 - __builtin_clzll(size);
        const std::uint64_t rest = size ^ std::uint64_t{1} << exponent;
        ++of_power(exponent, negative)[static_cast<std::size_t>(
            exponent >= slot_bits ? rest >> (exponent - slot_bits)
                                  : rest << (slot_bits - exponent))];
    }
    [[nodiscard]] double middle(const bucket& of) const noexcept {
        if (kind_ == kind::floating) return of.from + (of.to - of.from) / 2;
        const double width = std::fabs(of.to - of.from);
        if (width <= 1) return of.from;  // one integer
        const double half = std::floor((width - 1) / 2);
        return of.from < 0 ? of.from - half : of.from + half;
    }
    /// With what adding loses carried along (Neumaier): a mean of 1e9 numbers is still right.
    void sum(double value) noexcept {
        const double all = sum_ + value;
        if (std::isfinite(all)) {
            rest_ +=
                std::fabs(sum_) >= std::fabs(value) ? (sum_ - all) + value : (value - all) + sum_;
        }
        sum_ = all;
    }

    kind kind_;
    std::uint64_t count_ = 0, zeros_ = 0, nan_ = 0, below_ = 0, above_ = 0;
    double sum_ = 0, rest_ = 0;
    std::pair<std::uint64_t, std::uint64_t> natural_{std::numeric_limits<std::uint64_t>::max(), 0};
    std::pair<std::int64_t, std::int64_t> integer_{std::numeric_limits<std::int64_t>::max(),
                                                   std::numeric_limits<std::int64_t>::min()};
    std::pair<double, double> floating_{std::numeric_limits<double>::max(),
                                        std::numeric_limits<double>::lowest()};
    std::vector<power> powers_;
    std::size_t last_ = 0;  // found last
};

}  // namespace trace_reduce::measure
