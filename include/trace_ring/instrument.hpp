// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Traces what compilers instrument: functions, blocks, loads and stores. For one source file of a
/// program, which is compiled without the flags that the others are compiled with.

#include <trace_ring/fwd.hpp>

#if __cplusplus >= 202002L

// the hooks
#include <trace_ring/instrument/functions.hpp>
#include <trace_ring/instrument/memory.hpp>

// for a program that reads such traces
#include <trace_ring/instrument/reference_packing.hpp>

// for whoever runs such programs
#include <trace_ring/instrument/table_file.hpp>

#endif
