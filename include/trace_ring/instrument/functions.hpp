// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The hooks of `-finstrument-functions` (gcc, clang) and `-finstrument-functions-after-inlining`
/// (clang): they record where functions begin and end, and their callers. Include this header in
/// one source file of a program, and compile that file without these flags. reference_trace.hpp
/// documents what is traced, and the trace file.

#include <trace_ring/fwd.hpp>

#if __cplusplus >= 202002L

#include <trace_ring/instrument/references.hpp>
#include <trace_ring/instrument/trace_reference.hpp>

// NOLINTBEGIN(bugprone-reserved-identifier): compilers call them by these names
extern "C" {

[[gnu::used, gnu::visibility("default")]] inline void __cyg_profile_func_enter(
    void*, void* caller) noexcept {
    using namespace trace_ring;
    instrument::trace_reference<reference_kind::enter>(caller, __builtin_return_address(0));
}
[[gnu::used, gnu::visibility("default")]] inline void __cyg_profile_func_exit(
    void*, void* caller) noexcept {
    using namespace trace_ring;
    instrument::trace_reference<reference_kind::exit>(caller, __builtin_return_address(0));
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier)

#endif
