// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file Arguments that builds pass in files, because commands have a limited length.

#include <span>
#include <string>
#include <vector>

namespace address_trace {

/// Replaces each `@file` by the contents of the file, as GNU's programs and clang do. The argument
/// of a file that cannot be read remains unchanged.
[[nodiscard]] std::vector<std::string> expand_response_files(
    std::span<const std::string> arguments);

}  // namespace address_trace
