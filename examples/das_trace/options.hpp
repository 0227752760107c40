// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The command line of das_trace.

#include <cstdint>
#include <span>
#include <string>

namespace das_example {

struct options {
    std::uint32_t instructions = 10, entries = 4;
    bool gate_open = true, is_protected = false, exceptions = false;
    std::string image;  ///< a file for guest storage; empty: none
};

/// Returns true to continue, or false to exit with `status`: the help or an error was printed.
[[nodiscard]] bool parse(std::span<char* const> arguments, options& into, int& status);

}  // namespace das_example
