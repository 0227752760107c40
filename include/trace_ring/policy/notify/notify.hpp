// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The notify family: how a reader is told that there is something to read.
///
/// | expression         | result           | meaning                                              |
/// |--------------------|------------------|------------------------------------------------------|
/// | `N::family`        | `family::notify` |                                                      |
/// | `N::watches`       | `bool`           | constant: false, and the ring never calls it         |
/// | `n.passed(l, at)`  |                  | a record was published or discarded, and the ring is |
/// |                    |                  | filled up to `at`. By the writer, on its own thread, |
/// |                    |                  | with no record of its open; noexcept, signal-safe    |
///
/// `l` is the ring's `notify::line`: words shared with readers (and other processes) and all zero
/// at first, so that a futex, or who to signal, has its place; what only this process knows (a
/// callback, an eventfd) is in the object `n` itself, which the ring holds and gives out as
/// `ring.notifier()`. A notifier is default-constructible and constant-initialised. The smallest
/// valid model is notify::never.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <trace_ring/atomic.hpp>
#include <trace_ring/family.hpp>
#include <trace_ring/position.hpp>

namespace trace_ring::inline v1::notify {

/// How far a ring has come since its beginning: both only grow. Bytes are those of the ring that
/// were passed, what a record's slot or header and a sub-buffer's unused end cost included.
struct progress {
    position records = 0;
    std::uint64_t bytes = 0;
};

/// The words that a notifier shares with readers, a cache line of their own.
struct line {
    shared_atomic<std::uint64_t> mark;  ///< passing it is what the reader is told
    shared_atomic<std::uint32_t> word;  ///< changes with each notification: to wait on
    shared_atomic<std::uint32_t> reserved;
    shared_atomic<std::uint64_t> own[6];  ///< for the notifier's own use
};
static_assert(sizeof(line) == 64 && alignof(line) == 8 && std::is_standard_layout_v<line>);
static_assert(offsetof(line, word) == 8 && offsetof(line, own) == 16);

template <class N>
concept policy = in_family<N, trace_ring::family::notify> && std::default_initializable<N> &&
    requires(N& n, line& shared, progress at) {
    { N::watches } -> std::convertible_to<bool>;
    typename std::bool_constant<N::watches>;
    { n.passed(shared, at) }
    noexcept;
};

}  // namespace trace_ring::inline v1::notify
