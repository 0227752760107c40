// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The kinds of clocks, as files and rings name them.

#include <cstdint>

namespace trace_ring::inline v1 {

/// The clock that a trace's ticks are of. Values are part of the format.
enum class clock_kind : std::uint32_t {
    none = 0,           ///< no time at all
    tsc = 1,            ///< x86 time stamp counter
    monotonic = 2,      ///< CLOCK_MONOTONIC, nanoseconds
    generic_timer = 3,  ///< aarch64 CNTVCT_EL0
};

}  // namespace trace_ring::inline v1
