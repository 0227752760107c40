// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file The executed parts of a function: bytes, lines, and the edges that were taken.

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
    std::vector<edge> edges;    ///< edges from or to this function, the most frequent first
    std::vector<block> blocks;  ///< in it, by address
    std::uint64_t bytes = 0;    ///< of the function
    std::uint64_t run = 0;      ///< the number of those in an executed block
    /// Each line with code in the function, with the count of the block that has most of its code;
    /// 0: never executed. Empty without debug information.
    std::map<std::pair<std::string, int>, std::uint64_t> lines;
    [[nodiscard]] std::size_t lines_run() const;
};

/// For every function with this name in which a branch of the trace begins or ends. The name is
/// exact, without arguments, or a pattern with * and ?.
[[nodiscard]] std::vector<function_coverage> cover(std::span<const branch> branches, code& of,
                                                   const std::string& name);

}  // namespace branches
