// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The notify family: how a reader is notified that there are records to read.
///
/// | expression         | result           | meaning                                              |
/// |--------------------|------------------|------------------------------------------------------|
/// | `N::family`        | `family::notify` |                                                      |
/// | `N::watches`       | `bool`           | constant: false, and the ring never calls it         |
/// | `n.passed(l, at)`  |                  | a record was published or discarded, and the ring is |
/// |                    |                  | filled up to `at`. Called by the writer, on its own  |
/// |                    |                  | thread, when it has no record open; noexcept,        |
/// |                    |                  | signal-safe                                          |
///
/// Refinements:
///
/// | expression         | result           | meaning                                              |
/// |--------------------|------------------|------------------------------------------------------|
/// | `n.full(l, at)`    |                  | *hears_of_full*: a writer found no room. Called in   |
/// |                    |                  | the middle of its claim, otherwise like `passed`.    |
/// |                    |                  | `at.records` is 0 in a ring of sub-buffers           |
/// | `n.attach(l)`      |                  | *attaches*: the ring was made at run time, so other  |
/// |                    |                  | processes may map it, too: noexcept                  |
/// | `n.begin(l, at)`   |                  | *begins*: the ring will number its records from      |
/// |                    |                  | after `at` on; before the first one: noexcept        |
/// | `N::reaches(r, b)` | `bool`           | *is_bounded*: a ring that holds `r` records and `b`  |
/// |                    |                  | bytes at most is large enough; constexpr             |
/// | `n.arm(l, look)`   | `bool`           | *arms*: see at_watermark                             |
///
/// `l` is the ring's `notify::line`: words shared with readers (and other processes), all zero at
/// first, for a futex, say, or for the process to signal. State of this process only (a callback,
/// an eventfd) is in the object `n`, which the ring holds and returns by `ring.notifier()`. A
/// notifier is default-constructible and constant-initialised. The smallest valid model is
/// notify::never.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <trace_ring/atomic.hpp>
#include <trace_ring/policies.hpp>
#include <trace_ring/position.hpp>

namespace trace_ring::inline v1::notify {

/// How far a ring is filled since its beginning; both numbers only grow. Bytes are the ring's own,
/// with those of slots, headers and unused ends of sub-buffers.
struct progress {
    position records = 0;     ///< records since the beginning
    std::uint64_t bytes = 0;  ///< bytes since the beginning
    // The most that the ring can hold: anything further back is overwritten.
    std::uint64_t most_records = 0;  ///< records that the ring holds at most
    std::uint64_t most_bytes = 0;    ///< bytes that the ring holds at most
};

/// How far a reader and its ring are, as the reader sees it.
struct standing {
    progress read;  ///< up to here the reader has read or given up
    progress at;    ///< up to here the ring is filled
    /// The next record cannot be read before the ring has reached this; all zero if it can be read
    /// now. If `exactly`, the next record is one of many writers' that is still open, and the
    /// reader waits for that one.
    progress until{};
    bool exactly = false;  ///< the reader waits for the record at `until`, and for no other

    /// Whether the reader must wait.
    [[nodiscard]] constexpr bool blocked() const noexcept { return until.bytes != 0; }
};

/// The words that a notifier shares with readers, on a separate cache line.
struct line {
    shared_atomic<std::uint64_t> mark;      ///< writers compare with it: see at_watermark
    shared_atomic<std::uint32_t> word;      ///< changes with each notification; readers wait on it
    shared_atomic<std::uint32_t> waiters;   ///< number of readers that wait on it
    shared_atomic<std::uint64_t> armed;     ///< the mark, where writers fence
    shared_atomic<std::uint64_t> whom;      ///< the thread or process to signal
    shared_atomic<std::uint32_t> fenced;    ///< 1: writers fence, as no reader can do it for them
    shared_atomic<std::uint32_t> reserved;  ///< zero
    shared_atomic<std::uint64_t> own[3];    ///< for your own notifier
};
static_assert(sizeof(line) == 64 && alignof(line) == 8 && std::is_standard_layout_v<line>);
static_assert(offsetof(line, word) == 8 && offsetof(line, waiters) == 12);
static_assert(offsetof(line, armed) == 16 && offsetof(line, whom) == 24);
static_assert(offsetof(line, fenced) == 32 && offsetof(line, own) == 40);

template <class N>
concept policy = in_family<N, trace_ring::family::notify> && std::default_initializable<N> &&
    requires(N& n, line& shared, progress at) {
    { N::watches } -> std::convertible_to<bool>;
    typename std::bool_constant<N::watches>;
    { n.passed(shared, at) }
    noexcept;
};

template <class N>
concept hears_of_full = policy<N> && N::watches && requires(N& n, line& shared, progress at) {
    { n.full(shared, at) }
    noexcept;
};

template <class N>
concept attaches = policy<N> && requires(N& n, line& shared) {
    { n.attach(shared) }
    noexcept;
};

template <class N>
concept begins = policy<N> && requires(N& n, line& shared, progress at) {
    { n.begin(shared, at) }
    noexcept;
};

template <class N>
concept is_bounded = policy<N> && requires {
    typename std::bool_constant<N::reaches(1, 1)>;
};

template <class N>
concept arms = policy<N> && requires(N& n, line& shared, standing (&look)()) {
    { n.arm(shared, look) } -> std::same_as<bool>;
};

}  // namespace trace_ring::inline v1::notify
