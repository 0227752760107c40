// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Keeps the newest records: the oldest are overwritten, read or not. Never waits.

#include <trace_ring/policy/full/full.hpp>

namespace trace_ring::inline v1::full {

/// The newest records replace the oldest.
struct overwrite_oldest {
    using family = trace_ring::family::full;
    static constexpr bool overwrites = true;
    static constexpr bool waits = false;
    static constexpr bool grows = false;
    static constexpr bool stops = false;

    [[nodiscard]] static constexpr answer when_full(room&) noexcept { return answer::overwrite; }
};
static_assert(policy<overwrite_oldest>);

}  // namespace trace_ring::inline v1::full
