// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// CLOCK_MONOTONIC in nanoseconds: slower than the time stamp counter, but correct on every
/// machine.

#include <time.h>

#include <cstdint>

#include <trace_ring/policy/clock/clock.hpp>
#include <trace_ring/policy/clock/system.hpp>

namespace trace_ring::inline v1::clock {

/// CLOCK_MONOTONIC, in nanoseconds: slower than the processor's counter, and on every machine.
struct monotonic {
    using family = trace_ring::family::clock;
    /// As the trace's header has it.
    static constexpr std::uint32_t kind = static_cast<std::uint32_t>(clock_kind::monotonic);

    /// Nanoseconds since the machine was started.
    [[nodiscard]] static std::uint64_t now() noexcept { return impl::system_ns(CLOCK_MONOTONIC); }
    [[nodiscard]] static constexpr bool usable() noexcept { return true; }  ///< always
    /// Nanoseconds.
    [[nodiscard]] static constexpr double ticks_per_second() noexcept { return 1e9; }
};
static_assert(policy<monotonic>);

}  // namespace trace_ring::inline v1::clock
