// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// A reader that sleeps until the ring is half full, and then takes whole sub-buffers out of it,
/// without a copy. The writer waits for room instead of losing records.
///   threshold_drain FILE     writes the payloads to FILE

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <thread>

#include <trace_ring/ring/drain.hpp>
#include <trace_ring/rings.hpp>

namespace {

using namespace std::chrono_literals;
using trace_ring::notify::at_watermark;
using trace_ring::notify::by_futex;
using trace_ring::notify::percent;

struct samples
    : trace_ring::policies<trace_ring::record::sub_buffers<4096>, trace_ring::full::block<10s>,
                           trace_ring::storage::inline_bytes<64 * 1024>,
                           at_watermark<percent(50), by_futex>> {};
trace_ring::ring<samples> ring;

constexpr std::uint16_t sample = 1;  // the id of these records
constexpr std::uint64_t total = 100'000;

}  // namespace

int main(int count, char** arguments) try {
    std::FILE* const out = count == 2 ? std::fopen(arguments[1], "wb") : nullptr;
    if (out == nullptr) {
        std::fputs("usage: threshold_drain FILE\n", stderr);
        return 2;
    }
    trace_ring::drain::session session(ring);
    trace_ring::drain::listener listener(ring, session.source());

    std::atomic<bool> written = false;
    std::thread writer([&] {
        for (std::uint64_t number = 0; number < total; ++number) ring.write(sample, number);
        written = true;
    });
    const auto save = [out](const auto& record) {
        std::fwrite(record.payload.data(), 1, record.payload.size_bytes(), out);
    };
    unsigned wakeups = 0;
    while (!written) {
        // True: half of the ring is unread. False: 10 ms have passed.
        if (listener.wait(10ms)) ++wakeups;
        session.for_each_record(save);
    }
    writer.join();
    session.finish_records(save);  // also those in the sub-buffer that is not full

    std::printf("%llu records, %llu lost, %s\n", static_cast<unsigned long long>(session.records()),
                static_cast<unsigned long long>(session.lost().total()),
                wakeups > 0 ? "woken at the threshold" : "never woken");
    return std::fclose(out) == 0 ? 0 : 1;
} catch (const std::exception& error) {
    std::fprintf(stderr, "threshold_drain: %s\n", error.what());
    return 1;
}
