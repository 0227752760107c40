// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file One recorder of 16 MiB, written by 1 to 1,000 threads on all processors: processor time
/// per record, without starting the threads and without each thread's first record. The recorder's
/// memory is reported, because it must not change, and so are refused records.

#include <cstdint>
#include <string>

#include "floor.hpp"
#include "kinds.hpp"

namespace {

namespace floors = bench::floor;
using floors::MiB;

/// Long enough that a thread has to give way to others in the middle.
constexpr std::int64_t turn = std::int64_t{1} << 18;

template <class Kind>
struct crowd : bench::records<Kind, 16 * MiB> {
    void counters(benchmark::State& state) const {
        bench::records<Kind, 16 * MiB>::counters(state);
        state.counters["occupied"] = static_cast<double>(this->recorder.bytes().second);
        if constexpr (requires { this->recorder.restartable(); })
            state.counters["restartable"] = this->recorder.restartable() ? 1 : 0;
    }
};

}  // namespace

int main(int argc, char** argv) {
    const std::int64_t records = bench::only_tried() ? 1 << 10 : turn;
    const std::string floor = floors::name_of_store<3, floors::with_clock, MiB>();
    floors::add_clock();
    for (const int threads : {1, 2}) floors::add_store<3, floors::with_clock, MiB>(threads);
    const auto add = [&]<class Subject>(const std::string& name) {
        for (const int threads : {1, 2, 4, 16, 64, 250, 1000})
            bench::add<Subject>("threads/" + name, floor, threads, records);
    };
    add.template operator()<crowd<trace_ring::recording>>("exact_clock");
#if BENCH_HAS_PER_CPU
    add.template operator()<crowd<bench::by_cpu>>("per_cpu");
#endif
    return bench::run(argc, argv);
}
