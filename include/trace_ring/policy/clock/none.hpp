// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// No clock: records have no time.

#include <cstdint>

#include <trace_ring/policy/clock/clock.hpp>

namespace trace_ring::inline v1::clock {

struct none {
    using family = trace_ring::family::clock;
    static constexpr std::uint32_t kind = static_cast<std::uint32_t>(clock_kind::none);

    [[nodiscard]] static constexpr std::uint64_t now() noexcept { return 0; }
    [[nodiscard]] static constexpr bool usable() noexcept { return true; }
    [[nodiscard]] static constexpr double ticks_per_second() noexcept { return 0; }
};
static_assert(policy<none>);

}  // namespace trace_ring::inline v1::clock
