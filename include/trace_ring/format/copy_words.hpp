// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Copies words of shared memory.

#include <cstddef>
#include <cstdint>

#include <trace_ring/atomic.hpp>

namespace trace_ring::inline v1 {

// Sanitizers, and a model in the atomics' place, see C++ only, not assembler.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define TRACE_RING_WATCHED
#endif
#endif
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) || \
    defined(TRACE_RING_ATOMICS_HEADER)
#define TRACE_RING_WATCHED
#endif

/// Copies `words` words of shared memory, aligned to 8 bytes, into private memory by relaxed loads,
/// in no given order.
inline void copy_words(const void* from, std::uint64_t* to, std::size_t words) noexcept {
    std::size_t i = 0;
#if defined(__SSE2__) && !defined(TRACE_RING_WATCHED)
    // The same loads, two in one instruction: x86 orders vector loads as all others, so the
    // caller's fences hold for them, and does not split the aligned words in them.
    using line = std::uint64_t[8];
    for (; i + 8 <= words; i += 8) {
        const auto& source = static_cast<const volatile line*>(from)[i / 8];
        auto& target = static_cast<line*>(static_cast<void*>(to))[i / 8];
        asm volatile(
            "movups (%1), %%xmm0\n\tmovups 16(%1), %%xmm1\n\t"
            "movups 32(%1), %%xmm2\n\tmovups 48(%1), %%xmm3\n\t"
            "movups %%xmm0, (%2)\n\tmovups %%xmm1, 16(%2)\n\t"
            "movups %%xmm2, 32(%2)\n\tmovups %%xmm3, 48(%2)"
            : "=m"(target)
            : "r"(&source), "r"(&target), "m"(source)
            : "xmm0", "xmm1", "xmm2", "xmm3");
    }
#endif
    for (; i < words; ++i) {
        to[i] = word_at<std::uint64_t>(from, i * 8).load(relaxed);  // relaxed: as said above
    }
}

}  // namespace trace_ring::inline v1
