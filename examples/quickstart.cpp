// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// Records orders and requests of three threads into a trace file.
///   quickstart [FILE]        then: trace-reduce FILE --backward --limit 20

#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <trace_ring/trace_ring.hpp>

namespace {

struct order_sent : trace_ring::event<"order.sent", trace_ring::field<"id", std::uint64_t>,
                                      trace_ring::field<"price", double>> {
    static constexpr bool counted = true;  // its total survives the wrap
};
struct request : trace_ring::span<"request", trace_ring::field<"url", std::string_view>> {};
struct queue_depth : trace_ring::counter<"queue.depth", trace_ring::field<"value", int>> {};

void serve(trace_ring::recorder& recorder, std::uint64_t first) {
    for (std::uint64_t id = first; id < first + 1000; ++id) {
        const auto under_way = recorder.scope<request>(std::string_view("/orders/new"));
        recorder.record<queue_depth>(static_cast<int>(id % 7));
        recorder.record<order_sent>(id, 0.25 * static_cast<double>(id));
    }
}

}  // namespace

int main(int count, char** arguments) try {
    const std::string file = count > 1 ? arguments[1] : "orders.trace";
    if (file == "--help" || file == "-h") {
        std::puts("usage: quickstart [FILE]\nRecords three threads into FILE (orders.trace).");
        return 0;
    }
    trace_ring::recorder recorder{{.file = file, .exists = trace_ring::if_exists::replace}};
    std::vector<std::thread> threads;
    for (std::uint64_t i = 0; i < 3; ++i) {
        threads.emplace_back([&recorder, i] { serve(recorder, i * 1000); });
    }
    for (auto& thread : threads) thread.join();
    std::printf("recorded into %s\n", file.c_str());
    return 0;
} catch (const std::exception& error) {
    std::fprintf(stderr, "quickstart: %s\n", error.what());
    return 1;
}
