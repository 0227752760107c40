// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// How often each edge was taken, and each basic block was executed.
///
/// A thread's branches i and i + 1 show that it ran straight from to[i] to from[i + 1]. These runs
/// are cut at every target of a branch, and after each branch that is ever taken. The parts are
/// basic blocks as far as the trace shows: a branch that is never taken, and code that is never a
/// target, cut nothing.

#include <cstdint>
#include <span>
#include <vector>

#include "branch_trace.hpp"

namespace branches {

struct edge {
    place_id from = 0, to = 0;
    branch_kind kind{};
    std::uint64_t count = 0;
};

/// Every edge, the most frequent first.
[[nodiscard]] std::vector<edge> count_edges(std::span<const branch> branches);

/// A sequence of instructions without branches.
struct block {
    object_id object = 0;
    std::uint64_t start = 0;
    std::uint64_t end = 0;  ///< after its last byte
    std::uint64_t count = 0;
    bool starts_behind = false;  ///< after the instruction at `start`, whose bytes are not
                                 ///< available
    bool ends_behind = false;    ///< `end` is after an instruction whose bytes are not available;
                                 ///< it counts as one byte
};

struct block_counts {
    std::vector<block> blocks;  ///< by object and address
    std::uint64_t runs = 0;     ///< number of counted straight runs
    std::uint64_t broken = 0;   ///< not counted: runs that lead backward or into another object,
                                ///< which never happens in a trace without a gap
};

[[nodiscard]] block_counts count_blocks(std::span<const branch> branches, code& of);

}  // namespace branches
