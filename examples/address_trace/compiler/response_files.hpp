// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Arguments that builds pass in files, because a command can only be so long.

#include <span>
#include <string>
#include <vector>

namespace address_trace {

/// The arguments with the contents of each `@file` in its place, as GNU's programs and clang read
/// them. A file that cannot be read stays what it is.
[[nodiscard]] std::vector<std::string> expand_response_files(
    std::span<const std::string> arguments);

}  // namespace address_trace
