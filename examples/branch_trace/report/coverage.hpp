// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What of a function was run: by bytes, by lines, and which edges were taken in it.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "edges.hpp"

namespace branches {

struct function_coverage {
    known_function function;
    std::vector<edge> edges;    ///< from or to somewhere in the function, the hottest first
    std::vector<block> blocks;  ///< in it, by address
    std::uint64_t bytes = 0;    ///< of the function
    std::uint64_t run = 0;      ///< of them in a block that was run
    /// Each line that has code in the function, and how often the block that was run most of it
    /// was; 0: never seen. Empty without debug information.
    std::map<std::pair<std::string, int>, std::uint64_t> lines;
    [[nodiscard]] std::size_t lines_run() const;
};

/// Of every function of that name (as it is, without its arguments, or as a pattern with * and ?)
/// in which a branch of the trace begins or ends.
[[nodiscard]] std::vector<function_coverage> cover(std::span<const branch> branches, code& of,
                                                   const std::string& name);

}  // namespace branches
