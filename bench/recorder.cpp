// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// The flight recorder beside its floors: private lanes in memory that is overwritten, one thread
/// and two, an event of two 64-bit fields (a record of 24 bytes) unless the name says another.

#include <cstdint>
#include <string>
#include <string_view>

#include <trace_ring/policy/clock/none.hpp>
#include <trace_ring/trace_ring.hpp>

#include "floor.hpp"

namespace {

namespace floors = bench::floor;
using floors::KiB;
using floors::MiB;

struct sample : trace_ring::event<"sample", trace_ring::field<"first", std::uint64_t>,
                                  trace_ring::field<"second", std::uint64_t>> {};
struct counted_sample
    : trace_ring::event<"sample.counted", trace_ring::field<"first", std::uint64_t>,
                        trace_ring::field<"second", std::uint64_t>> {
    static constexpr bool counted = true;
};
struct mark : trace_ring::event<"mark"> {};
struct text : trace_ring::event<"text", trace_ring::field<"text", std::string_view>> {};
struct step : trace_ring::span<"step"> {};

struct untimed {
    using clock = trace_ring::clock::none;
};

/// Two fields. What the compiler makes of this loop is the hot path.
template <class Kind, std::size_t Bytes, class Event = sample>
struct records {
    trace_ring::basic_recorder<Kind> recorder{{.size = Bytes}};

    [[gnu::noinline]] void operator()(std::uint64_t n) {
        for (std::uint64_t i = 0; i < n; ++i) recorder.template record<Event>(i, ~i);
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

struct gate_closed {
    trace_ring::recorder recorder{{.size = MiB, .paused = true}};

    [[gnu::noinline]] void operator()(std::uint64_t n) {
        for (std::uint64_t i = 0; i < n; ++i) recorder.record<sample>(i, ~i);
    }
};

struct work_and_records {
    trace_ring::recorder recorder{{.size = MiB}};

    [[gnu::noinline]] void operator()(std::uint64_t n) {
        std::uint64_t x = 1;
        for (std::uint64_t i = 0; i < n; ++i) {
            x = floors::work(x);
            recorder.record<sample>(i, ~i);
        }
        benchmark::DoNotOptimize(x);
    }
};

template <std::size_t Bytes>
void add_records() {
    using timed = records<trace_ring::recording, Bytes>;
    using bare = records<untimed, Bytes>;
    floors::add_store<3, floors::with_clock, Bytes>();
    floors::add_store<3, floors::without_clock, Bytes>();
    bench::add<timed>("recorder/exact_clock/" + floors::size_name(Bytes),
                      floors::name_of_store<3, floors::with_clock, Bytes>());
    bench::add<bare>("recorder/no_clock/" + floors::size_name(Bytes),
                     floors::name_of_store<3, floors::without_clock, Bytes>());
}

}  // namespace

int main(int argc, char** argv) {
    const std::string floor = floors::name_of_store<3, floors::with_clock, MiB>();
    floors::add_clock();
    add_records<64 * KiB>();
    add_records<MiB>();
    add_records<16 * MiB>();

    floors::add_store<3, floors::with_clock, MiB>(2);
    bench::add<records<trace_ring::recording, MiB>>("recorder/exact_clock/1MiB",
                                                    floors::with_threads(floor, 2), 2);
    floors::add_store<3, floors::without_clock, MiB>(2);
    bench::add<records<untimed, MiB>>(
        "recorder/no_clock/1MiB",
        floors::with_threads(floors::name_of_store<3, floors::without_clock, MiB>(), 2), 2);

    bench::add<records<trace_ring::recording, MiB, counted_sample>>("recorder/counted", floor);
    bench::add<records_in_memory_file>("recorder/memory_file", floor);
    bench::add<reservations>("recorder/reserve_and_commit", floor);
    bench::add<nested_records>("recorder/nested", floor);
    floors::add_store<1, floors::with_clock, MiB>();
    bench::add<records_without_fields>("recorder/no_fields",
                                       floors::name_of_store<1, floors::with_clock, MiB>());
    bench::add<spans>("recorder/span_begin_or_end",
                      floors::name_of_store<1, floors::with_clock, MiB>());
    floors::add_store<4, floors::with_clock, MiB>();
    bench::add<strings>("recorder/string_16B", floors::name_of_store<4, floors::with_clock, MiB>());

    floors::add_branch();
    bench::add<gate_closed>("recorder/gate_closed", floors::branch_name);

    floors::add_work();
    bench::add<work_and_records>("recorder/work_and_exact_clock", floors::work_name, 1,
                                 floors::calls_with_work);
    return bench::run(argc, argv);
}
