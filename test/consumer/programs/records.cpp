// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// Records three events into records.trace.

#include <cstdint>

#include <trace_ring/trace_ring.hpp>

namespace {

struct used : trace_ring::event<"consumer.used", trace_ring::field<"times", std::uint64_t>> {};

}  // namespace

int main() {
    trace_ring::recorder recorder{
        {.file = "records.trace", .exists = trace_ring::if_exists::replace}};
    int written = 0;
    for (std::uint64_t i = 0; i < 3; ++i) written += recorder.record<used>(i) ? 1 : 0;
    return written == 3 ? 0 : 1;
}
