// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The hooks of `clang -fsanitize-coverage=bb,trace-pc,trace-loads,trace-stores`: each block that
/// is entered, each load, and each store. To be included by one source file of a program, which is
/// compiled without these flags; reference_trace.hpp says what is traced, and where to.

#include <trace_ring/fwd.hpp>

#if __cplusplus >= 202002L

#include <cstdint>

#include <trace_ring/instrument/trace_reference.hpp>
#include <trace_ring/record/event/references.hpp>

namespace trace_ring::inline v1::instrument::impl {

template <reference_kind Kind, unsigned Size>
[[gnu::always_inline]] inline void trace_access(const void* address, const void* site) noexcept {
    trace_reference<v1::impl::reference_code(Kind, Size)>(reinterpret_cast<std::uintptr_t>(address),
                                                          site);
}

}  // namespace trace_ring::inline v1::instrument::impl

// NOLINTBEGIN(bugprone-reserved-identifier): compilers call them by these names
extern "C" {

#define TRACE_RING_ACCESS_HOOKS(bytes)                                                             \
    [[gnu::used, gnu::visibility("default")]] inline void __sanitizer_cov_load##bytes(             \
        const void* address) noexcept {                                                            \
        using namespace trace_ring;                                                                \
        instrument::impl::trace_access<reference_kind::load, bytes>(address,                       \
                                                                    __builtin_return_address(0));  \
    }                                                                                              \
    [[gnu::used, gnu::visibility("default")]] inline void __sanitizer_cov_store##bytes(            \
        const void* address) noexcept {                                                            \
        using namespace trace_ring;                                                                \
        instrument::impl::trace_access<reference_kind::store, bytes>(address,                      \
                                                                     __builtin_return_address(0)); \
    }

TRACE_RING_ACCESS_HOOKS(1)
TRACE_RING_ACCESS_HOOKS(2)
TRACE_RING_ACCESS_HOOKS(4)
TRACE_RING_ACCESS_HOOKS(8)
TRACE_RING_ACCESS_HOOKS(16)
#undef TRACE_RING_ACCESS_HOOKS

[[gnu::used, gnu::visibility("default")]] inline void __sanitizer_cov_trace_pc() noexcept {
    using namespace trace_ring;
    const void* const site = __builtin_return_address(0);
    instrument::trace_reference<impl::reference_code(reference_kind::block)>(
        reinterpret_cast<std::uintptr_t>(site), site);
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier)

#endif
