// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Whether this process has restartable sequences (rseq), and where. Each thread shares a few words
/// with the kernel: they tell the thread which processor it runs on, and tell the kernel which of
/// the thread's instructions to start again if it is preempted, migrated or signalled among them.
/// glibc registers them for every thread since 2.35. A thread has one such area, so this library
/// does not register another one.
///
/// Facts: the layout of `struct rseq` is the kernel's (include/uapi/linux/rseq.h). glibc's
/// `__rseq_offset` is the distance of the area from the thread pointer; `__rseq_size` is 0 where
/// registration failed or was not wanted (GLIBC_TUNABLES=glibc.pthread.rseq=0).

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include <trace_ring/atomic.hpp>

// Sanitizers that follow each store do not see those made in assembly.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define TRACE_RING_NO_RSEQ
#endif
#endif
#if defined(__LP64__) && !defined(__SANITIZE_THREAD__) && !defined(TRACE_RING_NO_RSEQ) && \
    (defined(__x86_64__) || (defined(__aarch64__) && !defined(__AARCH64EB__)))
/// The sequences of sequence.hpp and append.hpp exist for this target.
#define TRACE_RING_RSEQ 1
#endif

namespace trace_ring::inline v1::rseq {

extern "C" {
// Under names of our own, because <sys/rseq.h> declares glibc's names, and not as weak. With a C
// library that does not define them their addresses are null.
extern const std::ptrdiff_t trace_ring_rseq_offset __asm__("__rseq_offset") __attribute__((weak));
extern const unsigned int trace_ring_rseq_size __asm__("__rseq_size") __attribute__((weak));
}

/// Offsets in `struct rseq`, in bytes.
inline constexpr std::ptrdiff_t cpu_id_at = 4;
inline constexpr std::ptrdiff_t sequence_at = 8;

/// `cpu` returns this or a larger number for a thread that is not registered.
inline constexpr std::uint32_t no_cpu = 0xFFFFFFF0U;

/// The distance of a thread's area from its thread pointer; 0 if there is none. Signal-safe.
[[nodiscard]] inline std::ptrdiff_t offset() noexcept {
#if defined(TRACE_RING_RSEQ)
    if (&trace_ring_rseq_size == nullptr || &trace_ring_rseq_offset == nullptr) return 0;
    return trace_ring_rseq_size == 0 ? 0 : trace_ring_rseq_offset;
#else
    return 0;
#endif
}

#if defined(TRACE_RING_RSEQ)
/// The address of a thread's area, for machines that cannot address relative to the thread pointer.
[[nodiscard, gnu::always_inline]] inline std::byte* area_at(std::ptrdiff_t offset) noexcept {
    return static_cast<std::byte*>(__builtin_thread_pointer()) + offset;
}
#endif

/// The processor that this thread runs on, or ran on a moment ago. `offset` must not be 0.
[[nodiscard]] inline std::uint32_t cpu([[maybe_unused]] std::ptrdiff_t offset) noexcept {
#if defined(TRACE_RING_RSEQ)
    std::uint32_t id;
#if defined(__x86_64__)
    asm volatile("movl %%fs:%c2(%1), %0" : "=r"(id) : "r"(offset), "i"(cpu_id_at));
#else
    asm volatile("ldr %w0, [%1, %2]" : "=r"(id) : "r"(area_at(offset)), "i"(cpu_id_at) : "memory");
#endif
    return id;
#else
    return no_cpu;
#endif
}

/// Removes the thread's pointer to the sequence that it began last. A sequence that reaches its end
/// does so itself. One that failed half-way leaves the pointer, and the kernel follows it when the
/// thread is next preempted: by then the code may have been unloaded.
inline void forget([[maybe_unused]] std::ptrdiff_t offset) noexcept {
#if defined(TRACE_RING_RSEQ)
#if defined(__x86_64__)
    asm volatile("movq $0, %%fs:%c1(%0)" : : "r"(offset), "i"(sequence_at) : "memory");
#else
    asm volatile("str xzr, [%0, %1]" : : "r"(area_at(offset)), "i"(sequence_at) : "memory");
#endif
#endif
}

/// One more than the highest number that a processor of this machine can have, present or not.
/// Reads a file of the system; keeps errno.
[[nodiscard]] inline std::uint32_t possible_cpus() noexcept {
    const int saved = errno;
    std::uint32_t last = 0;
    char text[256];
    const int file = ::open("/sys/devices/system/cpu/possible", O_RDONLY | O_CLOEXEC);
    const ::ssize_t size = file < 0 ? -1 : ::read(file, text, sizeof text);
    if (file >= 0) ::close(file);
    if (size > 0) {  // as in "0-3,8-11": the last number is the highest
        std::uint32_t number = 0;
        for (::ssize_t i = 0; i < size; ++i) {
            const bool digit = text[i] >= '0' && text[i] <= '9';
            number = digit ? number * 10 + static_cast<std::uint32_t>(text[i] - '0') : 0;
            if (digit) last = number;
        }
    } else if (const long configured = ::sysconf(_SC_NPROCESSORS_CONF); configured > 0) {
        last = static_cast<std::uint32_t>(configured - 1);
    }
    errno = saved;
    constexpr std::uint32_t most = 8191;  // the highest that a kernel can be built for
    return (last < most ? last : most) + 1;
}

}  // namespace trace_ring::inline v1::rseq
