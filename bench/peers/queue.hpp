// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// How queues are compared: items of 32 bytes, room for 1,024 (unless the queue knows no such
/// thing), nothing lost: one thread pushes and another pops; each of 1, 2, 4 .. threads, as many as
/// there are processors, pushes one item and pops one. (With more threads than processors some of
/// these queues wait for a thread that is not running.)
///
/// A queue is a default-constructible type with `bool push(const item&)` and `bool pop(item&)`,
/// false where it is full or empty; or with a `handle` of a thread's own that has them, made from
/// the queue. A thread that has to wait tries again, and lets others run now and then.
///
/// How long an item takes from one processor to another depends on which cores the two are at the
/// time, which no floor of one thread tells. So this library's queue is measured beside each
/// peer's, between its repetitions.

#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <thread>

#include <trace_ring/ring/presets.hpp>

#include "tracer.hpp"

namespace bench {

struct item {
    std::uint64_t words[4];
};
inline constexpr std::size_t room = 1024;

namespace impl {

/// Waits a little: for the `tried`th time.
inline void wait(unsigned tried) {
    if (tried % 256 == 255) {
        ::sched_yield();
    } else {
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#endif
    }
}

template <class Queue>
struct direct {
    Queue& queue;

    explicit direct(Queue& of) : queue(of) {}
    [[gnu::always_inline]] bool push(const item& what) { return queue.push(what); }
    [[gnu::always_inline]] bool pop(item& what) { return queue.pop(what); }
};
template <class Queue>
struct handle_of {
    using type = direct<Queue>;
};
template <class Queue>
requires requires {
    typename Queue::handle;
}
struct handle_of<Queue> {
    using type = typename Queue::handle;
};

template <class Handle>
[[gnu::always_inline]] inline void push(Handle& into, std::uint64_t i) {
    const item what{{i, ~i, 7, i}};
    for (unsigned tried = 0; !into.push(what); ++tried) wait(tried);
}
template <class Handle>
[[gnu::always_inline]] inline std::uint64_t pop(Handle& from) {
    item what;
    for (unsigned tried = 0; !from.pop(what); ++tried) wait(tried);
    return what.words[0] + what.words[3];
}

template <class Queue>
struct one_to_one {
    Queue queue;

    [[gnu::noinline]] void operator()(std::uint64_t n, int thread) {
        typename handle_of<Queue>::type end(queue);
        if (thread == 0) {
            for (std::uint64_t i = 0; i < n; ++i) push(end, i);
        } else {
            std::uint64_t sum = 0;
            for (std::uint64_t i = 0; i < n; ++i) sum += pop(end);
            benchmark::DoNotOptimize(sum);
        }
    }
};

template <class Queue>
struct push_and_pop {
    Queue queue;

    [[gnu::noinline]] void operator()(std::uint64_t n) {
        typename handle_of<Queue>::type end(queue);
        std::uint64_t sum = 0;
        for (std::uint64_t i = 0; i < n; ++i) {
            push(end, i);
            sum += pop(end);
        }
        benchmark::DoNotOptimize(sum);
    }
};

template <class Queue>
void add_handing_over(const std::string& id) {
    add<one_to_one<Queue>>(id + "/one_to_one", floor::clock_name, 2, 1 << 14, time_of::passing);
}

}  // namespace impl

/// This library's: one writes and one consumes, and nothing is lost. The writer is told of room
/// `AtATime` records at a time.
template <std::uint64_t AtATime>
struct lossless {
    using ring_type = trace_ring::ring<trace_ring::presets::lossless_of_one<item, 32 * room>>;
    ring_type ring;

    struct handle {
        ring_type& ring;
        decltype(ring.consumer()) from;

        explicit handle(lossless& of) : ring(of.ring), from(ring.consumer(AtATime)) {}
        [[gnu::always_inline]] bool push(const item& what) { return ring.write(what); }
        [[gnu::always_inline]] bool pop(item& what) {
            const auto found = from.next();
            if (!found.is_record()) return false;
            what = found.record;
            return true;
        }
    };
};

inline constexpr auto own_queue = "trace_ring_lossless";

/// This library's queue, one to one: once a program.
inline void add_own_queue() {
    static const bool added = (impl::add_handing_over<lossless<32>>(own_queue), true);
    static_cast<void>(added);
}

/// The floor that queues are divided by: once a program.
inline void add_floors_of_queues() {
    floor::add_clock();
}

/// One pushes, one pops.
template <class Queue>
void add_one_to_one(const about_peer& peer) {
    describe(peer, "queue");
    add_own_queue();
    impl::add_handing_over<Queue>(peer.id);
}
/// Each does both.
template <class Queue>
void add_push_and_pop(const about_peer& peer) {
    describe(peer, "queue");
    const auto processors = static_cast<int>(std::thread::hardware_concurrency());
    for (int threads = 1; threads <= std::clamp(processors, 2, 16); threads *= 2) {
        add<impl::push_and_pop<Queue>>(peer.id + "/push_and_pop", floor::clock_name, threads);
    }
}

}  // namespace bench
