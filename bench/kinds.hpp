// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The kinds of recorder that are measured, and the record that they are measured with: two 64-bit
/// fields, 24 bytes with its header.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <trace_ring/policy/clock/none.hpp>
#include <trace_ring/policy/clock/sampled.hpp>
#include <trace_ring/trace_ring.hpp>

// Not there yet where this is older than it.
#if __has_include(<trace_ring/recorder/cpu/recorder.hpp>)
#define BENCH_HAS_PER_CPU 1
#include <trace_ring/policy/claim/per_cpu.hpp>
#include <trace_ring/recorder/cpu/recorder.hpp>
#else
#define BENCH_HAS_PER_CPU 0
#endif

#include "measure.hpp"

namespace bench {

struct sample : trace_ring::event<"sample", trace_ring::field<"first", std::uint64_t>,
                                  trace_ring::field<"second", std::uint64_t>> {};

struct untimed : trace_ring::policies<trace_ring::clock::none> {};

/// One reading of the clock in 16 records.
struct sampled_16 : trace_ring::policies<trace_ring::clock::sampled<16>> {};

/// A lane for each processor.
struct by_cpu;
#if BENCH_HAS_PER_CPU
struct by_cpu : trace_ring::policies<trace_ring::claim::per_cpu> {};
#endif
/// Whether instructions can be counted: each step makes a restartable sequence begin again.
template <class Kind>
inline constexpr bool may_be_stepped = !std::is_same_v<Kind, by_cpu>;

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
    static constexpr bool counted = Bytes == std::size_t{1} << 20 && may_be_stepped<Kind>;

    records() : records_of<Kind, Event>(Bytes) {}
};

}  // namespace bench
