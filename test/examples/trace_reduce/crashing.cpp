// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Records into a trace without a file, into a smaller one that a second thread has, too, and into
/// one in a file if a name is given; then it crashes or, with "wait", says so and waits.
///   crashing [wait|abort [FILE]]

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <thread>

#include <trace_ring/recorder/recorder.hpp>

namespace {
struct first_tick : trace_ring::event<"first.tick", trace_ring::field<"n", std::uint64_t>> {};
struct second_tick : trace_ring::event<"second.tick", trace_ring::field<"n", std::uint64_t>> {};
struct file_tick : trace_ring::event<"file.tick", trace_ring::field<"n", std::uint64_t>> {};
}  // namespace

int main(int argc, char** argv) {
    trace_ring::recorder first{{.size = 1 << 20}};
    trace_ring::recorder second{{.size = 1 << 18}};
    std::optional<trace_ring::recorder> file;
    if (argc > 2) file.emplace(trace_ring::recorder_options{.file = argv[2], .size = 1 << 20});
    std::thread([&second] {
        for (std::uint64_t n = 0; n < 100; ++n) second.record<second_tick>(n);
    }).join();
    for (std::uint64_t n = 0; n < 1000; ++n) {
        first.record<first_tick>(n);
        if (n % 10 == 0) second.record<second_tick>(100 + n / 10);
        if (file) file->record<file_tick>(n);
    }
    if (argc > 1 && std::string_view(argv[1]) == "wait") {
        std::puts("ready");
        std::fflush(stdout);
        ::pause();
    }
    std::abort();
}
