// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The ring grows, by steps, up to the limit of its storage or until the system has no more to
/// give; then it does what the user chose. For a complete trace, or a long one in a small start.
/// Growing is a system call by the writer that comes to the end, and rare if steps are large.
///
/// Records wrap only once the ring has stopped growing: until then position p lies in slot p - 1.

#include <cstdint>

#include <trace_ring/policy/full/full.hpp>

namespace trace_ring::inline v1::full {

/// `Step` in bytes. `Then` is what happens at the limit: overwrite_oldest, discard_newest or stop.
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
