// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What becomes of a record whose writer does not go on with it: it was left by longjmp, or waits
/// on another stack until that is switched to again (a fiber's, a coroutine's).
///
/// A jump leaves a frame below those that go on, on the same stack. On different stacks the
/// addresses of two frames say nothing. So a record is given up only where both frames are known to
/// lie on one stack: the thread's own, or its signal stack. Everything else stays as it is, and
/// what finds no lane then is lost as nested.
///
/// Where stacks are switched within a record, by a signal handler, the hot path cannot be taken: it
/// loads a mark and stores another, and on another stack may be done what it does not see between
/// the two. Such a thread is recognised by its first record that finds another open which is not
/// below it, or its own mark changed. From then on its first lane is retired: the hot path finds no
/// mark there that lets it in, and in the other lanes the cold path owns a mark by a swap.

#include <signal.h>

#include <cstddef>
#include <cstdint>

#include <trace_ring/recorder/lane/registry.hpp>
#include <trace_ring/recorder/site/lane.hpp>
#include <trace_ring/recorder/stack/own_stack.hpp>

namespace trace_ring::inline v1::impl {

/// Where the frame is that has a record open, seen from a record that begins.
enum class frame_is {
    open,       ///< it goes on later, as far as anybody can tell
    gone,       ///< left by a jump
    elsewhere,  ///< on another stack, or nobody knows
};

/// The stack positions from `low` to before `high`.
struct position_range {
    mark_type low = 0;
    mark_type high = 0;

    [[nodiscard]] bool has(mark_type at) const noexcept { return at >= low && at < high; }
};
[[nodiscard]] inline position_range places(const void* low, const void* high) noexcept {
    return {stack_place(low), stack_place(high)};
}

/// The own stack of the thread whose node it is, the calling one, looked for once. Signal-safe.
[[nodiscard]] inline position_range own_stack(thread_node& node) noexcept {
    // relaxed, to the end: own words; a handler in between finds the same
    if (node.stack_high.load(relaxed) == 0) {
        const address_range found = find_own_stack();
        node.stack_low.store(found.low, relaxed);
        signal_fence(seq_cst);
        node.stack_high.store(found.high != 0 ? found.high : 1, relaxed);
    }
    return places(reinterpret_cast<const void*>(node.stack_low.load(relaxed)),
                  reinterpret_cast<const void*>(node.stack_high.load(relaxed)));
}

/// Where the frame of an open record's `mark` is, seen from `opener`. Signal-safe.
[[nodiscard]] inline frame_is look_at_frame(mark_type mark, mark_type opener,
                                            thread_node& node) noexcept {
    const mark_type frame = mark & ~reserved_bit;
    const mark_type here = opener & ~reserved_bit;
    if (frame == here) return frame_is::gone;
    // Ahead of all questions: so it is in each handler that interrupts a record.
    if (frame > here) return frame_is::open;
    stack_t alternate{};
    if (::sigaltstack(nullptr, &alternate) == 0 && (alternate.ss_flags & SS_DISABLE) == 0) {
        const position_range signal_stack =
            places(alternate.ss_sp, static_cast<std::byte*>(alternate.ss_sp) + alternate.ss_size);
        if (signal_stack.has(here))
            return signal_stack.has(frame) ? frame_is::gone : frame_is::open;
        // The handler was jumped out of, or is on a stack that was switched away from.
        if (signal_stack.has(frame)) return frame_is::open;
    }
    const position_range own = own_stack(node);
    return own.has(frame) && own.has(here) ? frame_is::gone : frame_is::elsewhere;
}

/// Is a reservation gone with its frame? It may have been moved out of the frame that made it.
[[nodiscard]] inline bool reservation_is_gone(const lane_state& lane, mark_type mark,
                                              mark_type opener, thread_node& node) noexcept {
    const mark_type where = stack_place(lane.holder.load(relaxed));  // relaxed: own lane
    const mark_type frame = mark & ~reserved_bit;
    const mark_type here = opener & ~reserved_bit;
    return frame <= where && where < here && look_at_frame(frame, here, node) == frame_is::gone;
}

/// The cold path has the lane. False: it is retired, and not to be used.
[[nodiscard]] inline bool enter_lane(lane_state& lane) noexcept {
    // relaxed, to the end: own thread
    lane.opened.store((lane.opened.load(relaxed) + 1) | 1U, relaxed);
    signal_fence(seq_cst);
    return mark_of(lane).retired.load(relaxed) == 0;
}

/// From here on no record is begun in the thread's first lane. One that is open there goes on: the
/// hot path knows its sub-buffer, or finds none and takes the cold path. If the cold path has the
/// lane, it sees that it is retired when it is done (core::finish). What the lane holds is closed
/// when the thread ends.
inline void retire(lane_state& first) noexcept {
    // relaxed, to the end: own thread
    mark_of(first).retired.store(1, relaxed);
    signal_fence(seq_cst);
    if (first.opened.load(relaxed) % 2 == 0) first.sub.store(&nowhere, relaxed);
}

/// Puts a mark back that the hot path has set at `opener` before it came to the cold path; it was
/// `idle` before. A lane that was idle stays open. False: the stack was switched meanwhile, and
/// others had to do with the lane.
inline bool put_back(lane_state& lane, mark_type opener, mark_type idle) noexcept {
    // relaxed, to the end: own thread
    auto& mark = mark_of(lane).value;
    mark_type found = mark.load(relaxed);
    // Arguments may have been put on the stack since.
    if (static_cast<std::uintptr_t>(found - opener) < 256) {
        if (idle < 0 || mark.compare_exchange_strong(found, idle, relaxed)) return true;
    }
    if (found != 0) retire(lane);  // 0: this is the child of a fork
    return false;
}

}  // namespace trace_ring::inline v1::impl
