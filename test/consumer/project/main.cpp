// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// A user's program: it has the library from wherever its build says, and records.

#include <cstdint>
#include <cstdio>
#include <exception>

#include <trace_ring/trace_ring.hpp>

namespace {

struct used : trace_ring::event<"consumer.used", trace_ring::field<"times", std::uint64_t>> {};

}  // namespace

int main() try {
    trace_ring::recorder recorder{{.size = 1 << 20}};
    int written = 0;
    for (std::uint64_t i = 0; i < 10; ++i) written += recorder.record<used>(i) ? 1 : 0;
    std::printf("consumer: %d records\n", written);
    return written == 10 ? 0 : 1;
} catch (const std::exception& error) {
    std::printf("consumer: %s\n", error.what());
    return 1;
}
