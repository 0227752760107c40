// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The live bytes of processes over time, as a picture: one SVG file that needs nothing else.

#include <cstdint>
#include <string>
#include <vector>

#include "timeline.hpp"

namespace heap {

struct curve {
    std::string name;
    const timeline* values = nullptr;  ///< times in nanoseconds since 1970
    std::uint64_t end = 0;             ///< the process's last record
    std::uint64_t peak = 0;
    std::uint64_t peak_time = 0;
};

/// Curves of one time axis, the highest in front of nothing: drawn from high to low.
[[nodiscard]] std::string draw(const std::string& title, std::vector<curve> curves);

}  // namespace heap
