// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The calls of a branch trace as a tree: where each function was called, and how many taken
/// branches it cost.
///
/// Each thread's call stack is derived from its branches. Cases other than a plain call and return:
/// - A return goes to the innermost frame that called from just before its target; the frames above
///   it are removed. A return without a matching call is counted as unmatched. At the bottom it
///   shows that the trace began inside a call.
/// - A jump to the beginning of another function is a tail call, which replaces the jumping
///   function.
/// - A jump (or an unmatched return) into the middle of a function on the stack, such as longjmp's,
///   removes all frames that were called since.
/// - Recursion is collapsed: a function that is called again below itself is the same node.
/// The work is bounded: the tree has at most 1,000 levels, and calls below them count as the last
/// one's. The caller is searched among the innermost 1,000 frames.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "branch_trace.hpp"

namespace branches {

struct call_node {
    function_id function = 0;  ///< 0: unknown; for the root: none
    std::size_t parent = 0;
    std::size_t depth = 0;              ///< for the root: 0
    std::vector<std::size_t> children;  ///< the most expensive ones first
    std::uint64_t calls = 0;            ///< including tail calls and, for a handler, signals
    std::uint64_t self = 0;             ///< branches taken in the function itself
    std::uint64_t inclusive = 0;        ///< and in all that it called
};

struct call_tree {
    std::vector<call_node> nodes;  ///< the first one is the root; each parent precedes its children
    std::uint64_t calls = 0, returns = 0;
    std::uint64_t tail_calls = 0;
    std::uint64_t unmatched = 0;  ///< returns without a matching call on the stack
    std::uint64_t unwound = 0;    ///< frames left without a return
};

[[nodiscard]] call_tree follow_calls(std::span<const branch> branches, code& of);

}  // namespace branches
