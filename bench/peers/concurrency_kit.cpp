// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Concurrency Kit's ck_ring, of elements of 32 bytes.

#include <cstddef>
#include <cstdlib>
#include <memory>

#include <ck_cc.h>
#include <ck_md.h>
#include <ck_pr.h>
#include <ck_stdint.h>
#include <string.h>

// The header is C: it returns false for a null pointer, which C++ refuses.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#define false 0
#include <ck_ring.h>
#undef false
#pragma GCC diagnostic pop

#include "queue.hpp"

namespace {

using bench::item;

struct ring {
    ck_ring_t control;
    // One slot stays empty, and the size is a power of two.
    std::unique_ptr<item[]> memory = std::make_unique<item[]>(bench::room);

    ring() { ck_ring_init(&control, static_cast<unsigned int>(bench::room)); }
};

struct many : ring {
    bool push(const item& what) {
        return _ck_ring_enqueue_mp(&control, memory.get(), &what, sizeof what, nullptr);
    }
    bool pop(item& what) { return _ck_ring_dequeue_mc(&control, memory.get(), &what, sizeof what); }
};
struct one : ring {
    bool push(const item& what) {
        return _ck_ring_enqueue_sp(&control, memory.get(), &what, sizeof what, nullptr);
    }
    bool pop(item& what) { return _ck_ring_dequeue_sc(&control, memory.get(), &what, sizeof what); }
};

}  // namespace

int main(int argc, char** argv) {
    bench::add_floors_of_queues();
    bench::add_one_to_one<one>(
        {"ck_ring_spsc", "ck_ring " PEER_VERSION ", 1:1", "fixed size", "refuses"});
    const bench::about_peer peer{"ck_ring_mpmc", "ck_ring " PEER_VERSION ", n:n", "fixed size",
                                 "refuses"};
    bench::add_one_to_one<many>(peer);
    bench::add_push_and_pop<many>(peer);
    return bench::run(argc, argv);
}
