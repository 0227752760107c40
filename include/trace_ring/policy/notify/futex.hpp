// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Sleeping on a word until it changes, also between processes of either word size.

#if !defined(TRACE_RING_ATOMICS_HEADER)  // a model of atomics has its own futex
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#endif

#include <cstdint>

#include <trace_ring/atomic.hpp>

namespace trace_ring::inline v1::notify {

/// A time that never comes.
inline constexpr std::uint64_t no_deadline = ~std::uint64_t{0};

#if !defined(TRACE_RING_ATOMICS_HEADER)
/// If the word is `seen`, sleeps until it is woken, a signal comes, or CLOCK_MONOTONIC reaches
/// `deadline` (ns). It may also return for no reason: the caller checks the word again.
inline void sleep_on(shared_atomic<std::uint32_t>& word, std::uint32_t seen, std::uint64_t deadline,
                     bool across) noexcept {
    struct {
        long seconds, ns;  // the kernel's types for this call, for any time_t
    } until{static_cast<long>(deadline / 1'000'000'000U),
            static_cast<long>(deadline % 1'000'000'000U)};
    // A long of 32 bits holds 68 years: the caller checks again then.
    if (deadline / 1'000'000'000U > static_cast<unsigned long>(INT_MAX)) until.seconds = INT_MAX;
    const int saved = errno;
    ::syscall(SYS_futex, &word, across ? FUTEX_WAIT_BITSET : FUTEX_WAIT_BITSET_PRIVATE, seen,
              deadline == no_deadline ? nullptr : &until, nullptr, FUTEX_BITSET_MATCH_ANY);
    errno = saved;
}
/// Wakes all threads that sleep on the word. Signal-safe.
inline void wake_all_on(shared_atomic<std::uint32_t>& word, bool across) noexcept {
    const int saved = errno;
    ::syscall(SYS_futex, &word, across ? FUTEX_WAKE : FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr,
              0);
    errno = saved;
}
#endif

}  // namespace trace_ring::inline v1::notify
