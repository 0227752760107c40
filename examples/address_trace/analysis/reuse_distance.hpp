// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Reuse distances: how many other lines are used before a line is used again. A fully associative
/// LRU cache of n lines misses references with a distance of n or more, and first uses.
///
/// The result is exact until more than `most_lines` lines have been used. From then on only a half
/// of the lines, a quarter and so on, selected by a hash, are tracked. Memory is bounded for any
/// program, at about 50 bytes for each of `most_lines`. Distances below 16 remain exact.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "recent_lines.hpp"
#include "run.hpp"

namespace address_trace {

struct distance_histogram {
    /// Of distance 0; of [1, 2), [2, 4), [4, 8), ...
    static constexpr std::size_t buckets = 65;

    double references = 0;
    double first = 0;  ///< first uses of a line; the other uses are in `again`
    std::array<double, buckets> again{};
    std::uint64_t one_in = 1;  ///< one in this many lines was tracked

    std::array<double, buckets> missed{};  ///< by caches of 1, 2, 4, 8, ... lines
    std::array<double, buckets> error{};   ///< of `missed`, see standard_error

    [[nodiscard]] bool exact() const noexcept { return one_in == 1; }
    /// The share of references that a cache of 2^power lines misses.
    [[nodiscard]] double miss_ratio(std::size_t power) const noexcept {
        return references == 0 ? 0 : missed[std::min(power, buckets - 1)] / references;
    }
    /// The standard error of that ratio: the error exceeds twice this value in one case of twenty.
    /// Estimated from the differences between parts of the sample.
    [[nodiscard]] double standard_error(std::size_t power) const noexcept {
        return references == 0 ? 0 : error[std::min(power, buckets - 1)] / references;
    }
};

class reuse_distance final : public analysis {
public:
    static constexpr std::size_t default_most_lines = std::size_t{1} << 16;

    /// `line`: bytes, a power of two.
    explicit reuse_distance(std::uint64_t line = 64, std::size_t most_lines = default_most_lines);

    /// Logarithmic time for each reference.
    void take(const sited_run& run) override;

    /// Of loads and stores; one that lies on two lines uses both.
    [[nodiscard]] distance_histogram result() const;
    [[nodiscard]] std::uint64_t line() const noexcept { return std::uint64_t{1} << shift_; }

private:
    static constexpr std::size_t buckets = distance_histogram::buckets;
    static constexpr std::size_t parts = 32;  // of the sample
    // For far references, by distance; the last element counts first uses.
    using counts = std::array<double, buckets + 1>;

    void use(std::uint64_t line);

    unsigned shift_;
    std::size_t most_lines_;
    recent_lines lines_;
    std::uint64_t references_ = 0;
    std::array<std::uint64_t, recent_lines::listed> near_{};  // by distance
    std::array<counts, parts> far_{};
};

}  // namespace address_trace
