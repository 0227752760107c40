// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Reads the processor's own counter. clock::tsc (tsc.hpp) says whether it can be trusted, and how
/// fast it ticks; trace points do not need to know that.

#include <cstdint>

#if !defined(__x86_64__) && !defined(__i386__) && !defined(__aarch64__)
#include <trace_ring/policy/clock/system.hpp>
#endif
#include <trace_ring/policy/clock/kind.hpp>

namespace trace_ring::inline v1::clock {

struct tsc;

struct counter {
#if defined(__x86_64__) || defined(__i386__)
    static constexpr std::uint32_t kind = static_cast<std::uint32_t>(clock_kind::tsc);
#elif defined(__aarch64__)
    static constexpr std::uint32_t kind = static_cast<std::uint32_t>(clock_kind::generic_timer);
#else
    static constexpr std::uint32_t kind = static_cast<std::uint32_t>(clock_kind::monotonic);
#endif

    /// A reading in two halves: comparing or storing one of them needs no shift.
    struct halves {
        std::uintptr_t low;  ///< 32 bits, in a whole register, so that no instruction widens it
        std::uint32_t high;
    };

    [[nodiscard, gnu::always_inline]] static inline halves now_halves() noexcept {
#if defined(__x86_64__) || defined(__i386__)
        halves t;
        asm volatile("rdtsc" : "=a"(t.low), "=d"(t.high));
        return t;
#else
        const std::uint64_t ticks = now();
        return {static_cast<std::uint32_t>(ticks), static_cast<std::uint32_t>(ticks >> 32)};
#endif
    }

    [[nodiscard, gnu::always_inline]] static inline std::uint64_t now() noexcept {
#if defined(__x86_64__) || defined(__i386__)
        const halves t = now_halves();
        return std::uint64_t{t.high} << 32 | t.low;
#elif defined(__aarch64__)
        std::uint64_t ticks = 0;
        asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
        return ticks;
#else
        return impl::system_ns(CLOCK_MONOTONIC);
#endif
    }
};

}  // namespace trace_ring::inline v1::clock
