// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// The trace point of lttng_ust.cpp, as LTTng wants it: read several times.

#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER bench

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./lttng_ust_point.h"

#if !defined(BENCH_PEERS_LTTNG_UST_POINT_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define BENCH_PEERS_LTTNG_UST_POINT_H

#include <stdint.h>

#include <lttng/tracepoint.h>

// clang-format off
LTTNG_UST_TRACEPOINT_EVENT(
    bench, sample,
    LTTNG_UST_TP_ARGS(uint64_t, first, uint64_t, second),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint64_t, first, first)
                        lttng_ust_field_integer(uint64_t, second, second)))
// clang-format on

#endif

#include <lttng/tracepoint-event.h>
