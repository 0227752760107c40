// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The clock family: where a record's time comes from.
///
/// | expression              | result          | meaning                                          |
/// |-------------------------|-----------------|--------------------------------------------------|
/// | `C::family`             | `family::clock` |                                                  |
/// | `C::kind`               | `std::uint32_t` | constant: a `clock_kind`, as files store it      |
/// | `C::now()`              | `std::uint64_t` | ticks; if `usable()`, never goes back on one     |
/// |                         |                 | thread; no lock, no allocation, signal-safe      |
/// | `C::usable()`           | `bool`          | on this machine ticks are steady and agree       |
/// |                         |                 | between processors. Asked at set-up; signal-safe |
/// | `C::ticks_per_second()` | `double`        | an estimate, good enough to show a time and to   |
/// |                         |                 | bridge two snapshots; 0 if ticks mean nothing    |
///
/// The smallest valid model is clock::none. It is not weaker: without `usable` a trace could not
/// fall back to another clock, and without `kind` its reader would not know that it did. It is not
/// stronger: ticks need not be nanoseconds nor begin at a known time; snapshots give their value
/// (snapshot.hpp).

#include <concepts>
#include <cstdint>
#include <type_traits>

#include <trace_ring/policies.hpp>
#include <trace_ring/policy/clock/kind.hpp>  // IWYU pragma: export

namespace trace_ring::inline v1 {

namespace clock {

template <class C>
concept policy = in_family<C, trace_ring::family::clock> && requires {
    { C::kind } -> std::convertible_to<std::uint32_t>;
    { C::now() }
    noexcept->std::same_as<std::uint64_t>;
    { C::usable() }
    noexcept->std::same_as<bool>;
    { C::ticks_per_second() }
    noexcept->std::same_as<double>;
    typename std::integral_constant<std::uint32_t, C::kind>;
};

}  // namespace clock
}  // namespace trace_ring::inline v1
