// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The processor's own counter: the time stamp counter on x86, the generic timer on aarch64,
/// CLOCK_MONOTONIC elsewhere. Reading it is the floor that a record's cost is measured against.
///
/// `usable()` says whether it can be trusted. A ring or a recorder asks it at set-up; if it is
/// false, they read clock::monotonic instead, and the trace says so. The read is not serialising:
/// it may move among neighbouring instructions by tens of cycles. A serialising read costs more.
///
/// Facts: CPUID leaf 80000007 EDX[8] says that the TSC ticks at a constant rate in every state of
/// the processor; leaf 15 gives its rate as crystal Hz * EBX / EAX (Intel SDM volume 3, "Time-stamp
/// counter"). The kernel removes "tsc" from its available clock sources when its watchdog finds
/// that the processors disagree.

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <trace_ring/atomic.hpp>
#include <trace_ring/policy/clock/clock.hpp>
#include <trace_ring/policy/clock/counter.hpp>
#include <trace_ring/policy/clock/monotonic.hpp>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

namespace trace_ring::inline v1::clock {

namespace impl {

/// `word` is one of the blank-separated words of `list`.
[[nodiscard]] constexpr bool has_word(std::string_view list, std::string_view word) noexcept {
    while (!list.empty()) {
        const auto end = list.find_first_of(" \t\n");
        if (list.substr(0, end) == word) return true;
        if (end == std::string_view::npos) return false;
        list.remove_prefix(end + 1);
    }
    return false;
}

/// Whether the TSC can be trusted, by the kernel's clock sources or, if these cannot be read, by
/// the processor. The kernel comes first, because it has watched the counter.
[[nodiscard]] constexpr bool believable(bool invariant, std::string_view current_source,
                                        std::string_view available_sources) noexcept {
    if (has_word(current_source, "tsc")) return true;
    if (!available_sources.empty() && !has_word(available_sources, "tsc")) return false;
    return invariant;
}

/// The text of a short file of the system; empty if it cannot be read. Signal-safe.
template <std::size_t N>
[[nodiscard]] inline std::string_view short_file(const char* name, char (&buffer)[N]) noexcept {
    const int file = ::open(name, O_RDONLY | O_CLOEXEC);
    if (file < 0) return {};
    const ssize_t size = ::read(file, buffer, N);
    ::close(file);
    return size > 0 ? std::string_view(buffer, static_cast<std::size_t>(size)) : std::string_view{};
}

/// Ticks a second, by comparison with CLOCK_MONOTONIC over 2 ms: accurate to about 20 parts in a
/// million on an idle machine. Signal-safe.
template <class Clock>
[[nodiscard, gnu::cold]] inline double calibrated() noexcept {
    struct pair {
        std::uint64_t ticks, ns, width;
    };
    const auto read = [] {
        pair best{0, 0, ~std::uint64_t{0}};
        for (int i = 0; i < 8; ++i) {  // keep the narrowest: an interruption widens a reading
            const std::uint64_t before = Clock::now();
            const std::uint64_t ns = monotonic::now();
            const std::uint64_t width = Clock::now() - before;
            if (width < best.width) best = {before + width / 2, ns, width};
        }
        return best;
    };
    const pair first = read();
    const timespec pause{0, 2'000'000};
    ::nanosleep(&pause, nullptr);  // cut short by a signal: the estimate is coarser, not wrong
    pair last = read();
    while (last.ns - first.ns < 1'000'000) last = read();
    return static_cast<double>(last.ticks - first.ticks) * 1e9 /
           static_cast<double>(last.ns - first.ns);
}

/// The result of `tsc::usable`, for the whole process. A test may store `no` first, to play a
/// processor whose counter is not steady.
enum class verdict : std::uint8_t { unknown, no, yes };
inline constinit atomic<std::uint8_t> verdict_on_tsc{static_cast<std::uint8_t>(verdict::unknown)};

}  // namespace impl

/// The processor's time-stamp counter, if it is steady; the default clock.
struct tsc : counter {
    using family = trace_ring::family::clock;

    /// Ticks are steady and agree between processors. The first call reads two files of the
    /// system; later ones load one word. Keeps errno.
    [[nodiscard]] static bool usable() noexcept {
        // relaxed: every thread finds the same value
        auto known = static_cast<impl::verdict>(impl::verdict_on_tsc.load(relaxed));
        if (known == impl::verdict::unknown) {
            known = found() ? impl::verdict::yes : impl::verdict::no;
            // relaxed: the same value from every thread
            impl::verdict_on_tsc.store(static_cast<std::uint8_t>(known), relaxed);
        }
        return known == impl::verdict::yes;
    }

    /// The first call may sleep for 2 ms; later ones load one word. Keeps errno.
    [[nodiscard]] static double ticks_per_second() noexcept {
        static constinit atomic<std::uint64_t> rate{0};  // in 1/1024 ticks a second: integers only
        std::uint64_t known = rate.load(relaxed);        // relaxed: any thread's estimate will do
        if (known == 0) {
            const int saved = errno;
            const auto estimate = static_cast<std::uint64_t>(measured() * 1024.0);
            errno = saved;
            // relaxed: a word by itself; the first estimate is kept, so that all threads agree
            known = rate.compare_exchange_strong(known, estimate, relaxed) ? estimate : known;
        }
        return static_cast<double>(known) / 1024.0;
    }

private:
    [[nodiscard, gnu::cold]] static bool found() noexcept {
#if defined(__x86_64__) || defined(__i386__)
        unsigned a = 0;
        unsigned b = 0;
        unsigned c = 0;
        unsigned d = 0;
        const bool invariant = __get_cpuid(0x80000007U, &a, &b, &c, &d) != 0 && (d >> 8 & 1U) != 0;
        const int saved = errno;
        char current[64];
        char available[256];
        constexpr const char* folder[] = {
            "/sys/devices/system/clocksource/clocksource0/current_clocksource",
            "/sys/devices/system/clocksource/clocksource0/available_clocksource"};
        const bool good = impl::believable(invariant, impl::short_file(folder[0], current),
                                           impl::short_file(folder[1], available));
        errno = saved;
        return good;
#else
        return true;  // the generic timer is steady by architecture; elsewhere it is monotonic
#endif
    }

    [[nodiscard, gnu::cold, gnu::noinline]] static double measured() noexcept {
#if defined(__x86_64__) || defined(__i386__)
        unsigned a = 0;
        unsigned b = 0;
        unsigned c = 0;
        unsigned d = 0;
        // Under a hypervisor leaf 15 may describe a host that the guest has moved away from. Leaf
        // 16 is not used, because it is rounded to a megahertz.
        const bool guest = __get_cpuid(1, &a, &b, &c, &d) != 0 && (c >> 31 & 1U) != 0;
        if (!guest && __get_cpuid(0x15, &a, &b, &c, &d) != 0 && a != 0 && b != 0 && c != 0)
            return static_cast<double>(c) * b / a;
        return impl::calibrated<tsc>();
#elif defined(__aarch64__)
        std::uint64_t hertz = 0;
        asm volatile("mrs %0, cntfrq_el0" : "=r"(hertz));
        return hertz != 0 ? static_cast<double>(hertz) : impl::calibrated<tsc>();
#else
        return monotonic::ticks_per_second();
#endif
    }
};
static_assert(policy<tsc>);

}  // namespace trace_ring::inline v1::clock
