// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What becomes of an open record that its writer does not finish: a longjmp left it, or it waits
/// on another stack until that is switched to again (a fiber's, a coroutine's).
///
/// A jump leaves a frame below those that continue, on the same stack. On different stacks the
/// addresses of two frames say nothing. So a record is given up only where both frames are known to
/// lie on one stack: the thread's own, or its signal stack. Every other open record keeps its lane,
/// and a record that then finds no lane is lost as nested.
///
/// Where a signal handler switches stacks within a record, the hot path cannot be used: it loads a
/// mark and stores another, and between the two, code on another stack may use the lane unseen.
/// Such a thread is recognised by its first record that finds an open one which is not below it, or
/// its own mark changed. From then on its first lane is retired: its mark never lets the hot path
/// in, and in the other lanes the cold path takes a mark by a swap.

#include <signal.h>

#include <cstddef>
#include <cstdint>

#include <trace_ring/recorder/site/lane.hpp>
#include <trace_ring/recorder/site/registry.hpp>
#include <trace_ring/recorder/lane/own_stack.hpp>

namespace trace_ring::inline v1::impl {

/// Where the frame with an open record is, seen from a record that begins.
enum class frame_is {
    open,       ///< it may continue later
    gone,       ///< left by a jump
    elsewhere,  ///< on another stack, or not known
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

/// The calling thread's own stack, by its node; looked for once. Signal-safe.
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
    // Asked first, because it is so in each handler that interrupts a record.
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

/// Whether a reservation is gone with its frame; it may have been moved out of that frame.
[[nodiscard]] inline bool reservation_is_gone(const lane_state& lane, mark_type mark,
                                              mark_type opener, thread_node& node) noexcept {
    const mark_type where = stack_place(lane.holder.load(relaxed));  // relaxed: own lane
    const mark_type frame = mark & ~reserved_bit;
    const mark_type here = opener & ~reserved_bit;
    return frame <= where && where < here && look_at_frame(frame, here, node) == frame_is::gone;
}

/// Marks that the cold path has the lane. False: the lane is retired, and must not be used.
[[nodiscard]] inline bool enter_lane(lane_state& lane) noexcept {
    // relaxed, to the end: own thread
    lane.opened.store((lane.opened.load(relaxed) + 1) | 1U, relaxed);
    signal_fence(seq_cst);
    return mark_of(lane).retired.load(relaxed) == 0;
}

/// From here on no record is begun in the thread's first lane. An open one continues: the hot path
/// has loaded its sub-buffer, or finds none and takes the cold path. If the cold path has the lane,
/// it sees at its end that the lane is retired (core::finish). The lane's sub-buffer is closed when
/// the thread ends.
inline void retire(lane_state& first) noexcept {
    // relaxed, to the end: own thread
    mark_of(first).retired.store(1, relaxed);
    signal_fence(seq_cst);
    if (first.opened.load(relaxed) % 2 == 0) first.sub.store(&nowhere, relaxed);
}

/// Restores a lane's mark, `idle`, which the hot path replaced at `opener` before it took the cold
/// path. If the lane was idle, it stays open. False: the stack was switched meanwhile, and other
/// records used the lane.
inline bool put_back(lane_state& lane, mark_type opener, mark_type idle) noexcept {
    // relaxed, to the end: own thread
    auto& mark = mark_of(lane).value;
    mark_type found = mark.load(relaxed);
    // Arguments may have been pushed since.
    if (static_cast<std::uintptr_t>(found - opener) < 256) {
        if (idle < 0 || mark.compare_exchange_strong(found, idle, relaxed)) return true;
    }
    if (found != 0) retire(lane);  // 0: this is the child of a fork
    return false;
}

}  // namespace trace_ring::inline v1::impl
