// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Reads a clock of the operating system.

#include <time.h>

#include <cstdint>

namespace trace_ring::inline v1::clock::impl {

/// Nanoseconds of a system clock; 0 where the system has no such clock.
[[nodiscard]] inline std::uint64_t system_ns(clockid_t id) noexcept {
    timespec t{};
    ::clock_gettime(id, &t);
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000U +
           static_cast<std::uint64_t>(t.tv_nsec);
}

}  // namespace trace_ring::inline v1::clock::impl
