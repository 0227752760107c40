// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What the hooks that compilers call (functions.hpp, memory.hpp) do for each reference.
/// @code
///  own = the thread's place                      // `nowhere` at first
///  limit = own.limit; own.limit = busy; signal fence
///  if own.end >= limit: cold path                // interrupted, full, or no place
///  if address is in the trace's own memory: count it instead
///  own.all[own.end] = the reference              // two stores
///  ++own.end; signal fence; own.limit = idle
/// @endcode
/// A signal handler that interrupts these steps finds its thread's place busy, and has another.

#include <cstdint>

#include <trace_ring/atomic.hpp>
#include <trace_ring/instrument/open_references.hpp>
#include <trace_ring/instrument/own_thread.hpp>
#include <trace_ring/instrument/reference_trace.hpp>

namespace trace_ring::inline v1::instrument {

namespace impl {

/// Adds a reference to a place that is busy, and leaves it idle.
template <unsigned Code>
[[gnu::always_inline]] inline void add(open_references& place, std::int32_t end,
                                       std::uint64_t address, const void* site) noexcept {
    const auto at = std::uint64_t{reinterpret_cast<std::uintptr_t>(site)};
    place.all[end] = {address, at << 4 | Code};
    // The fences order this for the thread's signal handlers, and for who comes after its end.
    signal_fence(seq_cst);
    place.now.end.store(end + 1, relaxed);  // relaxed, both: own thread's
    signal_fence(seq_cst);
    place.now.limit.store(open_references::idle, relaxed);
}

// A call at its end leaves all registers to the path that is taken nearly always.
template <unsigned Code>
[[gnu::noinline, gnu::cold]] void trace_slowly(std::uint64_t address, const void* site,
                                               open_references::head* own,
                                               std::int32_t limit) noexcept {
    open_references* place = open_references::of(own);
    if (own->end.load(relaxed) >= limit) {  // relaxed: own thread's
        place = the_trace.make_room(own, limit);
        if (place == nullptr) return;
    }
    if (address - place->own_begin < place->own_size && the_trace.suppresses(*place, address)) {
        place->now.limit.store(open_references::idle, relaxed);  // relaxed: as above
        return;
    }
    add<Code>(*place, place->now.end.load(relaxed), address, site);  // relaxed: as above
}

}  // namespace impl

/// Traces one reference of this thread. `Code` is reference_code's. Signal-safe; constant time but
/// for each few thousandth call, which records.
template <unsigned Code>
[[gnu::always_inline]] inline void trace_reference(std::uint64_t address,
                                                   const void* site) noexcept {
    open_references::head* const own = impl::own_place;
    // relaxed, all: own thread's; the fence orders them for its signal handlers
    const std::int32_t limit = own->limit.load(relaxed);
    own->limit.store(open_references::busy, relaxed);
    signal_fence(seq_cst);
    const std::int32_t end = own->end.load(relaxed);
    if (end >= limit) [[unlikely]]
        return impl::trace_slowly<Code>(address, site, own, limit);
    open_references& place = *open_references::of(own);
    if (address - place.own_begin < place.own_size) [[unlikely]]
        return impl::trace_slowly<Code>(address, site, own, limit);
    impl::add<Code>(place, end, address, site);
}

}  // namespace trace_ring::inline v1::instrument
