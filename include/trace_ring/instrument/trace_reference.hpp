// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The work of the hooks that compilers call (functions.hpp, memory.hpp), for each reference.
/// @code
///  own = the thread's place                      // `nowhere` at first
///  state = own.state
///  if state is not idle: cold path               // interrupted, or no place
///  own.state = an address in this frame; signal fence
///  ++place.calls
///  if place.end is the limit: cold path
///  place.all[place.end] = the reference          // two stores
///  ++place.end; signal fence; own.state = state
/// @endcode
/// A signal handler that interrupts these steps finds its thread's place busy, and has another. One
/// that never comes back, as it jumps away, leaves it busy; the next hook in a frame that cannot be
/// below the interrupted one takes it over (reference_trace.hpp).

#include <cstdint>

#include <trace_ring/atomic.hpp>
#include <trace_ring/instrument/open_references.hpp>
#include <trace_ring/instrument/own_thread.hpp>
#include <trace_ring/instrument/reference_trace.hpp>
#include <trace_ring/instrument/references.hpp>

namespace trace_ring::inline v1::instrument {

namespace impl {

[[gnu::noinline, gnu::cold]] inline void trace_slowly(std::uint64_t address, std::uint64_t what,
                                                      std::uint64_t size,
                                                      std::uintptr_t frame) noexcept {
    the_trace.add(address, what, size, frame);
}

/// Traces one reference of this thread, whose code is `code` if it needs no extension.
[[gnu::always_inline]] inline void trace(std::uint64_t address, const void* site, unsigned code,
                                         std::uint64_t size) noexcept {
    frame_mark here;  // only its address matters
    const std::uint64_t what = std::uint64_t{reinterpret_cast<std::uintptr_t>(site)} << 8 | code;
    own_place& own = *impl::current;
    // relaxed, to the end: used by the own thread; the fences order them for its signal handlers,
    // and for readers after its end
    const std::uintptr_t state = own.state.load(relaxed);
    const bool is_extended = (code & plain_reference::extended) == plain_reference::extended;
    if (!own_place::is_idle(state) || is_extended) [[unlikely]]
        return trace_slowly(address, what, size, here.address());
    own.state.store(here.address(), relaxed);
    signal_fence(seq_cst);
    // Not taken from `state`, which the previous hook has just stored: loading it would wait for
    // that store.
    open_references& place = *own.place;
    ++place.calls;
    const std::uint32_t end = place.end.load(relaxed);
    if (end >= place.limit) [[unlikely]] {
        --place.calls;
        own.state.store(state, relaxed);
        return trace_slowly(address, what, size, here.address());
    }
    place.all[end] = {address, what};
    signal_fence(seq_cst);
    place.end.store(end + 1, relaxed);
    signal_fence(seq_cst);
    own.state.store(own.idle_state(), relaxed);
}

}  // namespace impl

/// Traces one reference to data, or to code if `Size` is 0. Signal-safe; constant time, except for
/// one call in a few thousand, which records.
template <reference_kind Kind, std::uint32_t Size = 0>
[[gnu::always_inline]] inline void trace_reference(const void* address, const void* site) noexcept {
    impl::trace(reinterpret_cast<std::uintptr_t>(address), site, v1::impl::plain_code(Kind, Size),
                Size);
}
/// A reference whose size is known only at run time. A reference to more than 2 GiB is traced as
/// several.
template <reference_kind Kind>
inline void trace_range(const void* address, std::uint64_t bytes, const void* site) noexcept {
    constexpr std::uint64_t most = std::uint64_t{1} << 31;
    auto at = std::uint64_t{reinterpret_cast<std::uintptr_t>(address)};
    while (bytes != 0) {
        const std::uint64_t some = bytes < most ? bytes : most;
        impl::trace(at, site, v1::impl::plain_code(Kind, some), some);
        at += some;
        bytes -= some;
    }
}

}  // namespace trace_ring::inline v1::instrument
