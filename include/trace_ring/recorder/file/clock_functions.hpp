// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A clock policy as the cold path uses it: a table of functions, so that the cold path is compiled
/// once for all recorders.

#include <cstdint>

#include <trace_ring/clock_snapshot.hpp>
#include <trace_ring/policy/clock/clock.hpp>
#include <trace_ring/policy/clock/snapshot.hpp>

namespace trace_ring::inline v1::impl {

struct clock_functions {
    std::uint32_t kind;
    std::uint64_t (*now)() noexcept;
    bool (*usable)() noexcept;
    double (*ticks_per_second)() noexcept;
    clock_snapshot (*snapshot)() noexcept;
};
template <clock::policy Clock>
inline constexpr clock_functions functions_of{Clock::kind, &Clock::now, &Clock::usable,
                                              &Clock::ticks_per_second, &take_snapshot<Clock>};

}  // namespace trace_ring::inline v1::impl
