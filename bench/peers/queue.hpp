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

#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <thread>

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

}  // namespace impl

/// The floor that queues are divided by: once a program.
inline void add_floors_of_queues() {
    floor::add_clock();
}

/// One pushes, one pops.
template <class Queue>
void add_one_to_one(const about_peer& peer) {
    describe(peer, "queue");
    add<impl::one_to_one<Queue>>(peer.id + "/one_to_one", floor::clock_name, 2, 1 << 14,
                                 time_of::passing);
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
