// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The writer waits until the consumer has made room, up to a time limit; then the record is
/// refused and counted, so that a dead consumer cannot stop the program. The writer polls: first it
/// spins briefly, then it sleeps, up to a millisecond at a time. So it needs no help from the
/// consumer, and works between processes. Not for signal handlers.
/// @code
/// struct jobs : trace_ring::policies<trace_ring::record::sequenced<int>,
///                                    trace_ring::full::block<std::chrono::seconds(1)>> {};
/// @endcode

#include <time.h>

#include <cerrno>
#include <cstdint>
#include <type_traits>

#include <trace_ring/nanoseconds.hpp>
#include <trace_ring/policy/full/full.hpp>

namespace trace_ring::inline v1::full {

/// A time limit as a template argument: `full::block<50ms>`.
struct time_limit {
    std::int64_t ns = 0;  ///< the limit in nanoseconds

    /// From any duration.
    template <class Duration>
    requires std::is_convertible_v<Duration, nanoseconds>
    consteval time_limit(Duration limit) : ns(nanoseconds(limit).count()) {}
};

/// A writer that finds no room waits, for at most `Limit`, and is then refused.
template <time_limit Limit>
struct block {
    static_assert(Limit.ns > 0,
                  "full::block needs a time limit above zero: a consumer that died "
                  "must not hold the program");

    using family = trace_ring::family::full;
    static constexpr bool overwrites = false;
    static constexpr bool waits = true;
    static constexpr bool grows = false;
    static constexpr bool stops = false;

    [[nodiscard]] static answer when_full(room& r) noexcept {
        constexpr std::uint64_t spins = 64;
        if (r.attempt < spins) {
            pause();
            return answer::retry;
        }
        const std::uint64_t now = monotonic_ns();
        if (r.memory == 0) r.memory = now;
        const std::uint64_t waited = now - r.memory;
        if (waited >= static_cast<std::uint64_t>(Limit.ns)) return answer::refuse;
        std::uint64_t nap = 20'000;  // ns; a shorter sleep would be mostly the call's overhead
        for (std::uint64_t i = spins; i < r.attempt && nap < 1'000'000; ++i) nap *= 2;
        const std::uint64_t left = static_cast<std::uint64_t>(Limit.ns) - waited;
        sleep_ns(nap < left ? nap : left);
        return answer::retry;
    }

private:
    static void pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        asm volatile("yield");
#endif
    }
    [[nodiscard]] static std::uint64_t monotonic_ns() noexcept {
        timespec t{};
        ::clock_gettime(CLOCK_MONOTONIC, &t);
        return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000U +
               static_cast<std::uint64_t>(t.tv_nsec);
    }
    static void sleep_ns(std::uint64_t ns) noexcept {
        const int saved = errno;
        const timespec nap{static_cast<time_t>(ns / 1'000'000'000U),
                           static_cast<long>(ns % 1'000'000'000U)};
        ::nanosleep(&nap, nullptr);  // a signal may cut it short: the caller checks again
        errno = saved;
    }
};
static_assert(policy<block<nanoseconds{1}>>);

}  // namespace trace_ring::inline v1::full
