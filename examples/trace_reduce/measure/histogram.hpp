// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The rows of a histogram: the fine buckets of numbers.hpp added up to a few that a person can
/// read. With a log scale each power of two is one row, or two, four or eight where there are few
/// of them; with a linear one all rows have the same width, and a number within 0.4 % of a bound
/// may be counted in the next row.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "numbers.hpp"

namespace trace_reduce::measure {

inline constexpr std::size_t most_bars = 24;

namespace impl {

/// The row in which a fine bucket lies, if a power of two is `parts` rows.
[[nodiscard]] inline bucket log_row(const bucket& fine, int parts) noexcept {
    if (fine.from == 0) return {0, 0, fine.count};
    const bool negative = fine.from < 0;
    int exponent = 0;
    const double size = std::fabs(fine.from);
    const double part = std::floor((2 * std::frexp(size, &exponent) - 1) * parts);
    const double width = std::ldexp(1.0 / parts, exponent - 1);
    const double from = std::ldexp(1.0, exponent - 1) + part * width;
    return negative ? bucket{-from, -(from + width), fine.count}
                    : bucket{from, from + width, fine.count};
}

}  // namespace impl

/// Rows in ascending order; with a log scale from the first to the last that is not empty, with the
/// empty ones between them left out where there are more than `most_bars`.
[[nodiscard]] inline std::vector<bucket> log_bars(const numbers& of) {
    std::vector<bucket> rows;
    for (int parts = 8; parts >= 1; parts /= 2) {
        rows.clear();
        of.for_each_bucket([&](const bucket& fine) {
            const bucket row = impl::log_row(fine, parts);
            const bool whole = of.what() != numbers::kind::floating;
            // Of integers no row is narrower than one of them.
            if (whole && std::fabs(row.to - row.from) < 1 && row.from != 0) {
                rows.push_back({fine.from, fine.from + (fine.from < 0 ? -1 : 1), fine.count});
            } else if (!rows.empty() && rows.back().from == row.from && rows.back().to == row.to) {
                rows.back().count += row.count;
            } else {
                rows.push_back(row);
            }
        });
        if (rows.size() <= most_bars) break;
    }
    return rows;
}

[[nodiscard]] inline std::vector<bucket> linear_bars(const numbers& of) {
    std::vector<bucket> rows;
    if (of.count() == 0) return rows;
    const bool whole = of.what() != numbers::kind::floating;
    const double least = of.least();
    // Halves, so that the difference of two doubles is one.
    const double half_range = of.greatest() / 2 - least / 2 + (whole ? 0.5 : 0);
    constexpr double bars = 20;
    double width = half_range / bars * 2;
    if (whole) width = std::max(1.0, std::ceil(width));
    if (!(width > 0) || !std::isfinite(width)) {
        of.for_each_bucket([&](const bucket& fine) { rows.push_back(fine); });
        return rows;
    }
    const auto count =
        static_cast<std::size_t>(std::clamp(std::ceil(half_range / width * 2), 1.0, bars));
    for (std::size_t i = 0; i < count; ++i) {
        const auto edge = [&](std::size_t n) { return least + static_cast<double>(n) * width; };
        rows.push_back({edge(i), edge(i + 1), 0});
    }
    of.for_each_bucket([&](const bucket& fine) {
        const bool one = whole && std::fabs(fine.to - fine.from) <= 1;
        const double at = one ? fine.from : fine.from + (fine.to - fine.from) / 2;
        const double row = std::floor((std::clamp(at, least, of.greatest()) - least) / width);
        rows[static_cast<std::size_t>(std::clamp(row, 0.0, static_cast<double>(count - 1)))]
            .count += fine.count;
    });
    return rows;
}

/// How many of `columns` a bar takes: at least one if there is anything to show.
[[nodiscard]] inline std::size_t bar_length(std::uint64_t count, std::uint64_t longest,
                                            std::size_t columns) noexcept {
    if (count == 0 || longest == 0) return 0;
    const double share = static_cast<double>(count) / static_cast<double>(longest);
    return std::max<std::size_t>(
        1, static_cast<std::size_t>(share * static_cast<double>(columns) + 0.5));
}

}  // namespace trace_reduce::measure
