// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// One ring, of a kind that is a named list of policies:
/// @code
/// struct io_trace : trace_ring::policies<trace_ring::record::sequenced<step>,
///                                        trace_ring::claim::compare_exchange,
///                                        trace_ring::full::overwrite_oldest,
///                                        trace_ring::storage::inline_bytes<64 * 1024>> {};
/// inline trace_ring::ring<io_trace> io_ring;
///
/// if (auto slot = io_ring.try_reserve()) {  // empty: gate closed, or no room and it discards
///     *slot = {device, program};            // in place
///     slot.commit();                        // not committed: discarded, and the reader knows
/// }
/// @endcode
/// Members: table/table.hpp for records of one size, sub_buffers/ring.hpp for records of variable
/// length, policies/frame.hpp for both. A ring in static storage with storage::inline_bytes is
/// ready before any constructor has run; others take the storage's arguments and may throw.

#include <trace_ring/fwd.hpp>

#if __cplusplus >= 202002L

#include <type_traits>

#include <trace_ring/ring/policies.hpp>
#if defined(TRACE_RING_DISABLE)
#include <trace_ring/ring/disabled.hpp>
#else
#include <trace_ring/ring/sub_buffers/ring.hpp>
#include <trace_ring/ring/table/table.hpp>
#endif

namespace trace_ring::inline v1 {

namespace impl {
struct no_ring {};

/// The class that implements the ring of a kind.
template <class Kind>
[[nodiscard]] consteval auto ring_for() {
    if constexpr (!list_of_policies<Kind>) {
        return std::type_identity<no_ring>{};
    } else {
#if defined(TRACE_RING_DISABLE)
        return std::type_identity<disabled_ring<Kind>>{};
#else
        if constexpr (ring_policies<Kind>::record_policy::kind == record::layout::sub_buffers) {
            return std::type_identity<sub_buffer_ring<Kind>>{};
        } else {
            return std::type_identity<table_ring<Kind>>{};
        }
#endif
    }
}
}  // namespace impl

#if defined(TRACE_RING_DISABLE)
inline namespace disabled {
#endif
/// A ring of the policies that `Kind` lists: a table of records of one size, or sub-buffers.
template <class Kind>
class ring : public decltype(impl::ring_for<Kind>())::type {
    static_assert(list_of_policies<Kind>,
                  "trace_ring::ring: a kind of ring is a named list of policies: "
                  "struct my_trace : trace_ring::policies<...> {};");
    using base = typename decltype(impl::ring_for<Kind>())::type;

public:
    using base::base;
};
#if defined(TRACE_RING_DISABLE)
}
#endif

}  // namespace trace_ring::inline v1

#endif
