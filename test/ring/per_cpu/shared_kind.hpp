// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// An inline function with restartable sequences, which two translation units compile.

#include <cstdint>

#include <trace_ring/policy/claim/per_cpu.hpp>
#include <trace_ring/policy/storage/heap.hpp>
#include <trace_ring/ring/ring.hpp>

struct shared_kind : trace_ring::policies<trace_ring::claim::per_cpu, trace_ring::storage::heap> {};

[[gnu::noinline]] inline bool write_pair(trace_ring::ring<shared_kind>& to, std::uint64_t a,
                                         std::uint64_t b) {
    return to.write(1, a, b);
}
bool write_pair_elsewhere(trace_ring::ring<shared_kind>& to, std::uint64_t a, std::uint64_t b);
