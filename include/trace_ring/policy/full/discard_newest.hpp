// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Keeps records until they are consumed: a record without room is refused and counted. Recording
/// continues when the consumer has made room.

#include <trace_ring/policy/full/full.hpp>

namespace trace_ring::inline v1::full {

/// A writer that finds no room is refused, and counted.
struct discard_newest {
    using family = trace_ring::family::full;
    static constexpr bool overwrites = false;
    static constexpr bool waits = false;
    static constexpr bool grows = false;
    static constexpr bool stops = false;

    [[nodiscard]] static constexpr answer when_full(room&) noexcept { return answer::refuse; }
};
static_assert(policy<discard_newest>);

}  // namespace trace_ring::inline v1::full
