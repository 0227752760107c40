// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// moodycamel's ConcurrentQueue, with tokens, which is its quickest use.

#include <concurrentqueue/concurrentqueue.h>

#include <optional>

#include "queue.hpp"

namespace {

using bench::item;

struct tokens {
    using queue_type = moodycamel::ConcurrentQueue<item>;
    queue_type queue{bench::room};

    struct handle {
        queue_type& queue;
        /// Of who pushes or pops only. A producer's token takes over what one that is gone has
        /// left, its blocks included: held by a thread that only pops, it would keep them all from
        /// the one that pushes, whose `try_enqueue` would then fail for ever.
        std::optional<moodycamel::ProducerToken> in{};
        std::optional<moodycamel::ConsumerToken> out{};

        explicit handle(tokens& of) : queue(of.queue) {}
        bool push(const item& what) {
            if (!in) in.emplace(queue);
            return queue.try_enqueue(*in, what);
        }
        bool pop(item& what) {
            if (!out) out.emplace(queue);
            return queue.try_dequeue(*out, what);
        }
    };
};

}  // namespace

int main(int argc, char** argv) {
    bench::add_floors_of_queues();
    const bench::about_peer peer{"moodycamel_tokens", "moodycamel ConcurrentQueue, n:n",
                                 "tokens, try_enqueue; ordered by producer only", "refuses"};
    bench::add_one_to_one<tokens>(peer);
    bench::add_push_and_pop<tokens>(peer);
    return bench::run(argc, argv);
}
