// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// How threads come and go: the first record, the end, a fork, the unloading of a library. And what
/// they leave behind: a lane that a thread jumped out of, sub-buffers of a session that died.

#include <pthread.h>
#include <sys/prctl.h>

#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <trace_ring/recorder/file/session_owner.hpp>
#include <trace_ring/recorder/lane/lanes_by_thread.hpp>

namespace trace_ring::inline v1::impl {

/// Closes the lanes of a thread that ends; the value of the key is its node. Destructors of other
/// keys may still record, so this runs again in each round but the last, in which a sanitizer's
/// run-time is gone. The round is not known if the thread's first record was in a destructor, nor
/// is what runs after the last one. So the node stays the thread's until the thread is gone, and
/// the next thread to come (`take_node`) closes what it recorded last.
inline void thread_ends(void* value) noexcept {
    const undisturbed scope;
    auto& node = *static_cast<thread_node*>(value);
    for (auto& place : thread_lanes) {
        lane_block* const block = place.load(relaxed);  // relaxed: own word
        if (block == &vacant_block) continue;
        // relaxed: own node; a thread that takes it over asks the kernel first
        node_of(*block).ending.store(1, relaxed);
        core::leave_all(node_of(*block));
    }
    // relaxed: own node
    if (node.rounds.fetch_add(1, relaxed) + 2 < PTHREAD_DESTRUCTOR_ITERATIONS) {
        static_cast<void>(::pthread_setspecific(the_registry.key, &node));
    }
}

inline void core::leave_all(thread_node& node) noexcept {
    for_each_core([&](core& each) { each.leave_thread(block_of(node)); });
}

/// Closes the lanes in which threads that are gone recorded after their last destructors. Returns
/// how many threads have lanes.
inline std::uint32_t core::leave_gone_threads() noexcept {
    std::uint32_t count = 0;
    // order: node.gone:A pairs with node.add:A
    thread_node* node = the_registry.nodes.load(acquire);
    // relaxed: each that was pushed publishes those below it, too
    for (; node != nullptr; node = node->next.load(relaxed)) {
        if (take_over(*node, &leave_all)) give_node(*node);
        if (node->other_process.load(relaxed) == 0) count += node->used.load(relaxed);
    }
    return count;
}

inline void core::leave_thread(lane_block& block, bool but_open) noexcept {
    for (std::size_t depth = 0; depth < lane_depths; ++depth) {
        lane_state& lane = first_lane(block)[depth];
        lane_mark& mark = mark_of(lane);
        // relaxed, to the end: own lanes, or those of threads that have stopped recording
        const bool retired = mark.retired.load(relaxed) != 0;
        if (but_open && retired) continue;  // nobody can tell whether a record is open there
        mark.retired.store(0, relaxed);
        if (mark.valid.load(relaxed) == 0) {
            // Of a parent's thread, wiped by fork: the sub-buffer may be unmapped soon.
            lane.sub.store(&nowhere, relaxed);
            if (!but_open) mark.value.store(0, relaxed);
            continue;
        }
        // As if a record were open: a handler's record must not find a lane half closed.
        mark_type found = mark.value.load(relaxed);
        while (!(but_open && found > 0) &&
               !mark.value.compare_exchange_weak(found, stack_position(), relaxed)) {
        }
        if (but_open && found > 0) continue;
        if (found > 0) book_.count_is_lost();  // gone between counting and holding?
        signal_fence(seq_cst);
        if (retired) find_again(lane);
        const bool worth_it = !but_open && !retired && has_room(*lane.sub.load(relaxed));
        const layout::lane_entry& entry = *lane.entry.load(relaxed);
        const std::uint32_t number = entry.number.load(relaxed);
        const std::uint64_t now = memory_.now();
        if (lane.sub.load(relaxed) != &nowhere) {
            const share& of = shares_[entry.ring.load(relaxed)];
            close_lane(lane, of, now);
            holdings::drop(of);
        }
        release_lane(lane, now);
        if (worth_it) offer(entry, number);
        mark.value.store(0, relaxed);
    }
}

/// Finds the sub-buffer of a retired lane, whose word `sub` points at `nowhere`.
inline void core::find_again(lane_state& lane) noexcept {
    // relaxed, to the end: own lane, or that of a thread that has stopped recording
    const position at = lane.where.load(relaxed);
    if (at == no_position) return;
    sub_buffer_header& sub = memory_.sub_buffer(slot_at(at));
    if (sub.state.load(relaxed) == state_word(at, sub_buffer_state::active)) {
        lane.sub.store(&sub, relaxed);
    }
}

/// Releases a lane that has no sub-buffer open: another lane may get its entry.
inline void core::release_lane(lane_state& lane, std::uint64_t now) noexcept {
    // relaxed, to the end: own lane, or that of a thread that has stopped recording
    layout::lane_entry& entry = *lane.entry.load(relaxed);
    entry.ended.store(now, relaxed);
    entry.high.store(lane.high.load(relaxed), relaxed);
    mark_of(lane).valid.store(0, relaxed);
    signal_fence(seq_cst);
    // order: lane.leave:A pairs with lane.take:A, lane.take:B, lane.go_on:A, table.read:B,
    // snapshot.copy:B, drain.lane:A, drain.lane:B, lane.take:C, lane.take:D
    entry.state.store(static_cast<std::uint32_t>(layout::presence::departed), release);
    signal_fence(seq_cst);
}

/// At most 16 bytes of the name.
inline void name_thread(thread_node& node, const char* name) noexcept {
    char text[16] = {};
    for (std::size_t i = 0; i < sizeof text && name[i] != 0; ++i) text[i] = name[i];
    for (std::size_t i = 0; i < 2; ++i) {
        std::uint64_t word = 0;
        std::memcpy(&word, text + i * 8, 8);
        node.name[i].store(word, relaxed);  // relaxed: own node
    }
}

inline lane_block* core::enter_thread(std::uint32_t ring) noexcept {
    const undisturbed scope;
    thread_node* const node = take_node(&leave_all);
    if (node == nullptr) return nullptr;
    lane_block* expected = &vacant_block;
    lane_block* const mine = &block_of(*node);
    char name[16] = {};
    ::prctl(PR_GET_NAME, name);
    name_thread(*node, name);
    node->stack_high.store(0, relaxed);  // relaxed: own node
    // relaxed: own word; a swap, because a handler may have been here in between
    if (!thread_lanes[ring].compare_exchange_strong(expected, mine, relaxed)) {
        give_node(*node);
        return expected;
    }
    // order: key.use:A pairs with key.made:A
    if (the_registry.key_state.load(acquire) != 2 ||
        ::pthread_setspecific(the_registry.key, node) != 0) {
        node->ending.store(1, relaxed);  // relaxed: as in thread_ends, which will not be called
    }
    return mine;
}

inline std::uint32_t core::enter_other(const process_identity& who,
                                       storage::life_lock& life) noexcept {
    const std::uint32_t slot = book_.take_process();
    if (slot != memory_.plan().process_count) memory_.enter_other(slot, who, life);
    return slot;
}

inline thread_node* core::enter_other_thread(std::uint32_t slot, std::uint32_t thread,
                                             const char* name) noexcept {
    const undisturbed scope;
    thread_node* const node = take_node(&leave_all);
    if (node == nullptr) return nullptr;
    // relaxed, to the end: the node is the caller's alone
    node->other_process.store(slot + 1, relaxed);
    node->thread.store(thread, relaxed);
    name_thread(*node, name);
    return node;
}
inline void core::leave_other_thread(thread_node& node) noexcept {
    leave_thread(block_of(node));
    node.other_process.store(0, relaxed);  // relaxed: published by the next line
    give_node(node);
}

/// Repairs a lane in which a jump left a record open, wherever the writer was. The record was never
/// committed, or its writer never learned that it was.
inline void core::recover(lane_state& lane) noexcept {
    // relaxed, to the end: own lane, and a counter
    if (mark_of(lane).valid.load(relaxed) == 0) return;
    layout::lane_entry& entry = *lane.entry.load(relaxed);
    entry.abandoned.fetch_add(1, relaxed);
    const sub_buffer_header* const sub = lane.sub.load(relaxed);
    const position at = lane.where.load(relaxed);
    const std::uint64_t active = state_word(at, sub_buffer_state::active);
    if (sub != &nowhere && sub->state.load(relaxed) == active) return;  // not on the cold path
    lane.sub.store(&nowhere, relaxed);
    if (book_.reclaim(entry) == sub_buffer_state::closed) {
        lane.where.store(entry.newest.load(relaxed), relaxed);
    } else {
        entry.newest.store(at, relaxed);
        book_.count_is_lost();  // it may have been counted already
    }
}

/// Frees what a dead process's session held: to be written again, or read by the next session.
inline void core::return_dead_session() noexcept {
    const undisturbed scope;
    const trace_bytes trace{memory_.base(), memory_.plan(), &memory_.present()};
    const auto look = [&](int fd) {
        const std::uint64_t owner = trace.ring().session_owner.load(relaxed);  // relaxed: a look
        if (owner == 0 || session_may_live(owner, fd)) return;
        storage::life_lock lock;
        if (take_session(trace, fd, lock) == 0) leave_session(trace, lock);
    };
    memory_.descriptor() < 0 ? look(-1) : memory_.on_locks(look);
}

/// When a library with a registry of its own is unloaded, a thread that ends must not call into it.
struct key_guard {
    ~key_guard() {
        std::uint32_t made = 2;
        // order: key.drop:A pairs with key.made:A
        if (the_registry.key_state.compare_exchange_strong(made, 1, acquire)) {
            ::pthread_key_delete(the_registry.key);
            // order: key.drop:B pairs with key.make:A
            the_registry.key_state.store(0, release);
        }
    }
};
inline key_guard the_key_guard;

/// Forgets other threads' lanes in a child of a fork, where the kernel did not wipe them.
inline void forget_lanes_in_child() noexcept {
    // relaxed, to the end: the child has one thread, and fork orders all that was before
    for (thread_node* node = the_registry.nodes.load(relaxed); node != nullptr;
         node = node->next.load(relaxed)) {
        lane_block& block = block_of(*node);
        for (auto& mark : block.marks) {
            mark.value.store(0, relaxed);
            mark.valid.store(0, relaxed);
        }
        bool own = false;
        for (const auto& place : thread_lanes) own = own || place.load(relaxed) == &block;
        if (!own) {
            give_node(*node);
        } else {
            node->thread.store(kernel_thread(), relaxed);
        }
    }
    own_span = {};
    the_registry.visitors.store(0, relaxed);
    all_types.forget_process();
    for_each_core([](core& each) { each.forget_process(); });
}

}  // namespace trace_ring::inline v1::impl

#include <trace_ring/recorder/lane/lane_sub_buffers.hpp>
