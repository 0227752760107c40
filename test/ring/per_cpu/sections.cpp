// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// A program with each restartable sequence there is, for sections.py to look at.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <trace_ring/policy/claim/per_cpu.hpp>
#include <trace_ring/policy/clock/none.hpp>
#include <trace_ring/policy/storage/heap.hpp>
#include <trace_ring/ring/ring.hpp>

namespace {
struct timed : trace_ring::policies<trace_ring::claim::per_cpu, trace_ring::storage::heap> {};
struct untimed : trace_ring::policies<trace_ring::claim::per_cpu, trace_ring::clock::none,
                                      trace_ring::storage::heap> {};

template <class Ring>
bool write_all(Ring& to, std::uint64_t a) {
    const std::array<std::uint64_t, 9> many{a, a + 1, a + 2};
    return to.write(1) && to.write(1, a) && to.write(1, a, a) && to.write(1, a, a, a) &&
           to.write(1, a, a, a, a) && to.write(1, many) &&
           to.write_bytes(1, std::as_bytes(std::span(many)));
}
}  // namespace

int main() {
    trace_ring::ring<timed> one(1 << 24);
    trace_ring::ring<untimed> other(1 << 24);
    bool all = true;
    for (std::uint64_t i = 0; i < 1000; ++i) all = write_all(one, i) && write_all(other, i) && all;
    return all ? 0 : 1;
}
