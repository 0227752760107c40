// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Trace clauses, run for programs of 32 and 64 bits: byte code, and the layouts of C in both.

#include <trace_ring/fwd.hpp>

#if __cplusplus >= 202002L

// their parts
#include <trace_ring/point/c_types.hpp>
#include <trace_ring/point/clauses.hpp>
#include <trace_ring/point/expression.hpp>
#include <trace_ring/point/layout.hpp>
#include <trace_ring/point/machine/check.hpp>
#include <trace_ring/point/machine/code.hpp>
#include <trace_ring/point/machine/run.hpp>
#include <trace_ring/point/specification.hpp>
// what they capture
#include <trace_ring/recorder/other_thread.hpp>
#include <trace_ring/recorder/runtime_event.hpp>

#endif
