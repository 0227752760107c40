// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file address-trace.o: linked with a program by `address-trace cc`, so that it is traced.

#include <trace_ring/instrument/functions.hpp>
#include <trace_ring/instrument/memory.hpp>
