// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// How tracers are compared: each records a time and two 64-bit values in a loop, on one thread and
/// on two, after other work, and switched off. Each program also measures the floors, between the
/// repetitions, so that figures of two programs can be compared by their ratios to the floor.
///
/// A tracer is a type with:
///   static void record(std::uint64_t, std::uint64_t)
///   static void turn(bool on)
///   static double bytes()         of one record in memory or file; 0 if unknown
///   static double lost()          records, so far, that were neither kept nor overwritten as the
///                                 oldest; 0 if the tracer does not report it
///   static constexpr bool counted = false     if its instructions cannot be counted by steps
/// The program sets it up before `add_tracer`.

#include <cstdint>
#include <set>
#include <string>

#include "../floor.hpp"

namespace bench {

/// The columns of the tables next to a peer's figures.
struct about_peer {
    std::string id;    ///< what its benchmarks are called
    std::string name;  ///< with its version
    std::string mode;
    std::string when_full;
};

/// Informs the report. `kind` is tracer or queue.
inline void describe(const about_peer& peer, const std::string& kind) {
    static std::set<std::string> told;
    if (!told.insert(peer.id).second) return;
    benchmark::AddCustomContext("peer:" + peer.id,
                                kind + "|" + peer.name + "|" + peer.mode + "|" + peer.when_full);
}

namespace impl {

template <class Tracer>
inline constexpr bool may_be_counted = true;
template <class Tracer>
requires requires {
    Tracer::counted;
}
inline constexpr bool may_be_counted<Tracer> = Tracer::counted;

template <class Tracer>
struct in_loop {
    static constexpr bool counted = may_be_counted<Tracer>;

    in_loop() { Tracer::turn(true); }
    [[gnu::noinline]] void operator()(std::uint64_t n) {
        for (std::uint64_t i = 0; i < n; ++i) Tracer::record(i, ~i);
    }
    void counters(benchmark::State& state) const {
        state.counters["bytes"] = Tracer::bytes();
        state.counters["lost"] = Tracer::lost();
    }
};

template <class Tracer>
struct behind_work {
    behind_work() { Tracer::turn(true); }
    [[gnu::noinline]] void operator()(std::uint64_t n) {
        std::uint64_t x = 1;
        for (std::uint64_t i = 0; i < n; ++i) {
            x = floor::work(x);
            Tracer::record(i, ~i);
        }
        benchmark::DoNotOptimize(x);
    }
};

template <class Tracer>
struct off {
    static constexpr bool counted = may_be_counted<Tracer>;

    off() { Tracer::turn(false); }
    ~off() { Tracer::turn(true); }
    [[gnu::noinline]] void operator()(std::uint64_t n) {
        for (std::uint64_t i = 0; i < n; ++i) {
            Tracer::record(i, ~i);
            floor::forget();
        }
    }
};

}  // namespace impl

/// The floors that tracers are divided by: once a program.
inline void add_floors_of_tracers() {
    floor::add_clock();
    floor::add_payload();
    floor::add_branch();
    floor::add_work();
    for (const int threads : {1, 2}) floor::add_store<3, floor::with_clock, floor::MiB>(threads);
}

template <class Tracer>
void add_tracer(const about_peer& peer) {
    describe(peer, "tracer");
    const std::string over = floor::name_of_store<3, floor::with_clock, floor::MiB>();
    add<impl::in_loop<Tracer>>(peer.id + "/loop", over);
    add<impl::in_loop<Tracer>>(peer.id + "/loop", floor::with_threads(over, 2), 2);
    add<impl::behind_work<Tracer>>(peer.id + "/work", floor::work_name, 1, floor::calls_with_work);
    add<impl::off<Tracer>>(peer.id + "/off", floor::branch_name);
}

}  // namespace bench
