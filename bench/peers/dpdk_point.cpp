// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Registers the trace point of dpdk.cpp.

#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wconversion"
#include <rte_trace_point_register.h>

#include "dpdk_point.h"

RTE_TRACE_POINT_REGISTER(bench_sample, bench.sample)
