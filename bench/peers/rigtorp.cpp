// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Rigtorp's SPSCQueue, whose published figures are throughput and round trips.

#include <rigtorp/SPSCQueue.h>

#include "queue.hpp"

namespace {

using bench::item;

struct one {
    rigtorp::SPSCQueue<item> queue{bench::room};

    bool push(const item& what) { return queue.try_push(what); }
    bool pop(item& what) {
        const item* const first = queue.front();
        if (first == nullptr) return false;
        what = *first;
        queue.pop();
        return true;
    }
};

}  // namespace

int main(int argc, char** argv) {
    bench::add_floors_of_queues();
    bench::add_one_to_one<one>({"rigtorp_spsc", "rigtorp SPSCQueue, 1:1", "fixed size", "refuses"});
    return bench::run(argc, argv);
}
