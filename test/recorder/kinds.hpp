// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The two kinds of recorder, for tests of what both do alike.

#include <tuple>

#include <trace_ring/policy/claim/per_cpu.hpp>
#include <trace_ring/recorder/cpu/recorder.hpp>
#include <trace_ring/recorder/recorder.hpp>

namespace test {

struct by_thread {
    using clock = trace_ring::clock::tsc;
};
struct by_cpu {
    using clock = trace_ring::clock::tsc;
    using claim = trace_ring::claim::per_cpu;
};
using kinds = std::tuple<by_thread, by_cpu>;

}  // namespace test
