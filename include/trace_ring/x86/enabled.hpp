// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Refuses to compile without the flag, and for processors that are not x86. Every header of x86/
/// includes it first.

#if !defined(__x86_64__) && !defined(__i386__)
#error "trace_ring/x86 is the debug store of x86 processors: this target is none"
#elif !defined(TRACE_RING_ENABLE_X86_DS)
#error \
    "trace_ring/x86 is behind the flag TRACE_RING_ENABLE_X86_DS: define it, or use the CMake option"
#endif
