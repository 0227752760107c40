// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Decides whether an open record was abandoned: a longjmp left the frame that opened it.
///
/// A jump leaves a frame below those that continue, on the same stack. The addresses of frames on
/// different stacks cannot be compared: a record that is open on a fiber's stack continues when the
/// fiber does. So a record counts as abandoned only if both frames are known to lie on one stack:
/// the thread's own or its signal stack. Every other open record keeps its lane.

#include <signal.h>

#include <cstddef>

#include <trace_ring/recorder/site/lane.hpp>
#include <trace_ring/recorder/site/registry.hpp>
#include <trace_ring/recorder/thread/own_stack.hpp>

namespace trace_ring::inline v1::impl {

/// The stack positions from `low` to before `high`.
struct position_range {
    mark_type low = 0;
    mark_type high = 0;

    [[nodiscard]] bool has(mark_type at) const noexcept { return at >= low && at < high; }
};
[[nodiscard]] inline position_range positions_in(const void* low, const void* high) noexcept {
    return {stack_place(low), stack_place(high)};
}

/// The calling thread's own stack, by its node. The kernel is asked once. Signal-safe.
[[nodiscard]] inline position_range own_stack(thread_node& node) noexcept {
    // relaxed, to the end: own words; a handler in between finds the same
    if (node.stack_high.load(relaxed) == 0) {
        const address_range found = find_own_stack();
        node.stack_low.store(found.low, relaxed);
        signal_fence(seq_cst);
        node.stack_high.store(found.high != 0 ? found.high : 1, relaxed);
    }
    return positions_in(reinterpret_cast<const void*>(node.stack_low.load(relaxed)),
                        reinterpret_cast<const void*>(node.stack_high.load(relaxed)));
}

/// Whether the frame that opened a record, with this mark, was left by a jump. `opener` is the
/// frame of the record that begins now. Signal-safe.
[[nodiscard]] inline bool is_abandoned(mark_type mark, mark_type opener,
                                       thread_node& node) noexcept {
    const mark_type frame = mark & ~reserved_bit;
    const mark_type here = opener & ~reserved_bit;
    // Tested first, without a system call: the case of a handler that interrupts a record.
    if (frame >= here) return frame == here;
    stack_t alternate{};
    if (::sigaltstack(nullptr, &alternate) == 0 && (alternate.ss_flags & SS_DISABLE) == 0) {
        const position_range signal_stack = positions_in(
            alternate.ss_sp, static_cast<std::byte*>(alternate.ss_sp) + alternate.ss_size);
        // If only `here` is there, a handler on the signal stack interrupted the record. If only
        // the frame is there, it was jumped out of, or its stack was switched: not known.
        if (signal_stack.has(here) || signal_stack.has(frame))
            return signal_stack.has(here) && signal_stack.has(frame);
    }
    const position_range own = own_stack(node);
    return own.has(frame) && own.has(here);
}

/// The same for the open record of a lane of the calling thread. One that is a reservation may have
/// been moved out of the frame that opened it, and counts as abandoned only `for_want` of a lane.
[[nodiscard]] inline bool is_abandoned(lane_state& lane, mark_type mark, mark_type opener,
                                       bool for_want) noexcept {
    thread_node& node = node_around(lane);
    if ((mark & reserved_bit) == 0) return is_abandoned(mark, opener, node);
    const mark_type where = stack_place(lane.holder.load(relaxed));  // relaxed: own lane
    return for_want && (mark & ~reserved_bit) <= where && where < (opener & ~reserved_bit) &&
           is_abandoned(mark, opener, node);
}

/// Restores the mark that the hot path replaced before it took the cold path. True: the lane was
/// idle, and stays open for the record that the hot path began.
[[nodiscard]] inline bool restore_mark(lane_state& lane, mark_type idle) noexcept {
    // relaxed, to the end: own thread
    auto& mark = mark_of(lane).value;
    if (mark.load(relaxed) <= 0) return false;  // the child of a fork, whose marks are wiped
    if (idle >= 0) mark.store(idle, relaxed);
    return idle < 0;
}

}  // namespace trace_ring::inline v1::impl
