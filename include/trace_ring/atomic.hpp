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

}  // namespace trace_ring::inline v1
