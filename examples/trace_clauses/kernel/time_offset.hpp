// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The difference between CLOCK_MONOTONIC in this process's time namespace and the kernel's own,
/// which BPF programs read.
/// @code
///   const std::int64_t ahead = monotonic_offset();  // ns; 0 outside of containers
/// @endcode
/// Source: time_namespaces(7).

#include <sys/stat.h>

#include <cstdint>
#include <fstream>
#include <stdexcept>
#include <string>

namespace trace_clauses {

/// Throws std::runtime_error, with a one-sentence reason, if the system does not provide the
/// offset.
[[nodiscard]] inline std::int64_t monotonic_offset() {
    constexpr ::ino_t first = 0xEFFFFFFA;
    struct stat own {
    }, of_children{};
    // A kernel without time namespaces has only one time.
    if (::stat("/proc/self/ns/time", &own) != 0 || own.st_ino == first) return 0;
    if (::stat("/proc/self/ns/time_for_children", &of_children) != 0 ||
        own.st_ino != of_children.st_ino) {
        throw std::runtime_error(
            "the system reports times only for this process's children, which are in another "
            "time namespace: start trace-clauses in that one (unshare --time --fork)");
    }
    std::ifstream in("/proc/self/timens_offsets");
    std::string clock;
    std::int64_t seconds = 0;
    std::int64_t ns = 0;
    while (in >> clock >> seconds >> ns) {
        if (clock == "monotonic") return seconds * 1'000'000'000 + ns;
    }
    throw std::runtime_error(
        "/proc/self/timens_offsets does not give the offsets of this time namespace");
}

}  // namespace trace_clauses
