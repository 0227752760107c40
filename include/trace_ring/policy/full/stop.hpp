// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// One shot: the first record without room ends recording until ring::restart(). So the records
/// that led up to a moment stay complete, without gaps. Later records are refused and counted.

#include <trace_ring/policy/full/full.hpp>

namespace trace_ring::inline v1::full {

/// The first writer that finds no room closes the gate.
struct stop {
    using family = trace_ring::family::full;
    static constexpr bool overwrites = false;
    static constexpr bool waits = false;
    static constexpr bool grows = false;
    static constexpr bool stops = true;

    [[nodiscard]] static constexpr answer when_full(room&) noexcept { return answer::stop; }
};
static_assert(policy<stop>);

}  // namespace trace_ring::inline v1::full
