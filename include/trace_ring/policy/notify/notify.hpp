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
/// Refinements:
///
/// | expression         | result           | meaning                                              |
/// |--------------------|------------------|------------------------------------------------------|
/// | `n.full(l, at)`    |                  | *hears_of_full*: a writer found no room; while its   |
/// |                    |                  | claim is under way. Else as `passed`. `at.records`   |
/// |                    |                  | is 0 in a ring of sub-buffers                        |
/// | `n.attach(l)`      |                  | *attaches*: the ring was made at run time, so that   |
/// |                    |                  | other processes may map it, too: noexcept            |
/// | `n.begin(l, at)`   |                  | *begins*: the ring numbers its records from behind   |
/// |                    |                  | `at` on, before the first: noexcept                  |
/// | `N::reaches(r, b)` | `bool`           | *is_bounded*: a ring that holds `r` records and `b`  |
/// |                    |                  | bytes at most is large enough; constexpr             |
/// | `n.arm(l, look)`   | `bool`           | *arms*: see at_watermark                             |
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
    // What the ring can hold at most: the distance from which nothing of what was there is left.
    std::uint64_t most_records = 0;
    std::uint64_t most_bytes = 0;
};

/// What a reader sees of its ring and of itself.
struct standing {
    progress read;  ///< it has read so far, or given up
    progress at;    ///< the ring is filled so far
    /// What comes next cannot be read before the ring has come so far; all zero if it can be. If
    /// `exactly`, a record of many writers that is still open: then that very one is waited for.
    progress until{};
    bool exactly = false;

    [[nodiscard]] constexpr bool blocked() const noexcept { return until.bytes != 0; }
};

/// The words that a notifier shares with readers, a cache line of their own.
struct line {
    shared_atomic<std::uint64_t> mark;     ///< what writers compare with: see at_watermark
    shared_atomic<std::uint32_t> word;     ///< changes with each notification: to wait on
    shared_atomic<std::uint32_t> waiters;  ///< readers that wait on it
    shared_atomic<std::uint64_t> armed;    ///< the mark, where writers fence
    shared_atomic<std::uint64_t> whom;     ///< who is sent a signal
    shared_atomic<std::uint32_t> fenced;   ///< 1: writers fence, as no reader can do it for them
    shared_atomic<std::uint32_t> reserved;
    shared_atomic<std::uint64_t> own[3];  ///< for a notifier of one's own
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
