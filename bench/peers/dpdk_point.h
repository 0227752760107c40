// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The trace point of dpdk.cpp: declared where it is used, and again where it is registered
/// (dpdk_point.cpp), with another meaning of the same words.

#include <rte_trace_point.h>

#if defined(__cplusplus)
extern "C" {
#endif
RTE_TRACE_POINT(bench_sample, RTE_TRACE_POINT_ARGS(uint64_t first, uint64_t second),
                rte_trace_point_emit_u64(first);
                rte_trace_point_emit_u64(second);)
#if defined(__cplusplus)
}
#endif
