// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Reads recorded events: trace files, live, dead or in a core dump, forward and backward;
/// filters and conditions, statistics, spans. Needs exceptions.
/// @code
///   const auto trace = trace_ring::reduce::trace_file::open("orders.trace");
///   for (auto cursor = trace.backward(); const auto* item = cursor.next();) use(*item);
/// @endcode

#include <trace_ring/fwd.hpp>

#if __cplusplus >= 202002L

// trace files, and cursors over them
#include <trace_ring/reduce/trace_file.hpp>

// choosing items
#include <trace_ring/reduce/filter.hpp>

// what items add up to
#include <trace_ring/reduce/span/pairs.hpp>
#include <trace_ring/reduce/statistics.hpp>

#endif
