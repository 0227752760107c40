// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The report as text: tables that fit the terminal.

#include <cstddef>
#include <string>
#include <vector>

#include "profile.hpp"
#include "symbols.hpp"

namespace heap {

struct text_style {
    std::size_t width = 100;  ///< columns
    bool colour = false;
    std::size_t top = 10;  ///< rows in each table of call sites
    bool calls = false;    ///< also the calls by thread and function
};

/// One line a process.
[[nodiscard]] std::string overview(const std::vector<const process_profile*>& processes,
                                   const text_style& style);

/// All about one process.
[[nodiscard]] std::string report(process_profile& process, const stack_table& stacks,
                                 symbolizer& symbols, const text_style& style);

/// What a file lacks, beyond what its processes say; empty if nothing.
[[nodiscard]] std::string shortcomings(const file_profile& file, const text_style& style);

/// `text` in at most `width` columns: cut in the middle, as both its ends matter.
[[nodiscard]] std::string fitted(const std::string& text, std::size_t width);

}  // namespace heap
