// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// trace-reduce as its users run it.

#include <sys/wait.h>

#include <cstdlib>
#include <string>
#include <vector>

#include <reduce/scratch_file.hpp>

namespace trace_ring_test {

struct reduced {
    int status = 0;
    std::string output;
    std::string errors;
};

/// Times are in UTC. No argument has a ' in it.
[[nodiscard]] inline reduced run_trace_reduce(const std::vector<std::string>& arguments) {
    const scratch_file out;
    const scratch_file err;
    std::string command = "TZ=UTC0 '" TRACE_REDUCE "'";
    for (const auto& each : arguments) command += " '" + each + "'";
    const int status = std::system((command + " >" + out.path() + " 2>" + err.path()).c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 1000, out.read(), err.read()};
}

}  // namespace trace_ring_test
