// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The calls of a branch trace as a tree: which function was called from where, and how many taken
/// branches it cost.
///
/// Each thread's call stack is followed through its branches. What is no clean call and return:
/// - a return goes to the innermost frame that called from just before where it lands; the frames
///   above are gone, too. One that no frame called is counted as unmatched: at the bottom it says
///   that the trace began inside a call;
/// - a jump to where another function begins is a tail call: it takes the place of the one that
///   jumped;
/// - a jump (or a return that no frame called) into the middle of a function that is on the stack,
///   as longjmp's, leaves all that was called since;
/// - recursion is collapsed: a function called again below itself is the same node.
/// What a trace can make of this is bounded: the tree has 1,000 levels at most, and what is called
/// below them counts as the last one's own; a caller is looked for among the innermost 1,000
/// frames.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "branch_trace.hpp"

namespace branches {

struct call_node {
    function_id function = 0;  ///< 0: not known; of the root: none
    std::size_t parent = 0;
    std::size_t depth = 0;              ///< of the root: 0
    std::vector<std::size_t> children;  ///< those that cost most first
    std::uint64_t calls = 0;            ///< with tail calls and, of a handler, signals
    std::uint64_t self = 0;             ///< branches taken in the function itself
    std::uint64_t inclusive = 0;        ///< and in all that it called
};

struct call_tree {
    std::vector<call_node> nodes;  ///< the first is the root, each parent before its children
    std::uint64_t calls = 0, returns = 0;
    std::uint64_t tail_calls = 0;
    std::uint64_t unmatched = 0;  ///< returns that no frame on the stack had called
    std::uint64_t unwound = 0;    ///< frames left without a return
};

[[nodiscard]] call_tree follow_calls(std::span<const branch> branches, code& of);

}  // namespace branches
