// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// What closed_site.py looks at in machine code: a function with a gate::static_key, and the same
// without anything that is traced.

#include <cstdint>

#include <trace_ring/policy/gate/flag.hpp>
#include <trace_ring/policy/gate/static_key.hpp>
#include <trace_ring/ring/ring.hpp>

namespace {
struct event {
    std::uint64_t a, b, c;
};
}  // namespace

struct kind
    : trace_ring::policies<trace_ring::record::bare<event>, trace_ring::claim::single_writer,
                           trace_ring::gate::static_key<kind>> {};
constinit trace_ring::ring<kind> ring;
constinit trace_ring::gate::flag flag;
using key = trace_ring::gate::static_key<kind>;

extern "C" {
void trace(std::uint64_t* p);

void keyed_call(std::uint64_t* p) {
    if (key::is_open()) trace(p);
}
void plain_call(std::uint64_t*) {}

void keyed_store(std::uint64_t* p, std::uint64_t a) {
    *p = a;
    if (!key::is_open()) return;
    trace(p);
}
void plain_store(std::uint64_t* p, std::uint64_t a) {
    *p = a;
}

// What is recorded is in memory: what comes in a register, a compiler may copy to another before
// it asks.
extern std::uint64_t number;

void keyed_write() {
    ring.write(number, number, number);
}
void plain_write() {}

void keyed_in_place(std::uint64_t a) {
    number = a;
    if (auto slot = ring.try_reserve()) {
        slot->a = number;
        slot->b = ~number;
        slot->c = 1;
        slot.commit();
    }
}
void plain_in_place(std::uint64_t a) {
    number = a;
}

// Positive twin: more than one instruction must be found where it is.
void loaded_call(std::uint64_t* p) {
    if (flag.is_open()) trace(p);
}
}
