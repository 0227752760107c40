// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The one seam to Boost.Atomic. Every atomic word, fence and memory order in the library is named
/// here and nowhere else, so that a test can put a model in its place: define
/// TRACE_RING_ATOMICS_HEADER to the name of a header that declares the same names.
///
/// `atomic<T>` is for words of one process, `shared_atomic<T>` for words that other processes (of
/// either word size) map too: address-free, lock-free, naturally aligned also on i386, where a
/// plain 64-bit member is aligned to four bytes.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#if defined(TRACE_RING_ATOMICS_HEADER)
#include TRACE_RING_ATOMICS_HEADER
#else
#include <boost/atomic/atomic.hpp>
#include <boost/atomic/atomic_ref.hpp>
#include <boost/atomic/fences.hpp>
#include <boost/atomic/ipc_atomic.hpp>

namespace trace_ring::inline v1 {

using memory_order = boost::memory_order;
inline constexpr memory_order relaxed = boost::memory_order_relaxed;
inline constexpr memory_order acquire = boost::memory_order_acquire;
inline constexpr memory_order release = boost::memory_order_release;
inline constexpr memory_order acq_rel = boost::memory_order_acq_rel;
inline constexpr memory_order seq_cst = boost::memory_order_seq_cst;

template <class T>
using atomic = boost::atomic<T>;

template <class T>
using shared_atomic = boost::ipc_atomic<T>;

/// An atomic pointer that can be constant-initialised to an address, which Boost's cannot: what
/// must be there before the first constructor runs.
template <class T>
class atomic_pointer {
public:
    constexpr atomic_pointer(T* initial = nullptr) noexcept : value_(initial) {}  // as boost's
    atomic_pointer(const atomic_pointer&) = delete;
    atomic_pointer& operator=(const atomic_pointer&) = delete;

    [[nodiscard]] T* load(memory_order order) const noexcept { return ref().load(order); }
    void store(T* value, memory_order order) noexcept { ref().store(value, order); }
    T* exchange(T* value, memory_order order) noexcept { return ref().exchange(value, order); }
    bool compare_exchange_strong(T*& expected, T* desired, memory_order order) noexcept {
        return ref().compare_exchange_strong(expected, desired, order);
    }
    bool compare_exchange_weak(T*& expected, T* desired, memory_order order) noexcept {
        return ref().compare_exchange_weak(expected, desired, order);
    }

private:
    [[nodiscard]] boost::atomic_ref<T*> ref() const noexcept {
        // Tells the compiler what atomic_ref asserts, so that no check is left in the hot path.
        if (reinterpret_cast<std::uintptr_t>(&value_) % alignof(T*) != 0) __builtin_unreachable();
        return boost::atomic_ref<T*>(value_);
    }
    mutable T* value_;
};

/// Orders this thread's accesses as other threads see them.
inline void thread_fence(memory_order order) noexcept {
    boost::atomic_thread_fence(order);
}

/// Orders this thread's accesses as a signal handler on the same thread sees them: no instruction.
inline void signal_fence(memory_order order) noexcept {
    boost::atomic_signal_fence(order);
}

// What follows says in one instruction of x86 what compilers, careful with atomic words, take two
// or three for: the hot path is a third shorter for it. Sanitizers see only what is said in C++.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define TRACE_RING_PLAIN_STEPS
#endif
#endif
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define TRACE_RING_PLAIN_STEPS
#endif
#if (defined(__x86_64__) || defined(__i386__)) && !defined(TRACE_RING_PLAIN_STEPS)
#define TRACE_RING_X86_STEPS
#endif

/// A word, loaded with acquire, as an index: one that need not be widened.
[[nodiscard, gnu::always_inline]] inline std::uintptr_t load_index(
    const atomic<std::uint32_t>& from) noexcept {
#if defined(TRACE_RING_X86_STEPS)
    std::uintptr_t index;
    asm volatile("movl %1, %k0"
                 : "=r"(index)
                 : "m"(reinterpret_cast<const volatile std::uint32_t&>(from))
                 : "memory");
    return index;
#else
    return from.load(acquire);
#endif
}

/// The address `bytes` behind the one in `base`: a relaxed load and an addition.
template <class T>
[[nodiscard, gnu::always_inline]] inline std::byte* behind(const atomic_pointer<T>& base,
                                                           std::uintptr_t bytes) noexcept {
#if defined(TRACE_RING_X86_STEPS)
    asm volatile("add %1, %0"
                 : "+r"(bytes)
                 : "m"(reinterpret_cast<const volatile std::uintptr_t&>(base))
                 : "cc");
    return reinterpret_cast<std::byte*>(bytes);
#else
    return reinterpret_cast<std::byte*>(base.load(relaxed)) + bytes;  // relaxed: for its caller
#endif
}

/// Whether a byte is not zero: byte `index - Bias` of those that lie `distance` behind `base`. By
/// relaxed loads of `distance` and of the byte, and a comparison.
template <std::uint32_t Bias>
[[nodiscard, gnu::always_inline]] inline bool is_set(const void* base,
                                                     const atomic<std::uintptr_t>& distance,
                                                     std::uintptr_t index) noexcept {
#if defined(TRACE_RING_X86_STEPS)
    bool set;
    asm volatile("add %2, %1\n\tcmpb $0, %c4(%3,%1)"
                 : "=@ccne"(set), "+&r"(index)
                 : "m"(reinterpret_cast<const volatile std::uintptr_t&>(distance)), "r"(base),
                   "i"(-static_cast<std::int32_t>(Bias))
                 : "memory");
    return set;
#else
    const std::uintptr_t at =
        reinterpret_cast<std::uintptr_t>(base) + distance.load(relaxed) + index - Bias;
    return reinterpret_cast<const shared_atomic<std::uint8_t>*>(at)->load(relaxed) != 0;
#endif
}

/// `value` with two neighbouring words or-ed to it, the second of them to its upper half.
[[nodiscard, gnu::always_inline]] inline std::uint64_t or_both(
    std::uint64_t value, const atomic<std::uint32_t>& first,
    const atomic<std::uint32_t>& second) noexcept {
#if defined(TRACE_RING_X86_STEPS) && defined(__x86_64__)
    static_cast<void>(second);
    asm volatile("orq %1, %0"
                 : "+r"(value)
                 : "m"(reinterpret_cast<const volatile std::uint64_t&>(first)));
    return value;
#else
    // relaxed, both: what is stored is for the caller to order
    return value | first.load(relaxed) | std::uint64_t{second.load(relaxed)} << 32;
#endif
}

/// Whether a word is another than `value`: a relaxed load and a comparison.
[[nodiscard, gnu::always_inline]] inline bool differs(const atomic<std::uint32_t>& word,
                                                      std::uint32_t value) noexcept {
#if defined(TRACE_RING_X86_STEPS)
    bool other;
    asm volatile("cmpl %2, %1"
                 : "=@ccne"(other)
                 : "m"(reinterpret_cast<const volatile std::uint32_t&>(word)), "r"(value));
    return other;
#else
    return word.load(relaxed) != value;
#endif
}

/// The low 16 bits, with their sign, of a word that only this thread and its signal handlers write:
/// in one instruction. A load of part of a word waits for the last store into it, though; where
/// nothing else takes that long, load all of it.
[[nodiscard, gnu::always_inline]] inline std::intptr_t signed_low_half(
    const shared_atomic<std::uint32_t>& word) noexcept {
#if defined(TRACE_RING_X86_STEPS)
    std::intptr_t half;
    const auto& low = reinterpret_cast<const volatile std::uint32_t&>(word);
    if constexpr (sizeof(void*) == 8) {
        asm volatile("movswq %1, %0" : "=r"(half) : "m"(low));
    } else {
        asm volatile("movswl %1, %0" : "=r"(half) : "m"(low));
    }
    return half;
#else
    return static_cast<std::int16_t>(word.load(relaxed));  // relaxed: own word
#endif
}

/// Whether any bit of `Mask` is set in a word: a relaxed load and a test.
template <std::uint32_t Mask>
[[nodiscard, gnu::always_inline]] inline bool has_any(
    const shared_atomic<std::uint32_t>& word) noexcept {
#if defined(TRACE_RING_X86_STEPS)
    bool any;
    asm volatile("testl %2, %1"
                 : "=@ccnz"(any)
                 : "m"(reinterpret_cast<const volatile std::uint32_t&>(word)), "i"(Mask));
    return any;
#else
    return (word.load(relaxed) & Mask) != 0;
#endif
}

/// Adds to a word that has one writer, and publishes what that writer has stored before: a relaxed
/// load and a store with release, not one locked step.
[[gnu::always_inline]] inline void publish_add(shared_atomic<std::uint32_t>& word,
                                               std::uint32_t more) noexcept {
#if defined(TRACE_RING_X86_STEPS)
    asm volatile("addl %1, %0"
                 : "+m"(reinterpret_cast<volatile std::uint32_t&>(word))
                 : "ri"(more)
                 : "memory", "cc");
#else
    word.store(word.load(relaxed) + more, release);
#endif
}

}  // namespace trace_ring::inline v1
#endif

namespace trace_ring::inline v1 {

static_assert(shared_atomic<std::uint64_t>::is_always_lock_free,
              "trace_ring needs lock-free 64-bit atomics");
static_assert(shared_atomic<std::uint32_t>::is_always_lock_free,
              "trace_ring needs lock-free 32-bit atomics");
static_assert(shared_atomic<std::uint8_t>::is_always_lock_free,
              "trace_ring needs lock-free 8-bit atomics");
static_assert(sizeof(shared_atomic<std::uint64_t>) == 8 &&
              alignof(shared_atomic<std::uint64_t>) == 8);
static_assert(sizeof(shared_atomic<std::uint32_t>) == 4 &&
              alignof(shared_atomic<std::uint32_t>) == 4);
static_assert(std::is_standard_layout_v<shared_atomic<std::uint64_t>>);

/// The word of type T at `offset` bytes from `base`, as other threads and processes share it.
/// `base + offset` must be aligned to sizeof(T). Trace memory is an array of such words: payload,
/// too, is only ever read and written through them.
template <class T>
[[nodiscard]] inline shared_atomic<T>& word_at(void* base, std::size_t offset) noexcept {
    return *reinterpret_cast<shared_atomic<T>*>(static_cast<std::byte*>(base) + offset);
}

template <class T>
[[nodiscard]] inline const shared_atomic<T>& word_at(const void* base,
                                                     std::size_t offset) noexcept {
    return *reinterpret_cast<const shared_atomic<T>*>(static_cast<const std::byte*>(base) + offset);
}

/// Where a record's words go, as base and index. Compilers like to add the two up first, an
/// instruction more than adding the index in each store.
struct indexed_place {
    std::byte* base;
    std::intptr_t index;
};

template <class T>
[[nodiscard]] inline shared_atomic<T>& word_at(indexed_place to, std::size_t offset) noexcept {
    return word_at<T>(to.base + to.index, offset);
}

/// A relaxed store of the word at `Offset` from there.
template <std::size_t Offset, class T>
[[gnu::always_inline]] inline void store_at(indexed_place to, T value) noexcept {
#if defined(TRACE_RING_X86_STEPS)
    static_assert(sizeof(T) <= sizeof(void*));
    if constexpr (sizeof(T) == 8) {
        asm volatile("movq %0, %c1(%2,%3)"
                     :
                     : "re"(value), "i"(Offset), "r"(to.base), "r"(to.index)
                     : "memory");
    } else {
        static_assert(sizeof(T) == 4);
        asm volatile("movl %0, %c1(%2,%3)"
                     :
                     : "ri"(value), "i"(Offset), "r"(to.base), "r"(to.index)
                     : "memory");
    }
#else
    word_at<T>(to, Offset).store(value, relaxed);  // relaxed: its caller publishes
#endif
}

/// Asks for the cache line of a word that is about to be stored to, so that it comes in one step,
/// and lines that are asked for together come together. Compilers' own prefetch for writing is one
/// for reading on x86, if they do not know the processor: the line is then fetched twice.
[[gnu::always_inline]] inline void prefetch_to_store(const volatile void* at) noexcept {
#if defined(TRACE_RING_X86_STEPS) && defined(__x86_64__)
    asm volatile("prefetchw %0" : : "m"(*static_cast<const volatile char*>(at)));
#else
    __builtin_prefetch(const_cast<const void*>(at), 1, 3);
#endif
}

/// Copies `words` words of shared memory, aligned to 8 bytes, into memory of one's own by relaxed
/// loads. Which of them is loaded first is not said.
inline void copy_words(const void* from, std::uint64_t* to, std::size_t words) noexcept {
    std::size_t i = 0;
#if defined(TRACE_RING_X86_STEPS) && defined(__SSE2__)
    // The same loads, two at once: x86 orders vector loads as all others, so the caller's fences
    // hold for them, and does not split the aligned words in them.
    for (; i + 8 <= words; i += 8) {
        const auto& source = *reinterpret_cast<const volatile std::uint64_t(*)[8]>(
            static_cast<const std::byte*>(from) + i * 8);
        auto& target = *reinterpret_cast<std::uint64_t(*)[8]>(to + i);
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
        to[i] = word_at<std::uint64_t>(from, i * 8).load(relaxed);  // relaxed: as is said above
    }
}

}  // namespace trace_ring::inline v1
