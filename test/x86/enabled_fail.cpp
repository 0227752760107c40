// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// Without the flag, and on another processor, the debug store's headers say so.

#ifdef FAILS_without_the_flag  // expect-error: behind the flag TRACE_RING_ENABLE_X86_DS: define it
#undef TRACE_RING_ENABLE_X86_DS
#include <trace_ring/x86/enabled.hpp>
#endif
#ifdef PASSES_without_the_flag
#include <trace_ring/x86/enabled.hpp>
#endif

#ifdef FAILS_another_processor  // expect-error: debug store of x86 processors: this target is none
#undef __x86_64__
#undef __i386__
#include <trace_ring/x86/enabled.hpp>
#endif
#ifdef PASSES_another_processor
#include <trace_ring/x86/enabled.hpp>
#endif

#ifdef FAILS_another_without  // expect-error: debug store of x86 processors: this target is none
#undef __x86_64__
#undef __i386__
#undef TRACE_RING_ENABLE_X86_DS
#include <trace_ring/x86/enabled.hpp>
#endif
#ifdef PASSES_another_without
#include <trace_ring/x86/enabled.hpp>
#endif
