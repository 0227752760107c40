// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What the hot path reads of a recorder: its gates, and where its lanes are.

#include <cstddef>
#include <cstdint>

#include <trace_ring/atomic.hpp>
#include <trace_ring/format/words.hpp>
#include <trace_ring/recorder/site/event_type.hpp>
#include <trace_ring/recorder/site/lane.hpp>

namespace trace_ring::inline v1::impl {

class lanes_by_thread;
struct cold_path;

using layout::gate_page;

/// The distance from here to a recorder's gates. It is zero in static storage before the recorder's
/// constructor has run and after its destructor, and then the bytes from here on are taken for
/// gates: so a recorder begins with this, and is as long as a page of gates. What those bytes say
/// does not matter, because the lanes of index 0 lead to the cold path, which refuses the record.
///
/// It lies in the recorder, and not in a table by the recorder's index, because some processors
/// read their clock only when all earlier loads are done, and the gate is the longest chain of
/// them: this saves one. It is a distance and not a pointer, because null cannot be read from.
class gate_link {
public:
    void lead_to(const gate_page& page) noexcept {
        // relaxed: handing the recorder to other threads orders this; gates are advice
        distance_.store(reinterpret_cast<std::uintptr_t>(&page) - here(), relaxed);
    }
    void lead_nowhere() noexcept {
        distance_.store(0, relaxed);  // relaxed: no thread records any more
    }
    /// The gate of event `id`, where `numbered` is `id + Bias`.
    template <std::uint32_t Bias = 0>
    [[nodiscard, gnu::always_inline]] std::uint8_t look(std::uint32_t numbered) const noexcept {
        // relaxed, both: takes effect soon
        const std::uintptr_t at = here() + distance_.load(relaxed) + numbered - Bias;
        return reinterpret_cast<const shared_atomic<std::uint8_t>*>(at)->load(relaxed);
    }

private:
    [[nodiscard, gnu::always_inline]] std::uintptr_t here() const noexcept {
        return reinterpret_cast<std::uintptr_t>(this);
    }
    atomic<std::uintptr_t> distance_{0};
};

/// How code in libraries finds what the hot path needs, also of a recorder made by other code.
struct library_words {
    /// Set in `home` if its thread-local words are at no fixed distance from the thread pointer:
    /// then only the code that has those words finds the lanes (TRACE_RING_PLUGIN).
    static constexpr home_id moving = 1;

    gate_link gates;
    home_id home = 0;  ///< the registry whose numbers its gates and records have
    std::intptr_t lanes_from_thread_pointer = 0;
    std::uint32_t lanes_at = 0;
};

/// What a recorder begins with: all that its hot path reads of it. A program's code knows its own
/// thread-local words and takes the numbers of its events for the program's, without a check. For a
/// recorder that a library constructed its `gates` therefore lead every event to the cold path.
struct recorder_words {
    alignas(64) gate_link gates{};  ///< first, and aligned: lane_mark says why
    lanes_by_thread* lanes = nullptr;
    const cold_path* cold = nullptr;  ///< null: static storage, not constructed yet or no more
    std::uint32_t lanes_at = 0;       ///< in each thread's block
    std::uint32_t max_record = 0;
    library_words library;
};
static_assert(sizeof(recorder_words) == 64);

/// The pointer at `offset` bytes from the thread pointer of the calling thread. Volatile: what is
/// there changes when a thread gets its lanes.
[[nodiscard, gnu::always_inline]] inline std::byte* thread_pointer_word(
    std::intptr_t offset) noexcept {
    std::byte* value;
#if defined(__x86_64__)
    asm volatile("movq %%fs:(%1), %0" : "=r"(value) : "r"(offset));
#elif defined(__i386__)
    asm volatile("movl %%gs:(%1), %0" : "=r"(value) : "r"(offset));
#else
    auto* const at = static_cast<std::byte*>(__builtin_thread_pointer()) + offset;
    asm volatile("" : : : "memory");
    __builtin_memcpy(&value, at, sizeof value);
#endif
    return value;
}
/// Whether the calling thread's lanes can be found, and the type's numbers are those of `to`.
[[nodiscard, gnu::always_inline]] inline bool is_known_here(
    [[maybe_unused]] const recorder_words& to,
    [[maybe_unused]] const event_numbers& type) noexcept {
#if defined(TRACE_RING_LIBRARY_CODE)
    home_id home = to.library.home;
#if defined(TRACE_RING_PLUGIN)
    home &= ~library_words::moving;
#endif
    // order: type.use:F pairs with type.publish:B
    return type.home.load(acquire) == home;
#else
    return true;
#endif
}
/// The calling thread's first lane, if `is_known_here`.
[[nodiscard, gnu::always_inline]] inline lane_state* first_lane_of(const recorder_words& to,
                                                                   std::uint32_t ring) noexcept {
#if defined(TRACE_RING_LIBRARY_CODE)
#if defined(TRACE_RING_PLUGIN)
    if ((to.library.home & library_words::moving) != 0)
        return first_lane(ring, to.library.lanes_at);
#endif
    return reinterpret_cast<lane_state*>(
        thread_pointer_word(to.library.lanes_from_thread_pointer +
                            static_cast<std::intptr_t>(ring * sizeof(void*))) +
        to.library.lanes_at);
#else
    return first_lane(ring, to.lanes_at);
#endif
}
/// The gates that this code looks at.
[[nodiscard, gnu::always_inline]] inline const gate_link& gates_of(
    const recorder_words& to) noexcept {
#if defined(TRACE_RING_LIBRARY_CODE)
    return to.library.gates;
#else
    return to.gates;
#endif
}

}  // namespace trace_ring::inline v1::impl
