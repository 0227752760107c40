// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The hooks of the compiler pass of `address-trace cc`: called for each block at its start, and
/// for each reference to memory before it is made. Include this header in one source file of a
/// program, and compile that file without the pass. reference_trace.hpp documents what is traced,
/// and the trace file.
///
/// | hook | called for |
/// |---|---|
/// | `load1` to `load64`, `store1` to `store64` | an access of this many bytes, a power of two |
/// | `update1` to `update16` | an atomic read-modify-write |
/// | `compare1` to `compare16` | after a compare-and-exchange: whether it stored |
/// | `load_range`, `store_range`, `update_range` | any other size, and copies |
/// | `load_lanes`, `store_lanes` | the active lanes of a vector in a row |
/// | `gather`, `scatter` | the active lanes, each at its own address |
/// | `block` | the beginning of a block |
/// | `allocated` | after an allocator was called: its result, and the number of bytes |
/// | `loaded` | a constructor of each object, before its others |
/// | `unseen` | an instruction whose references the pass does not know |

#include <trace_ring/fwd.hpp>

#if __cplusplus >= 202002L

#include <cstddef>
#include <cstdint>

#include <trace_ring/instrument/references.hpp>
#include <trace_ring/instrument/trace_reference.hpp>

namespace trace_ring::inline v1::instrument::impl {

/// Traces each lane whose bit in `active` is set, the lowest first.
template <reference_kind Kind, class AddressOf>
inline void trace_lanes(AddressOf address_of, std::uint64_t active, std::size_t bytes,
                        const void* site) noexcept {
    for (; active != 0; active &= active - 1)
        trace_range<Kind>(address_of(static_cast<unsigned>(__builtin_ctzll(active))), bytes, site);
}
template <reference_kind Kind>
inline void trace_row(const void* address, std::uint64_t active, std::size_t bytes,
                      const void* site) noexcept {
    const auto* const first = static_cast<const char*>(address);
    trace_lanes<Kind>([=](unsigned lane) { return first + lane * bytes; }, active, bytes, site);
}
template <reference_kind Kind>
inline void trace_each(const void* const* addresses, std::uint64_t active, std::size_t bytes,
                       const void* site) noexcept {
    trace_lanes<Kind>([=](unsigned lane) { return addresses[lane]; }, active, bytes, site);
}

}  // namespace trace_ring::inline v1::instrument::impl

// NOLINTBEGIN(bugprone-reserved-identifier): so that no program has these names
extern "C" {

#define TRACE_RING_HOOK [[gnu::used, gnu::visibility("default")]] inline void

#define TRACE_RING_ACCESS_HOOK(kind, bytes)                                                    \
    TRACE_RING_HOOK __trace_ring_##kind##bytes(const void* address) noexcept {                 \
        using namespace trace_ring;                                                            \
        instrument::trace_reference<reference_kind::kind, bytes>(address,                      \
                                                                 __builtin_return_address(0)); \
    }
#define TRACE_RING_COMPARE_HOOK(bytes)                                                        \
    TRACE_RING_HOOK __trace_ring_compare##bytes(const void* address,                          \
                                                std::size_t stored) noexcept {                \
        using namespace trace_ring;                                                           \
        const void* const site = __builtin_return_address(0);                                 \
        if (stored != 0)                                                                      \
            return instrument::trace_reference<reference_kind::update, bytes>(address, site); \
        instrument::trace_reference<reference_kind::failed_compare, bytes>(address, site);    \
    }
#define TRACE_RING_RANGE_HOOK(kind)                                                                \
    TRACE_RING_HOOK __trace_ring_##kind##_range(const void* address, std::size_t bytes) noexcept { \
        using namespace trace_ring;                                                                \
        instrument::trace_range<reference_kind::kind>(address, bytes,                              \
                                                      __builtin_return_address(0));                \
    }
#define TRACE_RING_LANES_HOOK(kind)                                                        \
    TRACE_RING_HOOK __trace_ring_##kind##_lanes(const void* address, std::uint64_t active, \
                                                std::size_t bytes) noexcept {              \
        using namespace trace_ring;                                                        \
        instrument::impl::trace_row<reference_kind::kind>(address, active, bytes,          \
                                                          __builtin_return_address(0));    \
    }
#define TRACE_RING_GATHER_HOOK(name, kind)                                                  \
    TRACE_RING_HOOK __trace_ring_##name(const void* const* addresses, std::uint64_t active, \
                                        std::size_t bytes) noexcept {                       \
        using namespace trace_ring;                                                         \
        instrument::impl::trace_each<reference_kind::kind>(addresses, active, bytes,        \
                                                           __builtin_return_address(0));    \
    }

TRACE_RING_ACCESS_HOOK(load, 1)
TRACE_RING_ACCESS_HOOK(load, 2)
TRACE_RING_ACCESS_HOOK(load, 4)
TRACE_RING_ACCESS_HOOK(load, 8)
TRACE_RING_ACCESS_HOOK(load, 16)
TRACE_RING_ACCESS_HOOK(load, 32)
TRACE_RING_ACCESS_HOOK(load, 64)
TRACE_RING_ACCESS_HOOK(store, 1)
TRACE_RING_ACCESS_HOOK(store, 2)
TRACE_RING_ACCESS_HOOK(store, 4)
TRACE_RING_ACCESS_HOOK(store, 8)
TRACE_RING_ACCESS_HOOK(store, 16)
TRACE_RING_ACCESS_HOOK(store, 32)
TRACE_RING_ACCESS_HOOK(store, 64)
TRACE_RING_ACCESS_HOOK(update, 1)
TRACE_RING_ACCESS_HOOK(update, 2)
TRACE_RING_ACCESS_HOOK(update, 4)
TRACE_RING_ACCESS_HOOK(update, 8)
TRACE_RING_ACCESS_HOOK(update, 16)
TRACE_RING_COMPARE_HOOK(1)
TRACE_RING_COMPARE_HOOK(2)
TRACE_RING_COMPARE_HOOK(4)
TRACE_RING_COMPARE_HOOK(8)
TRACE_RING_COMPARE_HOOK(16)
TRACE_RING_RANGE_HOOK(load)
TRACE_RING_RANGE_HOOK(store)
TRACE_RING_RANGE_HOOK(update)
TRACE_RING_LANES_HOOK(load)
TRACE_RING_LANES_HOOK(store)
TRACE_RING_GATHER_HOOK(gather, load)
TRACE_RING_GATHER_HOOK(scatter, store)

TRACE_RING_HOOK __trace_ring_block() noexcept {
    using namespace trace_ring;
    if (instrument::impl::current->skips_blocks) return;
    const void* const site = __builtin_return_address(0);
    instrument::trace_reference<reference_kind::block>(site, site);
}
TRACE_RING_HOOK __trace_ring_allocated(const void* address, std::size_t bytes) noexcept {
    using namespace trace_ring;
    if (address == nullptr) return;
    instrument::trace_range<reference_kind::allocation>(address, bytes,
                                                        __builtin_return_address(0));
}
TRACE_RING_HOOK __trace_ring_loaded() noexcept {
    trace_ring::instrument::the_trace.note_loaded();
}
TRACE_RING_HOOK __trace_ring_unseen() noexcept {
    trace_ring::instrument::the_trace.count_unseen();
}

#undef TRACE_RING_HOOK
#undef TRACE_RING_ACCESS_HOOK
#undef TRACE_RING_COMPARE_HOOK
#undef TRACE_RING_RANGE_HOOK
#undef TRACE_RING_LANES_HOOK
#undef TRACE_RING_GATHER_HOOK

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier)

#endif
