// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The command line of trace-clauses.
/// @code
///   options wanted;
///   int status = 0;
///   if (!parse(argc, argv, wanted, status)) return status;
/// @endcode

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "../launching/exit_status.hpp"

namespace trace_clauses {

using launching::failed;

struct options {
    std::vector<std::string> clauses{};  ///< as text
    std::vector<std::string> scripts{};  ///< files
    std::string output{};                ///< the trace; empty: lines on the screen
    std::uint64_t size = std::uint64_t{64} << 20;
    std::uint64_t ring = std::uint64_t{32} << 20;
    enum class source : std::uint8_t { chosen, kernel, ptrace };
    source from = source::chosen;                  ///< where firings come from
    ::pid_t process = 0;                           ///< 0: none
    std::uint32_t stack = std::uint32_t{8} << 10;  ///< bytes copied to find callers; 0: none
    bool all = false;
    bool children = false;
    bool assume_abi = false;
    bool leave_out = false;
    double interval = 0;  ///< seconds; 0: at the end only
    std::string list{};
    bool dump = false;
    bool quiet = false;
    std::vector<std::string> command{};
};

/// False: the program is to end with `status`.
[[nodiscard]] bool parse(int argc, char** argv, options& into, int& status);

}  // namespace trace_clauses
