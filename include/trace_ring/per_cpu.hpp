// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The recorder with a lane for each processor instead of one for each thread.
/// @code
///   struct by_cpu : trace_ring::policies<trace_ring::claim::per_cpu> {};
///   trace_ring::basic_recorder<by_cpu> recorder{{.file = "orders.trace"}};
/// @endcode

#include <trace_ring/fwd.hpp>

#if __cplusplus >= 202002L

#include <trace_ring/policy/claim/per_cpu.hpp>
#include <trace_ring/recorder/cpu/recorder.hpp>

#endif
