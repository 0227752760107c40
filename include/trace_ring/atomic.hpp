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
/// plain 64-bit member is aligned to four bytes. Its orders are `trace_ring::acquire` and so on;
/// those of std::memory_order do as well.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#if defined(TRACE_RING_ATOMICS_HEADER)
#include TRACE_RING_ATOMICS_HEADER
#else
// Boost has template parameters named I, a macro of <complex.h>.
#pragma push_macro("I")
#undef I
#include <boost/atomic/atomic.hpp>
#include <boost/atomic/fences.hpp>
#include <boost/atomic/ipc_atomic.hpp>
#pragma pop_macro("I")

namespace trace_ring::inline v1 {

using memory_order = boost::memory_order;
inline constexpr memory_order relaxed = boost::memory_order_relaxed;
inline constexpr memory_order acquire = boost::memory_order_acquire;
inline constexpr memory_order release = boost::memory_order_release;
inline constexpr memory_order acq_rel = boost::memory_order_acq_rel;
inline constexpr memory_order seq_cst = boost::memory_order_seq_cst;

template <class T>
using atomic = boost::atomic<T>;

namespace impl {

/// Orders by other names than Boost's: std::memory_order, which this header does not include.
template <class Order>
concept other_order = !__is_same(Order, memory_order) && requires {
    Order::relaxed;
    Order::acquire;
    Order::release;
    Order::acq_rel;
    Order::seq_cst;
};

[[nodiscard, gnu::always_inline]] constexpr memory_order order_of(memory_order order) noexcept {
    return order;
}
/// The same order here. Any other value of it (consume) is as strong as acquire.
template <other_order Order>
[[nodiscard, gnu::always_inline]] constexpr memory_order order_of(Order other) noexcept {
    return other == Order::relaxed   ? relaxed
           : other == Order::release ? release
           : other == Order::acq_rel ? acq_rel
           : other == Order::seq_cst ? seq_cst
                                     : acquire;
}

}  // namespace impl

/// Boost's atomic, with its functions, which also take the orders of std::memory_order.
template <class T>
class shared_atomic : public boost::ipc_atomic<T> {
    using base = boost::ipc_atomic<T>;

public:
    using base::base;
    using base::operator=;
    using base::compare_exchange_strong, base::compare_exchange_weak;
    using base::load, base::store, base::exchange;

    template <impl::other_order Order>
    [[nodiscard, gnu::always_inline]] T load(Order order) const noexcept {
        return base::load(impl::order_of(order));
    }
    template <impl::other_order Order>
    [[gnu::always_inline]] void store(T value, Order order) noexcept {
        base::store(value, impl::order_of(order));
    }
    template <impl::other_order Order>
    [[gnu::always_inline]] T exchange(T value, Order order) noexcept {
        return base::exchange(value, impl::order_of(order));
    }
    template <impl::other_order... Order>
    [[gnu::always_inline]] bool compare_exchange_strong(T& expected, T desired,
                                                        Order... orders) noexcept {
        return base::compare_exchange_strong(expected, desired, impl::order_of(orders)...);
    }
    template <impl::other_order... Order>
    [[gnu::always_inline]] bool compare_exchange_weak(T& expected, T desired,
                                                      Order... orders) noexcept {
        return base::compare_exchange_weak(expected, desired, impl::order_of(orders)...);
    }
    // Not for every T, so these are compiled only where they are called.
    template <class Order = memory_order>
    [[gnu::always_inline]] T fetch_add(T value, Order order = seq_cst) noexcept {
        return base::fetch_add(value, impl::order_of(order));
    }
    template <class Order = memory_order>
    [[gnu::always_inline]] T fetch_sub(T value, Order order = seq_cst) noexcept {
        return base::fetch_sub(value, impl::order_of(order));
    }
    template <class Order = memory_order>
    [[gnu::always_inline]] T fetch_and(T value, Order order = seq_cst) noexcept {
        return base::fetch_and(value, impl::order_of(order));
    }
    template <class Order = memory_order>
    [[gnu::always_inline]] T fetch_or(T value, Order order = seq_cst) noexcept {
        return base::fetch_or(value, impl::order_of(order));
    }
    template <class Order = memory_order>
    [[gnu::always_inline]] T fetch_xor(T value, Order order = seq_cst) noexcept {
        return base::fetch_xor(value, impl::order_of(order));
    }
};

/// An atomic pointer that can be constant-initialised to an address, which Boost's cannot: for
/// words needed before the first constructor runs. Read and written as a word.
template <class T>
class atomic_pointer {
public:
    constexpr atomic_pointer(T* initial = nullptr) noexcept : initial_(initial) {}  // as boost's
    atomic_pointer(const atomic_pointer&) = delete;
    atomic_pointer& operator=(const atomic_pointer&) = delete;

    [[nodiscard, gnu::always_inline]] T* load(memory_order order) const noexcept {
        return reinterpret_cast<T*>(word_.load(order));
    }
    [[gnu::always_inline]] void store(T* value, memory_order order) noexcept {
        word_.store(reinterpret_cast<std::uintptr_t>(value), order);
    }
    T* exchange(T* value, memory_order order) noexcept {
        return reinterpret_cast<T*>(word_.exchange(reinterpret_cast<std::uintptr_t>(value), order));
    }
    bool compare_exchange_strong(T*& expected, T* desired, memory_order order) noexcept {
        auto seen = reinterpret_cast<std::uintptr_t>(expected);
        const bool done =
            word_.compare_exchange_strong(seen, reinterpret_cast<std::uintptr_t>(desired), order);
        expected = reinterpret_cast<T*>(seen);
        return done;
    }
    bool compare_exchange_weak(T*& expected, T* desired, memory_order order) noexcept {
        auto seen = reinterpret_cast<std::uintptr_t>(expected);
        const bool done =
            word_.compare_exchange_weak(seen, reinterpret_cast<std::uintptr_t>(desired), order);
        expected = reinterpret_cast<T*>(seen);
        return done;
    }

private:
    union {
        T* initial_;
        boost::atomic<std::uintptr_t> word_;
    };
};

/// Orders this thread's accesses as other threads see them.
#if defined(__SANITIZE_THREAD__)
// g++ says at each fence that ThreadSanitizer does not see it. A fence of this header's own, so
// that it does not say so in the user's build; the strongest, as nothing else of it matters there.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtsan"
[[gnu::always_inline]] inline void thread_fence(memory_order) noexcept {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
#pragma GCC diagnostic pop
#else
[[gnu::always_inline]] inline void thread_fence(memory_order order) noexcept {
    boost::atomic_thread_fence(order);
}
#endif

/// Orders this thread's accesses as a signal handler on the same thread sees them: no instruction.
[[gnu::always_inline]] inline void signal_fence(memory_order order) noexcept {
    boost::atomic_signal_fence(order);
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
[[nodiscard, gnu::always_inline]] inline shared_atomic<T>& word_at(void* base,
                                                                   std::size_t offset) noexcept {
    return *static_cast<shared_atomic<T>*>(
        static_cast<void*>(static_cast<std::byte*>(base) + offset));
}

template <class T>
[[nodiscard]] inline const shared_atomic<T>& word_at(const void* base,
                                                     std::size_t offset) noexcept {
    return *static_cast<const shared_atomic<T>*>(
        static_cast<const void*>(static_cast<const std::byte*>(base) + offset));
}

/// A number of bytes of a file, or of records, as this machine counts memory. The caller has
/// checked that it fits. Not a cast: where both types are one, that is a useless one.
[[nodiscard]] constexpr std::size_t as_size(std::uint64_t number) noexcept {
    return number & ~std::size_t{0};
}

/// Asks for the cache line of a word that will be stored to, so that it comes in one step, and
/// several lines that are requested together come together. Compilers' own prefetch for writing is
/// one for reading on x86 if they do not know the processor: the line is then fetched twice.
[[gnu::always_inline]] inline void prefetch_to_store(const volatile void* at) noexcept {
#if defined(__x86_64__) && !defined(TRACE_RING_ATOMICS_HEADER)
    asm volatile("prefetchw %0" : : "m"(*static_cast<const volatile char*>(at)));
#else
    __builtin_prefetch(const_cast<const void*>(at), 1, 3);
#endif
}

}  // namespace trace_ring::inline v1
