// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Boost.Lockfree: queue and spsc_queue, both of fixed size.

#include <boost/lockfree/queue.hpp>
#include <boost/lockfree/spsc_queue.hpp>
#include <boost/version.hpp>

#include "queue.hpp"

namespace {

using bench::item;
using bench::room;

struct many {
    boost::lockfree::queue<item, boost::lockfree::capacity<room>> queue;

    bool push(const item& what) { return queue.bounded_push(what); }
    bool pop(item& what) { return queue.pop(what); }
};
struct one {
    boost::lockfree::spsc_queue<item, boost::lockfree::capacity<room>> queue;

    bool push(const item& what) { return queue.push(what); }
    bool pop(item& what) { return queue.pop(what); }
};

}  // namespace

int main(int argc, char** argv) {
    const std::string version =
        std::to_string(BOOST_VERSION / 100000) + "." + std::to_string(BOOST_VERSION / 100 % 1000);
    bench::add_floors_of_queues();
    bench::add_one_to_one<one>(
        {"boost_spsc_queue", "Boost spsc_queue " + version + ", 1:1", "fixed size", "refuses"});
    const bench::about_peer peer{"boost_queue", "Boost queue " + version + ", n:n", "fixed size",
                                 "refuses"};
    bench::add_one_to_one<many>(peer);
    bench::add_push_and_pop<many>(peer);
    return bench::run(argc, argv);
}
