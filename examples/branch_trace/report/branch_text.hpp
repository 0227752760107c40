// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file The reports on a branch trace, as text.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "branch_trace.hpp"

namespace branches {

enum class view { last, edges, calls, blocks, coverage };

struct question {
    view what = view::last;
    std::string function;                ///< for coverage
    std::size_t rows = 20;               ///< maximum, in each table
    std::vector<std::uint32_t> threads;  ///< only these; empty: all
};

/// "last", "edges", "calls", "blocks", "coverage=FUNCTION". Returns false for other texts.
[[nodiscard]] bool parse_view(std::string_view text, question& into);

struct answer {
    std::string text;
    std::vector<damage> damages;  ///< of the file
};

/// Reads the trace and answers. Throws like read_branches.
[[nodiscard]] answer ask(const std::string& path, const question& what);

}  // namespace branches
