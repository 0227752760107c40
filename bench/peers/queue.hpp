// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// How queues are compared: items of 32 bytes, room for 1,024 (unless the queue knows no such
/// thing), nothing lost:
/// - one_to_one: one thread pushes and another pops, as fast as they can
/// - round_trip: one thread pushes into one queue and waits for the answer, which the other thread
///   sends through a second queue. That is the latency of two items, both ways, and what
///   rigtorp's SPSCQueue publishes
/// - push_and_pop: each of 1, 2, 4 .. threads, as many as there are processors, pushes one item and
///   pops one. (With more threads than processors some of these queues wait for a thread that is not
///   running.)
///
/// A queue is a default-constructible type with `bool push(const item&)` and `bool pop(item&)`,
/// false where it is full or empty; or with a `handle` of a thread's own that has them, made from
/// the queue. A thread that has to wait tries again, and lets others run now and then.
///
/// How long an item takes from one processor to another depends on which cores the two are at the
/// time (distance.hpp), which no floor of one thread shows. So this library's queue is measured in
/// each peer's program, between the peer's repetitions, and modes.py compares repetitions at the
/// same distance. The throughput of a queue may also have two modes at one distance: in one the
/// consumer waits for each item, and every item costs a transfer; in the other it lags behind, and
/// several items come in one transfer. `empty` and `full` report the share of items that the
/// consumer and the producer waited for.

#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
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

/// Both add one to `waited` if the queue is full, or empty, at first.
template <class Handle>
[[gnu::always_inline]] inline void push(Handle& into, std::uint64_t i, std::uint64_t& waited) {
    const item what{{i, ~i, 7, i}};
    if (into.push(what)) return;
    ++waited;
    unsigned tried = 0;
    do {
        wait(tried++);
    } while (!into.push(what));
}
template <class Handle>
[[gnu::always_inline]] inline std::uint64_t pop(Handle& from, std::uint64_t& waited) {
    item what;
    if (!from.pop(what)) {
        ++waited;
        unsigned tried = 0;
        do {
            wait(tried++);
        } while (!from.pop(what));
    }
    return what.words[0] + what.words[3];
}

template <class Queue>
struct one_to_one {
    Queue queue;
    struct alignas(128) end {
        std::uint64_t items = 0;
        std::uint64_t waited = 0;  ///< items that were waited for
    };
    end ends[2];

    [[gnu::noinline]] void operator()(std::uint64_t n, int thread) {
        typename handle_of<Queue>::type handle(queue);
        std::uint64_t waited = 0;
        if (thread == 0) {
            for (std::uint64_t i = 0; i < n; ++i) push(handle, i, waited);
        } else {
            std::uint64_t sum = 0;
            for (std::uint64_t i = 0; i < n; ++i) sum += pop(handle, waited);
            benchmark::DoNotOptimize(sum);
        }
        ends[thread].items += n;
        ends[thread].waited += waited;
    }
    /// In which of its modes the queue ran.
    void counters(benchmark::State& state) const {
        const auto share = [](const end& of) {
            return static_cast<double>(of.waited) / static_cast<double>(of.items);
        };
        state.counters["full"] = share(ends[0]);
        state.counters["empty"] = share(ends[1]);
    }
};

/// Without a pause between two tries, which on some processors takes longer than an item does.
template <class Handle>
[[gnu::always_inline]] inline void push_closely(Handle& into, std::uint64_t i) {
    const item what{{i, ~i, 7, i}};
    for (unsigned tried = 1; !into.push(what); ++tried) distance::stand_by(tried);
}
template <class Handle>
[[gnu::always_inline]] inline std::uint64_t pop_closely(Handle& from) {
    item what;
    for (unsigned tried = 1; !from.pop(what); ++tried) distance::stand_by(tried);
    return what.words[0];
}

template <class Queue>
struct round_trip {
    Queue there;
    alignas(128) Queue back;

    [[gnu::noinline]] void operator()(std::uint64_t n, int thread) {
        typename handle_of<Queue>::type out(thread == 0 ? there : back);
        typename handle_of<Queue>::type in(thread == 0 ? back : there);
        std::uint64_t wrong = 0;
        for (std::uint64_t i = 0; i < n; ++i) {
            if (thread == 0) push_closely(out, i);
            const std::uint64_t found = pop_closely(in);
            if (thread != 0) push_closely(out, found);
            wrong += found != i;
        }
        if (wrong != 0) {
            std::fprintf(stderr, "%llu answers of %llu are not what was sent\n",
                         static_cast<unsigned long long>(wrong),
                         static_cast<unsigned long long>(n));
            std::exit(1);
        }
    }
};

template <class Queue>
struct push_and_pop {
    Queue queue;

    [[gnu::noinline]] void operator()(std::uint64_t n) {
        typename handle_of<Queue>::type end(queue);
        std::uint64_t sum = 0;
        std::uint64_t waited = 0;
        for (std::uint64_t i = 0; i < n; ++i) {
            push(end, i, waited);
            sum += pop(end, waited);
        }
        benchmark::DoNotOptimize(sum);
    }
};

template <class Queue>
void add_handing_over(const std::string& id) {
    add<one_to_one<Queue>>(id + "/one_to_one", floor::clock_name, 2, 1 << 14, time_of::passing);
    add<round_trip<Queue>>(id + "/round_trip", floor::ping_pong_name, 2, 1 << 11, time_of::passing);
}

}  // namespace impl

/// This library's queue: one thread writes and one consumes, and nothing is lost. The writer is
/// informed of room `AtATime` records at a time.
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

/// This library's queue, one to one and there and back: once a program.
inline void add_own_queue() {
    static const bool added = [] {
        floor::add_ping_pong();
        impl::add_handing_over<lossless<32>>(own_queue);
        return true;
    }();
    static_cast<void>(added);
}

/// The floor that queues are divided by: once a program.
inline void add_floors_of_queues() {
    floor::add_clock();
}

/// One pushes, one pops; and there and back.
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
