// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// No clock: records have no time.

#include <cstdint>

#include <trace_ring/policy/clock/clock.hpp>

namespace trace_ring::inline v1::clock {

/// No clock: records are ordered by their positions.
struct none {
    using family = trace_ring::family::clock;
    /// As the trace's header has it.
    static constexpr std::uint32_t kind = static_cast<std::uint32_t>(clock_kind::none);

    [[nodiscard]] static constexpr std::uint64_t now() noexcept { return 0; }  ///< zero
    [[nodiscard]] static constexpr bool usable() noexcept { return true; }     ///< always
    /// Zero: there are no ticks.
    [[nodiscard]] static constexpr double ticks_per_second() noexcept { return 0; }
};
static_assert(policy<none>);

}  // namespace trace_ring::inline v1::clock
