// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The seam's other side: what trace_ring/atomic.hpp is given as TRACE_RING_ATOMICS_HEADER. Every
/// step is the scheduler's; outside of a run it is a plain access.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <model/scheduler.hpp>

namespace trace_ring::inline v1 {

using memory_order = model::order;
inline constexpr memory_order relaxed = memory_order::relaxed;
inline constexpr memory_order acquire = memory_order::acquire;
inline constexpr memory_order release = memory_order::release;
inline constexpr memory_order acq_rel = memory_order::acq_rel;
inline constexpr memory_order seq_cst = memory_order::seq_cst;

template <class T>
class atomic {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8);

public:
    using value_type = T;
    static constexpr bool is_always_lock_free = true;

    constexpr atomic() noexcept : value_{} {}
    constexpr atomic(T initial) noexcept : value_(initial) {}
    atomic(const atomic&) = delete;
    atomic& operator=(const atomic&) = delete;

    [[nodiscard]] T load(memory_order o) const noexcept {
        return from(model::the_scheduler.load(&value_, sizeof(T), o));
    }
    void store(T value, memory_order o) noexcept {
        model::the_scheduler.store(&value_, sizeof(T), bits(value), o);
    }
    T exchange(T value, memory_order o) noexcept {
        return change(o, [value](T) { return value; });
    }
    bool compare_exchange_strong(T& expected, T desired, memory_order success,
                                 memory_order failure) noexcept {
        return swap(expected, desired, success, failure, false);
    }
    bool compare_exchange_strong(T& expected, T desired, memory_order o) noexcept {
        return swap(expected, desired, o, on_failure(o), false);
    }
    bool compare_exchange_weak(T& expected, T desired, memory_order success,
                               memory_order failure) noexcept {
        return swap(expected, desired, success, failure, true);
    }
    bool compare_exchange_weak(T& expected, T desired, memory_order o) noexcept {
        return swap(expected, desired, o, on_failure(o), true);
    }
    T fetch_add(T more, memory_order o) noexcept {
        return change(o, [more](T old) { return static_cast<T>(old + more); });
    }
    T fetch_sub(T less, memory_order o) noexcept {
        return change(o, [less](T old) { return static_cast<T>(old - less); });
    }
    T fetch_or(T with, memory_order o) noexcept {
        return change(o, [with](T old) { return static_cast<T>(old | with); });
    }
    T fetch_and(T with, memory_order o) noexcept {
        return change(o, [with](T old) { return static_cast<T>(old & with); });
    }

private:
    static std::uint64_t bits(T value) noexcept {
        std::uint64_t all = 0;
        std::memcpy(&all, &value, sizeof value);
        return all;
    }
    static T from(std::uint64_t all) noexcept {
        T value;
        std::memcpy(&value, &all, sizeof value);
        return value;
    }
    static constexpr memory_order on_failure(memory_order o) noexcept {
        return o == acq_rel ? acquire : o == release ? relaxed : o;
    }
    template <class Change>
    T change(memory_order o, Change how) noexcept {
        return from(model::the_scheduler.exchange(
            &value_, sizeof(T), o, [&](std::uint64_t old) { return bits(how(from(old))); }));
    }
    bool swap(T& expected, T desired, memory_order success, memory_order failure,
              bool weak) noexcept {
        std::uint64_t found = bits(expected);
        const bool done = model::the_scheduler.compare_exchange(
            &value_, sizeof(T), found, bits(desired), success, failure, weak);
        if (!done) expected = from(found);
        return done;
    }

    alignas(sizeof(T)) T value_;
};

template <class T>
using shared_atomic = atomic<T>;
template <class T>
using atomic_pointer = atomic<T*>;

inline void thread_fence(memory_order o) noexcept {
    model::the_scheduler.fence(o);
}
/// A fibre has no signal handlers.
inline void signal_fence(memory_order) noexcept {}

}  // namespace trace_ring::inline v1

namespace trace_ring::inline v1::notify {

inline bool barrier_for_all(bool) noexcept {
    model::the_scheduler.fence_for_all();
    return true;
}
inline bool take_part_in_barriers() noexcept {
    return true;
}

/// A futex for any word: the kernel looks at the word and queues in one step. Nobody sleeps for no
/// reason or until a time: who is not woken is stuck.
inline atomic<std::uint32_t> wakes;
inline void sleep_on(shared_atomic<std::uint32_t>& word, std::uint32_t seen, std::uint64_t,
                     bool) noexcept {
    const std::uint32_t before = wakes.fetch_add(0, relaxed);
    if (word.fetch_add(0, seq_cst) != seen) return;
    while (wakes.fetch_add(0, relaxed) == before) model::yield();
}
inline void wake_all_on(shared_atomic<std::uint32_t>&, bool) noexcept {
    wakes.fetch_add(1, seq_cst);
}

}  // namespace trace_ring::inline v1::notify
