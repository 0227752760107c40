// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file Estimates the number of distinct values in 4 KiB, with a standard error of 1.6 %: a
/// HyperLogLog with the estimator of Ertl, "New cardinality estimation algorithms for HyperLogLog
/// sketches" (2017), which works equally well for few and for many values.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace address_trace {

class distinct_count {
public:
    static constexpr unsigned bits = 12;
    static constexpr std::size_t registers = std::size_t{1} << bits;
    static constexpr double standard_error = 1.04 / 64;  // of the square root of the registers

    /// `hash`: 64 bits that are a random-looking function of the value.
    [[gnu::always_inline]] void add(std::uint64_t hash) noexcept {
        std::uint8_t& most = most_zeros_[static_cast<std::size_t>(hash >> (64 - bits))];
        const auto zeros = static_cast<std::uint8_t>(
            std::countl_zero(hash << bits | std::uint64_t{1} << (bits - 1)) + 1);
        if (zeros > most) most = zeros;
    }
    /// Adds everything that was added to the other one.
    void add(const distinct_count& other) noexcept {
        for (std::size_t i = 0; i < registers; ++i)
            most_zeros_[i] = std::max(most_zeros_[i], other.most_zeros_[i]);
    }

    [[nodiscard]] double estimate() const noexcept {
        constexpr std::size_t most = 64 - bits + 1;
        constexpr auto all = static_cast<double>(registers);
        std::array<double, most + 1> with{};  // number of registers for each value
        for (const std::uint8_t each : most_zeros_) ++with[each];
        double sum = all * of_full(1 - with[most] / all);
        for (std::size_t i = most - 1; i > 0; --i) sum = (sum + with[i]) / 2;
        sum += all * of_empty(with[0] / all);
        return all * all / (2 * std::log(2.0)) / sum;
    }

private:
    /// The terms of the estimate for the share of empty registers and of registers that are not
    /// full.
    [[nodiscard]] static double of_empty(double share) noexcept {
        if (share == 1) return HUGE_VAL;
        double weight = 1, sum = share, before = 0;
        do {
            share *= share;
            before = sum;
            sum += share * weight;
            weight += weight;
        } while (sum != before);
        return sum;
    }
    [[nodiscard]] static double of_full(double share) noexcept {
        if (share == 0 || share == 1) return 0;
        double weight = 1, sum = 1 - share, before = 0;
        do {
            share = std::sqrt(share);
            before = sum;
            weight /= 2;
            sum -= (1 - share) * (1 - share) * weight;
        } while (sum != before);
        return sum / 3;
    }

    std::array<std::uint8_t, registers> most_zeros_{};
};

}  // namespace address_trace
