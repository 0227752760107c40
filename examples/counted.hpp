// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file Counts in messages: `1 record`, `2 records`.

#include <cstdint>
#include <string>

/// `one` and `several` are the words for a count of one and for any other.
[[nodiscard]] inline std::string counted(std::uint64_t count, const char* one,
                                         const char* several) {
    return std::to_string(count) + ' ' + (count == 1 ? one : several);
}
