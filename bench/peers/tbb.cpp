// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// TBB's concurrent_bounded_queue, by the calls that do not block.

#include <tbb/concurrent_queue.h>
#include <tbb/version.h>

#include "queue.hpp"

namespace {

struct bounded {
    tbb::concurrent_bounded_queue<bench::item> queue;

    bounded() { queue.set_capacity(static_cast<std::ptrdiff_t>(bench::room)); }
    bool push(const bench::item& what) { return queue.try_push(what); }
    bool pop(bench::item& what) { return queue.try_pop(what); }
};

}  // namespace

int main(int argc, char** argv) {
    bench::add_floors_of_queues();
    const bench::about_peer peer{
        "tbb_bounded_queue", std::string("TBB bounded_queue ") + TBB_runtime_version() + ", n:n",
        "try_push", "refuses"};
    bench::add_one_to_one<bounded>(peer);
    bench::add_push_and_pop<bounded>(peer);
    return bench::run(argc, argv);
}
