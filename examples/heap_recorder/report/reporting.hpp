// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file The report on heap traces that heap-report and heap-record print.

#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <string>
#include <vector>

#include "profile.hpp"

namespace heap {

struct report_options {
    std::vector<std::string> files;
    std::vector<std::uint32_t> pids;  ///< of these processes only; empty: of all
    std::string svg;                  ///< a picture's file; empty: none
    std::size_t top = 10;
    std::size_t processes = 5;
    double short_life_ms = 1;
    bool calls = false;
    std::string colour = "auto";
};

/// Adds the options that select a report's contents.
void add_report_options(CLI::App& app, report_options& into);

/// What was read, and how that went.
struct report_outcome {
    std::deque<file_profile> files;
    bool is_bad_input =
        false;  ///< a file is missing, damaged or no heap trace; it is complained of
    bool has_processes = false;
};

/// Reads the files and writes the report to `out` (null: none), and the picture if one is wanted.
/// `program` is whose complaints these are. Throws std::runtime_error if the output cannot be
/// written.
[[nodiscard]] report_outcome report_on(const report_options& wanted, const char* program,
                                       std::FILE* out);

}  // namespace heap
