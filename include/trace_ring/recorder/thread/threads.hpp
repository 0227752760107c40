// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The process's threads, for all of its recorders: a thread gets a node with lanes, its first
/// record enters it, and a thread-specific key reports its end.
/// @code
///   claim_node --first record--> entered --its end, in each round of destructors--> lanes released
///   ending --the kernel says that it is gone--> the node is another thread's
/// @endcode
/// Destructors of other keys may record after the thread's lanes were released. The round of
/// destructors is not known if the thread's first record was in one, nor is what runs after the
/// last. So the node stays the thread's until the thread is gone, and the next thread that begins
/// releases the lanes in which it recorded last.
///
/// `release_lanes` is a function that releases the lanes of a node in all recorders. Signal-safe,
/// except for make_thread_key.

#include <pthread.h>
#include <sys/prctl.h>

#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <trace_ring/atomic.hpp>
#include <trace_ring/recorder/site/event_type.hpp>
#include <trace_ring/recorder/site/lane.hpp>
#include <trace_ring/recorder/site/open_span.hpp>
#include <trace_ring/recorder/site/registry.hpp>
#include <trace_ring/recorder/site/undisturbed.hpp>
#include <trace_ring/setup_error.hpp>

namespace trace_ring::inline v1::impl {

using release_lanes_of = void (*)(thread_node& node) noexcept;

/// Makes the key, whose function is `ends`, and a fork handler that calls `in_child` in the child:
/// once in the process. Throws setup_error about `subject`.
[[gnu::cold]] inline void make_thread_key(const char* subject, void (*ends)(void*),
                                          void (*in_child)()) {
    std::uint32_t none = 0;
    // order: key.make:A pairs with key.fail:A, key.drop:B
    if (!the_registry.key_state.compare_exchange_strong(none, 1, acquire)) return;
    if (::pthread_key_create(&the_registry.key, ends) != 0) {
        // order: key.fail:A pairs with key.make:A
        the_registry.key_state.store(0, release);
        fail_setup(subject, "cannot get a thread-specific key", EAGAIN);
    }
    static_cast<void>(::pthread_atfork(nullptr, nullptr, in_child));
    // order: key.made:A pairs with key.use:A, key.drop:A
    the_registry.key_state.store(2, release);
}
/// When a library with its own registry is unloaded, a thread that ends must not call into it.
struct thread_key_guard {
    ~thread_key_guard() {
        std::uint32_t made = 2;
        // order: key.drop:A pairs with key.made:A
        if (the_registry.key_state.compare_exchange_strong(made, 1, acquire)) {
            ::pthread_key_delete(the_registry.key);
            // order: key.drop:B pairs with key.make:A
            the_registry.key_state.store(0, release);
        }
    }
};
inline thread_key_guard the_thread_key_guard;

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

/// Enters the calling thread, with lanes for the ring. Null: there is no memory. Linear in the
/// process's threads, as are the functions below.
[[nodiscard, gnu::cold]] inline lane_block* enter_thread(std::uint32_t ring,
                                                         release_lanes_of release_lanes) noexcept {
    const undisturbed scope;
    thread_node* const node = claim_node(release_lanes);
    if (node == nullptr) return nullptr;
    lane_block* expected = &vacant_block;
    lane_block* const mine = &block_of(*node);
    char name[16] = {};
    ::prctl(PR_GET_NAME, name);
    name_thread(*node, name);
    node->stack_high.store(0, relaxed);  // relaxed: own node
    // relaxed: own word; a swap, because a handler may have been here in between
    if (!thread_lanes[ring].compare_exchange_strong(expected, mine, relaxed)) {
        release_node(*node);
        return expected;
    }
    // order: key.use:A pairs with key.made:A
    if (the_registry.key_state.load(acquire) != 2 ||
        ::pthread_setspecific(the_registry.key, node) != 0) {
        node->ending.store(1, relaxed);  // relaxed: as in end_thread, which will not be called
    }
    return mine;
}
/// Enters a thread of the other process with this entry in the file (recorder/other_thread.hpp).
[[nodiscard, gnu::cold]] inline thread_node* enter_other_thread(
    std::uint32_t slot, std::uint32_t thread, const char* name,
    release_lanes_of release_lanes) noexcept {
    const undisturbed scope;
    thread_node* const node = claim_node(release_lanes);
    if (node == nullptr) return nullptr;
    // relaxed, to the end: the node is the caller's alone
    node->other_process.store(slot + 1, relaxed);
    node->thread.store(thread, relaxed);
    name_thread(*node, name);
    return node;
}

[[gnu::cold]] inline void leave_other_thread(thread_node& node,
                                             release_lanes_of release_lanes) noexcept {
    release_lanes(node);
    node.other_process.store(0, relaxed);  // relaxed: published by the next line
    release_node(node);
}

/// The calling thread ends: `node` is the value of its key. Runs again in each round of destructors
/// but the last, in which a sanitizer's run-time is gone.
[[gnu::cold]] inline void end_thread(thread_node& node, release_lanes_of release_lanes) noexcept {
    const undisturbed scope;
    for (auto& place : thread_lanes) {
        lane_block* const block = place.load(relaxed);  // relaxed: own word
        if (block == &vacant_block) continue;
        // relaxed: own node; a thread that takes it over asks the kernel first
        node_of(*block).ending.store(1, relaxed);
        release_lanes(node_of(*block));
    }
    // relaxed: own node
    if (node.rounds.fetch_add(1, relaxed) + 2 < PTHREAD_DESTRUCTOR_ITERATIONS)
        static_cast<void>(::pthread_setspecific(the_registry.key, &node));
}
/// Releases the lanes in which threads that are gone recorded after their last destructors. Returns
/// how many threads have lanes.
inline std::uint32_t release_gone_threads(release_lanes_of release_lanes) noexcept {
    std::uint32_t count = 0;
    // order: node.gone:A pairs with node.add:A
    thread_node* node = the_registry.nodes.load(acquire);
    // relaxed: each that was pushed publishes those below it, too
    for (; node != nullptr; node = node->next.load(relaxed)) {
        if (reclaim_node(*node, release_lanes)) release_node(*node);
        if (node->other_process.load(relaxed) == 0) count += node->used.load(relaxed);
    }
    return count;
}
/// In the child of a fork: forgets other threads, and what they were doing. Wipes the marks of all
/// lanes, where the kernel did not.
inline void forget_threads() noexcept {
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
            release_node(*node);
        } else {
            node->thread.store(kernel_thread(), relaxed);
        }
    }
    own_span = {};
    the_registry.visitors.store(0, relaxed);
    all_types.forget_process();
}

}  // namespace trace_ring::inline v1::impl
