// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The ring grows by steps, up to the limit of its storage or until the system refuses more memory;
/// then it acts by a second policy. For a complete trace, or a long one that starts small. Growing
/// is a system call by the writer that reaches the end, and rare if steps are large.
/// @code
/// struct all : trace_ring::policies<
///                  trace_ring::full::extend<1 << 20, trace_ring::full::discard_newest>,
///                  trace_ring::storage::mapped> {};
/// trace_ring::ring<all> ring(1 << 20, 1 << 30);  // bytes at first, and at most
/// @endcode
/// Positions wrap only when the ring has stopped growing: until then position p lies in slot p - 1.

#include <cstdint>

#include <trace_ring/policy/full/full.hpp>

namespace trace_ring::inline v1::full {

/// `Step` is in bytes. `Then` is the policy at the limit: overwrite_oldest, discard_newest or stop.
template <std::uint64_t Step, policy Then>
struct extend {
    static_assert(Step > 0, "full::extend needs a step above zero");
    static_assert(!Then::grows, "full::extend cannot go on with another full::extend");

    using family = trace_ring::family::full;
    static constexpr bool overwrites = Then::overwrites;
    static constexpr bool waits = Then::waits;
    static constexpr bool grows = true;
    static constexpr bool stops = Then::stops;

    [[nodiscard]] static answer when_full(room& r) noexcept {
        return r.grow(Step) ? answer::retry : Then::when_full(r);
    }
};

}  // namespace trace_ring::inline v1::full
