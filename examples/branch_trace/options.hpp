// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file The options of branch-trace.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "../launching/exit_status.hpp"

namespace branch_trace {

enum class source { automatic, bts, step };

using launching::failed;

struct options {
    source from = source::automatic;
    std::size_t buffer = std::size_t{64} << 10;      ///< size of each thread's store, in bytes
    std::uint64_t threshold = 0;                     ///< records; 0: when the buffer is half full
    std::size_t aux = std::size_t{4} << 20;          ///< size of the kernel's AUX area, in bytes,
                                                     ///< for bts
    std::uint32_t aux_watermark = 0;                 ///< bytes; 0: half of the area
    std::size_t aux_events = std::size_t{64} << 10;  ///< size of the ring of its events, in bytes
    std::string output = "branch.trace";
    std::uint64_t size = std::uint64_t{64} << 20;  ///< size of the trace
    bool follow_forks = false;
    bool quiet = false;
    std::vector<std::string> command;
};

/// Returns false if the program is to end with `status`; all messages have been printed.
[[nodiscard]] bool parse(int argc, char** argv, options& into, int& status);

}  // namespace branch_trace
