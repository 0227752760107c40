// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file Sums up the counts of sites by function and by source line.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <address_trace/analysis/cache_misses.hpp>
#include <address_trace/analysis/counts.hpp>
#include "places.hpp"

namespace address_trace {

struct place_counts {
    std::string name;    ///< the function's name, or "file:line"
    std::string object;  ///< path of the program or library that contains it
    std::string file;    ///< for a line: path of the source
    int line = 0;        ///< 0: the compiler did not give a line
    reference_counts counts;
    /// For a function: how often it was entered. Without hooks at function entries, how often its
    /// first block ran, which includes loops back to it.
    std::uint64_t calls = 0;
    std::vector<std::uint64_t> misses;  ///< for each cache
};

struct counts_by_place {
    std::vector<place_counts> functions;
    /// For sites with a known file. A name includes the file's folders only if another file has the
    /// same name without them.
    std::vector<place_counts> lines;
};

/// Both are ordered by references, most first. `caches`: all results, one after the other.
[[nodiscard]] counts_by_place sum_by_place(std::span<const site_count> sites,
                                           std::span<const cache_result> caches,
                                           const place_of& where);

}  // namespace address_trace
