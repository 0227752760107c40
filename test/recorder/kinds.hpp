// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The two kinds of recorder, for tests of their common behaviour, and options that several use.

#include <cstdint>
#include <string>
#include <tuple>

#include <trace_ring/policy/claim/per_cpu.hpp>
#include <trace_ring/recorder/cpu/recorder.hpp>
#include <trace_ring/recorder/file/options.hpp>
#include <trace_ring/recorder/recorder.hpp>

namespace test {

struct by_thread : trace_ring::policies<> {};
struct by_cpu : trace_ring::policies<trace_ring::claim::per_cpu> {};
using kinds = std::tuple<by_thread, by_cpu>;

/// A trace that is small, and grows by the least there is; empty: in memory.
[[nodiscard]] inline trace_ring::recorder_options growing(const std::string& file = {},
                                                          std::uint64_t sub_buffers = 100) {
    return {.file = file,
            .size = 8 * 512,
            .limit = sub_buffers * 512,
            .step = 512,
            .sub_buffer_bytes = 512,
            .full = trace_ring::full_mode::extend_then_discard};
}

}  // namespace test
