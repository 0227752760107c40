// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The kinds of recorder that are measured, and the record that they are measured with: two 64-bit
/// fields, 24 bytes with its header.

#include <cstddef>
#include <cstdint>
#include <memory>

#include <trace_ring/policy/clock/none.hpp>
#include <trace_ring/policy/clock/sampled.hpp>
#include <trace_ring/trace_ring.hpp>

// Not there yet where this is older than it.
#if __has_include(<trace_ring/policy/claim/per_cpu.hpp>)
#define BENCH_HAS_PER_CPU 1
#include <trace_ring/policy/claim/per_cpu.hpp>
#include <trace_ring/policy/storage/mapped.hpp>
#include <trace_ring/ring/ring.hpp>
#else
#define BENCH_HAS_PER_CPU 0
#endif
#if __has_include(<trace_ring/recorder/cpu/recorder.hpp>)
#define BENCH_HAS_RECORDER_BY_CPU 1
#include <trace_ring/recorder/cpu/recorder.hpp>
#else
#define BENCH_HAS_RECORDER_BY_CPU 0
#endif

#include "measure.hpp"

namespace bench {

struct sample : trace_ring::event<"sample", trace_ring::field<"first", std::uint64_t>,
                                  trace_ring::field<"second", std::uint64_t>> {};

struct untimed : trace_ring::policies<trace_ring::clock::none> {};

/// One reading of the clock in 16 records.
struct sampled_16 : trace_ring::policies<trace_ring::clock::sampled<16>> {};

#if BENCH_HAS_RECORDER_BY_CPU
/// A lane for each processor.
struct recorder_by_cpu : trace_ring::policies<trace_ring::claim::per_cpu> {};
#endif

/// Calls `each.operator()<Kind>(name, timed)` for each kind. A kind that is added here is in every
/// table that goes by kinds.
template <class Each>
void for_each_kind(Each each) {
    each.template operator()<trace_ring::recording>("exact_clock", true);
    each.template operator()<untimed>("no_clock", false);
    each.template operator()<sampled_16>("sampled_16", true);
}

/// What compilers make of this loop is the hot path.
template <class Kind, class Event = sample>
struct records_of {
    trace_ring::basic_recorder<Kind> recorder;

    explicit records_of(std::size_t bytes) : recorder({.size = bytes}) {}
    [[gnu::noinline]] void operator()(std::uint64_t n) {
        for (std::uint64_t i = 0; i < n; ++i) recorder.template record<Event>(i, ~i);
    }
    /// Records that were refused cost little: a figure is good only if there are none.
    void counters(benchmark::State& state) const {
        state.counters["refused"] = static_cast<double>(recorder.statistics().refused_without_lane);
    }
};
template <class Kind, std::size_t Bytes, class Event = sample>
struct records : records_of<Kind, Event> {
    static constexpr bool counted = Bytes == std::size_t{1} << 20;

    records() : records_of<Kind, Event>(Bytes) {}
};

#if BENCH_HAS_PER_CPU
/// The ring in which each processor has a lane: timed, and shared by any number of threads.
struct by_cpu : trace_ring::policies<trace_ring::record::sub_buffers<>, trace_ring::claim::per_cpu,
                                     trace_ring::storage::mapped> {};
template <std::size_t Bytes>
struct per_cpu_records {
    // Its instructions are not counted: each step would make the sequence begin again.
    std::unique_ptr<trace_ring::ring<by_cpu>> ring =
        std::make_unique<trace_ring::ring<by_cpu>>(Bytes);

    [[gnu::noinline]] void operator()(std::uint64_t n) {
        trace_ring::ring<by_cpu>& into = *ring;
        for (std::uint64_t i = 0; i < n; ++i) into.write(9, i, ~i);
    }
    void counters(benchmark::State& state) const {
        state.counters["refused"] =
            static_cast<double>(ring->lost()[trace_ring::loss_cause::refused]);
        state.counters["occupied"] = static_cast<double>(ring->storage().size());
        state.counters["restartable"] = ring->restartable() ? 1 : 0;
    }
};
#endif

}  // namespace bench
