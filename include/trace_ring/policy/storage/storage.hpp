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
/// | `s.fresh()` | `bool`            | they were all zero at set-up; false: they hold a ring to |
/// |             |                   | attach to                                                |
///
/// All of them are noexcept. A storage has its own constructors: the ring forwards its arguments to
/// them, and they throw `setup_error` (or std::bad_alloc) if there are no bytes.
/// Refinements:
///
/// | expression     | result          | meaning                                                   |
/// |----------------|-----------------|-----------------------------------------------------------|
/// | `S::extent`    | `std::uint64_t` | *fixed*: the constant value of `size()`, so the number of |
/// |                |                 | slots is a constant; such a storage is                    |
/// |                |                 | constant-initialised                                      |
/// | `s.limit()`    | `std::uint64_t` | *growable*: the most bytes, all mapped at `data()`        |
/// | `s.grow(n)`    | `bool`          | *growable*: `size()` is at least `n` now. Noexcept,       |
/// |                |                 | signal-safe, any number of concurrent writers; false:    |
/// |                |                 | cannot grow so far                                        |
/// | `s.own(alone)` |                 | *shared*: this process writes from now on, if `alone` as  |
/// |                |                 | the only one; throws setup_error if another process       |
/// |                |                 | prevents that                                             |
/// | `s.name()`     | `std::string`   | *shared*: its name in messages                            |
///
/// A *shared* storage also has `s.reach(n)`, which maps at least `n` bytes or throws setup_error,
/// and `s.reads_only()`: this process does not write records; noexcept.
///
/// The smallest valid model is storage::inline_bytes. It is not weaker: without `fresh` a second
/// process could not attach.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include <trace_ring/policies.hpp>

namespace trace_ring::inline v1::storage {

/// Bytes of a ring's control, in front of its records (ring/policies/control.hpp).
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
