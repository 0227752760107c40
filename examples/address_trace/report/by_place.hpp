// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What sites amount to, summed up by function and by line of the source.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <address_trace/analysis/cache_misses.hpp>
#include <address_trace/analysis/counts.hpp>
#include "places.hpp"

namespace address_trace {

struct place_counts {
    std::string name;    ///< of a function, or "file:line"
    std::string object;  ///< path of the program or library that it is in
    std::string file;    ///< of a line: path of the source
    int line = 0;        ///< 0: the compiler named none
    reference_counts counts;
    /// Of a function: how often it was entered. Where it was not compiled with hooks for that, how
    /// often its first block ran: a loop back to there is counted, too.
    std::uint64_t calls = 0;
    std::vector<std::uint64_t> misses;  ///< of each cache
};

struct counts_by_place {
    std::vector<place_counts> functions;
    /// Of sites whose file is known. A name has the file's folders only if another file has the
    /// same name without them.
    std::vector<place_counts> lines;
};

/// Both, those with the most references first. `caches`: all that there are, one after the other.
[[nodiscard]] counts_by_place sum_by_place(std::span<const site_count> sites,
                                           std::span<const cache_result> caches,
                                           const place_of& where);

}  // namespace address_trace
