// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The command line of `address-trace run`.

#include <string>
#include <vector>

#include "session/traced_run.hpp"

namespace address_trace {

/// Where address-trace fails itself, as env(1) and nohup(1) do.
inline constexpr int failed = 125;

struct options {
    run_settings run{};
    std::vector<std::string> caches{};
    std::string untraced{};  ///< the program as it is without hooks; empty: it is not run
    bool quiet = false;
};

/// False: the program is to end with `status`.
[[nodiscard]] bool parse(int argc, char** argv, options& into, int& status);

}  // namespace address_trace
