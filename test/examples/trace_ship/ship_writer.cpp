// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// Records numbers in a row, for tests that count what arrives elsewhere.
/// ship_writer FILE THREADS RECORDS [RATE] [BYTES] [MILLISECONDS] [AROUND]
///   FILE     if it is a trace, this joins it
///   RECORDS  of each thread; a thread's records have numbers from 0
///   RATE     records per second of each thread; 0: as fast as it can
///   BYTES    of the ring, which overwrites; 0: a file that grows, and keeps everything
///   MILLISECONDS  after which a thread ends and another goes on: its lane may leave the table; 0:
///            never
///   AROUND   records, of which each so many are in a span; 0: no such spans
/// At the end it prints how many were recorded.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <trace_ring/recorder/spans.hpp>
#include <trace_ring/trace_ring.hpp>

namespace {

struct number_written
    : trace_ring::event<"number.written", trace_ring::field<"writer", std::uint32_t>,
                        trace_ring::field<"number", std::uint64_t>,
                        trace_ring::field<"half", double>> {};
struct chapter : trace_ring::span<"chapter", trace_ring::field<"first", std::uint64_t>> {};
struct work : trace_ring::span<"work", trace_ring::field<"job", trace_ring::flow>> {};

using clock = std::chrono::steady_clock;

}  // namespace

int main(int count, char** arguments) {
    if (count < 4) return 2;
    const auto number_of = [&](int which) {
        return which < count ? std::strtoull(arguments[which], nullptr, 10) : 0;
    };
    const std::uint64_t threads = number_of(2);
    const std::uint64_t records = number_of(3);
    const std::uint64_t rate = number_of(4);
    const std::uint64_t bytes = number_of(5);
    const std::uint64_t milliseconds = number_of(6);
    const std::uint64_t around = number_of(7);
    using trace_ring::full_mode;
    trace_ring::recorder recorder(
        {.file = arguments[1],
         .size = trace_ring::as_size(bytes != 0 ? bytes : 1 << 20),
         .limit = trace_ring::as_size(bytes != 0 ? 0 : std::uint64_t{1} << 32),
         .full = bytes != 0 ? full_mode::overwrite_oldest : full_mode::extend_then_discard,
         .exists = trace_ring::if_exists::attach});
    const auto write = [&](std::uint32_t writer, std::uint64_t from, std::uint64_t until,
                           clock::time_point start, clock::time_point end) {
        std::uint64_t i = from;
        std::optional<decltype(recorder.scope<chapter>(i))> open;
        for (; i < until; ++i) {
            if (around != 0 && i % around == 0) {
                open.reset();
                open.emplace(recorder.scope<chapter>(i));
            }
            recorder.record<number_written>(writer, i, static_cast<double>(i) / 2);
            if (i % 100 == 0) {
                const auto span = recorder.scope<work>(trace_ring::flow{i});
            }
            if (i % 64 != 0) continue;
            if (rate != 0) {
                std::this_thread::sleep_until(start +
                                              std::chrono::nanoseconds(1'000'000'000 * i / rate));
            }
            if (clock::now() > end) return i + 1;
        }
        return i;
    };
    std::vector<std::thread> all;
    const auto start = clock::now();
    for (std::uint32_t t = 0; t < threads; ++t) {
        all.emplace_back([&, t] {
            for (std::uint64_t done = 0; done < records;) {
                const auto end = milliseconds != 0
                                     ? clock::now() + std::chrono::milliseconds(milliseconds)
                                     : clock::time_point::max();
                std::thread([&] { done = write(t, done, records, start, end); }).join();
            }
        });
    }
    for (auto& each : all) each.join();
    std::printf("%llu\n", static_cast<unsigned long long>(threads * records));
}
