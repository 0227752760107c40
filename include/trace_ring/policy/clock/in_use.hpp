// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A clock with its fall-back: the given clock if it is usable on this machine, else
/// CLOCK_MONOTONIC. A trace names its clock by `kind()`.

#include <cstdint>

#include <trace_ring/policy/clock/clock.hpp>
#include <trace_ring/policy/clock/monotonic.hpp>
#include <trace_ring/policy/clock/snapshot.hpp>

namespace trace_ring::inline v1::clock {

/// Clock `C` or, if it is not usable on this machine, the monotonic clock.
template <policy C>
struct in_use {
    /// One predictable branch more than `C::now()`.
    [[nodiscard]] static std::uint64_t now() noexcept {
        return C::usable() ? C::now() : monotonic::now();
    }
    /// As the trace's header has it.
    [[nodiscard]] static clock_kind kind() noexcept {
        return static_cast<clock_kind>(C::usable() ? C::kind : monotonic::kind);
    }
    /// An estimate.
    [[nodiscard]] static double ticks_per_second() noexcept {
        return C::usable() ? C::ticks_per_second() : monotonic::ticks_per_second();
    }
    /// The three clocks, read together.
    [[nodiscard]] static clock_snapshot snapshot() noexcept {
        return C::usable() ? take_snapshot<C>() : take_snapshot<monotonic>();
    }
};

}  // namespace trace_ring::inline v1::clock
