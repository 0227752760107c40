// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Cost against the ring's size, 64 KiB to 256 MiB, and against the payload, 0 to 1,024 bytes; the
/// bytes that a record takes, in memory and in a file.

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>

#include <sys/stat.h>

#include <trace_ring/reduce/trace_file.hpp>

#include "floor.hpp"
#include "kinds.hpp"

namespace {

namespace floors = bench::floor;
using floors::KiB;
using floors::MiB;

template <std::size_t Words>
struct words
    : trace_ring::event<"words", trace_ring::field<"words", std::array<std::uint64_t, Words>>> {
    [[gnu::always_inline]] static void record(trace_ring::recorder& into, std::uint64_t i) {
        std::array<std::uint64_t, Words> values;
        for (std::size_t k = 0; k < Words; ++k) values[k] = k % 2 == 0 ? i : ~i;
        into.record<words>(values);
    }
};
template <>
struct words<0> : trace_ring::event<"nothing"> {
    [[gnu::always_inline]] static void record(trace_ring::recorder& into, std::uint64_t) {
        into.record<words>();
    }
};

template <std::size_t Words>
struct payload {
    trace_ring::recorder recorder{{.size = MiB}};

    [[gnu::noinline]] void operator()(std::uint64_t n) {
        for (std::uint64_t i = 0; i < n; ++i) words<Words>::record(recorder, i);
    }
};

/// A full file of records of 24 bytes: how far they lie apart, and what the file takes for each,
/// its header, index and dictionary included.
struct in_file {
    static constexpr std::size_t size = 256 * MiB;

    void operator()(std::uint64_t) {}
    static void counters(benchmark::State& state) {
        trace_ring::recorder recorder{{.memory_file = true, .size = size}};
        const auto [memory, bytes] = recorder.bytes();
        for (std::uint64_t i = 0; i < size / 24; ++i) recorder.record<bench::sample>(i, ~i);
        const auto trace = trace_ring::reduce::trace_file::from({memory, bytes});
        std::uint64_t count = 0;
        double stride = 0;
        for (auto cursor = trace.forward({}, trace_ring::reduce::merging::by_lane);
             const auto* item = cursor.next();) {
            const auto* const record = std::get_if<trace_ring::reduce::record_view>(item);
            if (record == nullptr) continue;
            ++count;
            stride =
                static_cast<double>(trace_ring::record_header_bytes + record->payload().size());
        }
        struct stat file {};
        static_cast<void>(::fstat(recorder.descriptor(), &file));
        state.counters["stride"] = stride;
        state.counters["file_bytes"] =
            static_cast<double>(file.st_size) / static_cast<double>(count);
    }
};

template <std::size_t Bytes>
void add_size() {
    floors::add_store<3, floors::with_clock, Bytes>();
    floors::add_store<3, floors::without_clock, Bytes>();
    bench::for_each_kind([]<class Kind>(const std::string& name, bool timed) {
        bench::add<bench::records<Kind, Bytes>>(
            "size/" + name + "/" + floors::size_name(Bytes),
            timed ? floors::name_of_store<3, floors::with_clock, Bytes>()
                  : floors::name_of_store<3, floors::without_clock, Bytes>());
    });
}

template <std::size_t Bytes>
void add_payload() {
    // That of 24 bytes is there, as one of the sizes.
    if (Bytes != 16) floors::add_store<Bytes / 8 + 1, floors::with_clock, MiB>();
    bench::add<payload<Bytes / 8>>("payload/exact_clock/" + std::to_string(Bytes) + "B",
                                   floors::name_of_store<Bytes / 8 + 1, floors::with_clock, MiB>());
}

template <std::size_t... Bytes>
void add_sizes(std::index_sequence<Bytes...>) {
    (add_size<Bytes>(), ...);
}
template <std::size_t... Bytes>
void add_payloads(std::index_sequence<Bytes...>) {
    (add_payload<Bytes>(), ...);
}

}  // namespace

int main(int argc, char** argv) {
    floors::add_clock();
    add_sizes(
        std::index_sequence<64 * KiB, 256 * KiB, MiB, 4 * MiB, 16 * MiB, 64 * MiB, 256 * MiB>());
    add_payloads(std::index_sequence<0, 16, 64, 256, 1024>());
    bench::add<in_file>("size/bytes", "", 1, 1, bench::time_of::nothing);
    return bench::run(argc, argv);
}
