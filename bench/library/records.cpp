// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// A library that records, built twice: as libraries are, and with TRACE_RING_PLUGIN.

#include <cstdint>

#include <trace_ring/recorder/recorder.hpp>

namespace {

struct sample : trace_ring::event<"sample", trace_ring::field<"first", std::uint64_t>,
                                  trace_ring::field<"second", std::uint64_t>> {};

/// A separate function, as in a program that records: in a loop, its words would be loaded only
/// once.
[[gnu::noinline]] void record_one(trace_ring::recorder& recorder, std::uint64_t i) {
    recorder.record<sample>(i, ~i);
}

}  // namespace

extern "C" [[gnu::visibility("default")]] void BENCH_FUNCTION(std::uint64_t n) {
    static trace_ring::recorder recorder{{.size = 1 << 20}};
    for (std::uint64_t i = 0; i < n; ++i) record_one(recorder, i);
}
