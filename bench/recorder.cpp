// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file The flight recorder compared with its floors, on the private path: lanes in memory that is
/// overwritten, one thread and two, an event with two 64-bit fields (a record of 24 bytes) unless
/// the name says otherwise.

#include <cstdint>
#include <string>
#include <string_view>

#include "floor.hpp"
#include "kinds.hpp"

// Of library/records.cpp.
extern "C" void bench_in_library(std::uint64_t n);
extern "C" void bench_in_plugin(std::uint64_t n);

namespace {

namespace floors = bench::floor;
using floors::KiB;
using floors::MiB;

using bench::records;
using bench::sample;
using bench::untimed;

struct counted_sample
    : trace_ring::event<"sample.counted", trace_ring::field<"first", std::uint64_t>,
                        trace_ring::field<"second", std::uint64_t>> {
    static constexpr bool counted = true;
};
struct mark : trace_ring::event<"mark"> {};
struct text : trace_ring::event<"text", trace_ring::field<"text", std::string_view>> {};
struct step : trace_ring::span<"step"> {};

/// Each thread has its own recorder, with lanes that share nothing.
template <class Kind>
struct one_each {
    trace_ring::basic_recorder<Kind> of_thread[2]{trace_ring::basic_recorder<Kind>({.size = MiB}),
                                                  trace_ring::basic_recorder<Kind>({.size = MiB})};

    [[gnu::noinline]] void operator()(std::uint64_t n, int thread) {
        trace_ring::basic_recorder<Kind>& recorder = of_thread[thread];
        for (std::uint64_t i = 0; i < n; ++i) recorder.template record<sample>(i, ~i);
    }
};

/// The same in memory that another process may map.
struct records_in_memory_file {
    trace_ring::recorder recorder{{.memory_file = true, .size = MiB}};

    [[gnu::noinline]] void operator()(std::uint64_t n) {
        for (std::uint64_t i = 0; i < n; ++i) recorder.record<sample>(i, ~i);
    }
};

struct records_without_fields {
    trace_ring::recorder recorder{{.size = MiB}};

    [[gnu::noinline]] void operator()(std::uint64_t n) {
        for (std::uint64_t i = 0; i < n; ++i) recorder.record<mark>();
    }
};

/// A begin and an end are two records.
struct spans {
    trace_ring::recorder recorder{{.size = MiB}};

    [[gnu::noinline]] void operator()(std::uint64_t n) {
        for (std::uint64_t i = 0; i < n; i += 2) {
            const auto under_way = recorder.scope<step>();
            floors::forget();
        }
    }
};

struct strings {
    trace_ring::recorder recorder{{.size = MiB}};
    std::string what = std::string(16, 'x');

    [[gnu::noinline]] void operator()(std::uint64_t n) {
        for (std::uint64_t i = 0; i < n; ++i) recorder.record<text>(what);
    }
};

/// Reserved and committed apart.
struct reservations {
    trace_ring::recorder recorder{{.size = MiB}};

    [[gnu::noinline]] void operator()(std::uint64_t n) {
        for (std::uint64_t i = 0; i < n; ++i) {
            if (auto held = recorder.reserve<sample>(i, ~i)) held.commit();
        }
    }
};

/// In a lane one deeper, as a signal handler's records that interrupt an open one.
struct nested_records {
    trace_ring::recorder recorder{{.size = MiB}};

    [[gnu::noinline]] void operator()(std::uint64_t n) {
        const auto held = recorder.reserve<sample>(std::uint64_t{0}, std::uint64_t{0});
        for (std::uint64_t i = 0; i < n; ++i) recorder.record<sample>(i, ~i);
    }
};

/// In a shared library: what its access to the thread's words costs.
template <void (*Record)(std::uint64_t)>
struct in_library {
    [[gnu::noinline]] void operator()(std::uint64_t n) { Record(n); }
};

template <class Kind>
struct work_and_records {
    trace_ring::basic_recorder<Kind> recorder{{.size = MiB}};

    [[gnu::noinline]] void operator()(std::uint64_t n) {
        std::uint64_t x = 1;
        for (std::uint64_t i = 0; i < n; ++i) {
            x = floors::work(x);
            recorder.template record<sample>(i, ~i);
        }
        benchmark::DoNotOptimize(x);
    }
};

/// One kind of clock compared with its floors.
template <class Kind>
void add_kind(const std::string& name, bool timed) {
    const auto floor = [=](int threads) {
        return floors::with_threads(timed ? floors::name_of_store<3, floors::with_clock, MiB>()
                                          : floors::name_of_store<3, floors::without_clock, MiB>(),
                                    threads);
    };
    bench::add<records<Kind, MiB>>("recorder/" + name + "/1MiB", floor(1));
    bench::add<records<Kind, MiB>>("recorder/" + name + "/1MiB", floor(2), 2);
    bench::add<one_each<Kind>>("recorder/" + name + "/one_each", floor(2), 2);
    bench::add<work_and_records<Kind>>("recorder/" + name + "/work", floors::work_name, 1,
                                       floors::calls_with_work);
}

}  // namespace

int main(int argc, char** argv) {
    const std::string floor = floors::name_of_store<3, floors::with_clock, MiB>();
    floors::add_clock();
    floors::add_payload();
    floors::add_work();
    floors::add_work_and_clock();
    bench::add<floors::store_by_shared_readings<MiB, 16>>("floor/clock_in_16_and_store_24B/1MiB",
                                                          floor);
    for (const int threads : {1, 2}) {
        floors::add_store<3, floors::with_clock, MiB>(threads);
        floors::add_store<3, floors::without_clock, MiB>(threads);
    }
    bench::for_each_kind(
        []<class Kind>(const std::string& name, bool timed) { add_kind<Kind>(name, timed); });

#if BENCH_HAS_PER_CPU
    for (const int threads : {1, 2}) {
        bench::add<records<bench::by_cpu, MiB>>("per_cpu/1MiB",
                                                floors::with_threads(floor, threads), threads);
    }
#endif
    bench::add<records<trace_ring::recording, MiB, counted_sample>>("recorder/counted", floor);
    bench::add<records_in_memory_file>("recorder/memory_file", floor);
    bench::add<reservations>("recorder/reserve_and_commit", floor);
    bench::add<nested_records>("recorder/nested", floor);
    bench::add<in_library<&bench_in_library>>("recorder/in_library", floor);
    bench::add<in_library<&bench_in_plugin>>("recorder/in_plugin", floor);
    floors::add_store<1, floors::with_clock, MiB>();
    bench::add<records_without_fields>("recorder/no_fields",
                                       floors::name_of_store<1, floors::with_clock, MiB>());
    bench::add<spans>("recorder/span_begin_or_end",
                      floors::name_of_store<1, floors::with_clock, MiB>());
    floors::add_store<4, floors::with_clock, MiB>();
    bench::add<strings>("recorder/string_16B", floors::name_of_store<4, floors::with_clock, MiB>());
    return bench::run(argc, argv);
}
