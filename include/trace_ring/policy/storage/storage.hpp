// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The storage family: where a ring's bytes live.
///
/// | expression  | result            | meaning                                                  |
/// |-------------|-------------------|----------------------------------------------------------|
/// | `S::family` | `family::storage` |                                                          |
/// | `s.data()`  | `std::byte*`      | aligned to 64, the same as long as `s` lives             |
/// | `s.size()`  | `std::uint64_t`   | bytes at `data()` that may be used now: a ring's control |
/// |             |                   | (`storage::control_bytes`) and its records               |
/// | `s.fresh()` | `bool`            | they were all zero at set-up; false: a ring lies there   |
/// |             |                   | already, to be attached to                               |
///
/// All of them noexcept. Constructors are the storage's own: the ring forwards its arguments to
/// them, and they throw `setup_error` (or std::bad_alloc) where there is nothing to be had.
/// Refinements:
///
/// | expression     | result          | meaning                                                   |
/// |----------------|-----------------|-----------------------------------------------------------|
/// | `S::extent`    | `std::uint64_t` | *fixed*: the constant value of `size()`; the ring's slots |
/// |                |                 | are then counted by the compiler, and such a storage is   |
/// |                |                 | constant-initialised                                      |
/// | `s.limit()`    | `std::uint64_t` | *growable*: bytes it may come to, all mapped at `data()`  |
/// | `s.grow(n)`    | `bool`          | *growable*: `size()` is at least `n` now. Noexcept,       |
/// |                |                 | signal-safe, any number of writers at once; false: it is  |
/// |                |                 | not, and will not be                                      |
/// | `s.own(alone)` |                 | *shared*: this process writes from now on, alone if so    |
/// |                |                 | asked; throws setup_error if another process is in the    |
/// |                |                 | way                                                       |
/// | `s.name()`     | `std::string`   | *shared*: what messages call it                           |
///
/// The smallest valid model is storage::inline_bytes. It is not weaker: without `fresh` a second
/// process could not attach.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include <trace_ring/family.hpp>

namespace trace_ring::inline v1::storage {

/// What a ring keeps of its own, in front of its records: ring/policies/control.hpp says what.
inline constexpr std::uint64_t control_bytes = 448;

/// `data()` is a multiple of it.
inline constexpr std::size_t alignment = 64;

template <class S>
concept policy = in_family<S, trace_ring::family::storage> && requires(S& s, const S& c) {
    { s.data() }
    noexcept->std::same_as<std::byte*>;
    { c.size() }
    noexcept->std::same_as<std::uint64_t>;
    { c.fresh() }
    noexcept->std::same_as<bool>;
};

template <class S>
concept fixed = policy<S> && requires {
    typename std::integral_constant<std::uint64_t, S::extent>;
};

template <class S>
concept growable = policy<S> && requires(S& s, const S& c, std::uint64_t bytes) {
    { c.limit() }
    noexcept->std::same_as<std::uint64_t>;
    { s.grow(bytes) }
    noexcept->std::same_as<bool>;
};

template <class S>
concept shared = policy<S> && requires(S& s, const S& c) {
    s.reach(std::uint64_t{});
    s.own(true);
    { c.reads_only() }
    noexcept->std::same_as<bool>;
    { c.name() } -> std::same_as<std::string>;
};

}  // namespace trace_ring::inline v1::storage
