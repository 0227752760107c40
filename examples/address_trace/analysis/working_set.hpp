// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file The working set over time: how many distinct lines and pages are loaded from or stored to
/// in intervals of equal numbers of references. The standard error is 1.6 %, and the memory 4 MiB:
/// if there are too many intervals, they are joined in pairs, which loses nothing.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "distinct_count.hpp"
#include "run.hpp"

namespace address_trace {

struct working_set_interval {
    std::uint64_t references = 0;  ///< loads and stores in it
    std::uint64_t time = 0;        ///< of the run in which it begins
    double lines = 0, pages = 0;   ///< estimated number of distinct ones
};

class working_set final : public analysis {
public:
    static constexpr std::uint64_t default_interval = std::uint64_t{1} << 14;
    static constexpr std::size_t default_most = 512;

    /// `line`, `page`: bytes, powers of two. `interval`: references in each at first. `most`
    /// intervals, an even number.
    explicit working_set(std::uint64_t line = 64, std::uint64_t page = 4096,
                         std::uint64_t interval = default_interval,
                         std::size_t most = default_most);

    /// Constant time for each reference, on average.
    void take(const sited_run& run) override;

    [[nodiscard]] std::vector<working_set_interval> intervals() const;
    /// References in each interval but the last.
    [[nodiscard]] std::uint64_t interval() const noexcept { return interval_; }
    [[nodiscard]] working_set_interval total() const;
    [[nodiscard]] std::uint64_t line() const noexcept { return std::uint64_t{1} << line_shift_; }
    [[nodiscard]] std::uint64_t page() const noexcept { return std::uint64_t{1} << page_shift_; }

private:
    struct part {
        std::uint64_t references = 0, time = 0;
        distinct_count lines, pages;
    };
    static constexpr std::uint64_t none = ~std::uint64_t{0};

    void begin(std::uint64_t time);
    void use(std::uint64_t address);

    unsigned line_shift_, page_shift_;
    std::uint64_t interval_;
    std::size_t most_;
    std::vector<part> parts_;
    std::uint64_t left_ = 0;                             // in the last of parts_
    std::uint64_t last_line_ = none, last_page_ = none;  // which it has
};

}  // namespace address_trace
