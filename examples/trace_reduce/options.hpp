// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What trace-reduce is asked to do.

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <trace_ring/exporter/text.hpp>

namespace trace_reduce {

enum class output_format { text, json };
enum class colouring { automatic, always, never };

struct options {
    std::vector<std::string> files;
    bool backward = false;
    std::uint64_t limit = std::numeric_limits<std::uint64_t>::max();
    std::vector<std::string> events;
    std::vector<std::uint32_t> threads;
    bool statistics = false;
    bool follow = false;
    bool until_closed = false;
    output_format format = output_format::text;
    std::string output;
    trace_ring::exporter::time_format time = trace_ring::exporter::time_format::local;
    colouring colour = colouring::automatic;
};

/// True: go on. False: exit with `status`; all that was to be said has been.
[[nodiscard]] bool parse(int argc, char** argv, options& into, int& status);

}  // namespace trace_reduce
