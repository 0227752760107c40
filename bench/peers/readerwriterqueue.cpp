// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// moodycamel's ReaderWriterQueue, by the calls that do not allocate.

#include <readerwriterqueue/readerwriterqueue.h>

#include "queue.hpp"

namespace {

using bench::item;

struct one {
    moodycamel::ReaderWriterQueue<item> queue{bench::room};

    bool push(const item& what) { return queue.try_enqueue(what); }
    bool pop(item& what) { return queue.try_dequeue(what); }
};

}  // namespace

int main(int argc, char** argv) {
    bench::add_floors_of_queues();
    bench::add_one_to_one<one>({"moodycamel_readerwriter", "moodycamel ReaderWriterQueue, 1:1",
                                "try_enqueue, blocks of at most 512 items", "refuses"});
    return bench::run(argc, argv);
}
