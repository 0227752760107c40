// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Included first by every header of x86/: these are there only with the flag, and only where the
/// processor is an x86.

#if !defined(__x86_64__) && !defined(__i386__)
#error "trace_ring/x86 is the debug store of x86 processors: this target is none"
#elif !defined(TRACE_RING_ENABLE_X86_DS)
#error \
    "trace_ring/x86 is behind the flag TRACE_RING_ENABLE_X86_DS: define it, or use the CMake option"
#endif
