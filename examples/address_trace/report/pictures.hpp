// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file The results of the analyses as pictures: self-contained SVG files.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <address_trace/analysis/cache_misses.hpp>
#include <address_trace/analysis/line_use.hpp>
#include <address_trace/analysis/reuse_distance.hpp>
#include <address_trace/analysis/working_set.hpp>
#include "tables.hpp"

namespace address_trace {

struct picture {
    std::string name;  ///< one word
    std::string svg;
};

/// One picture for each analysis that has one and has results.
[[nodiscard]] std::vector<picture> draw_all(const findings& of);

/// Bytes in lines and in pages, over references.
[[nodiscard]] std::string draw_working_set(std::span<const working_set_interval> all,
                                           std::uint64_t line, std::uint64_t page);
/// Uses by distance, and the share that caches of these sizes miss, with twice its standard error.
[[nodiscard]] std::string draw_distances(const distance_histogram& of, std::uint64_t line);
/// The share of its references that each cache misses.
[[nodiscard]] std::string draw_misses(std::span<const cache_result> all);
/// Loads and stores of each line. `references`: of all lines.
[[nodiscard]] std::string draw_hottest(std::span<const used_line> all, std::uint64_t references);

}  // namespace address_trace
