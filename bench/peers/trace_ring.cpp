// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// This library, measured as its peers are.

#include <cstdint>

#include "../kinds.hpp"
#include "queue.hpp"

namespace {

namespace tr = trace_ring;

template <class Kind>
struct recorded {
    static constexpr bool counted = bench::may_be_stepped<Kind>;

    static inline tr::basic_recorder<Kind> recorder{{.size = std::uint64_t{1} << 20}};

    static void turn(bool on) {
        if (on) {
            recorder.resume();
        } else {
            recorder.pause();
        }
    }
    [[gnu::always_inline]] static void record(std::uint64_t first, std::uint64_t second) {
        recorder.template record<bench::sample>(first, second);
    }
    static double bytes() {
        return static_cast<double>(tr::record_header_bytes + bench::sample::fixed_bytes);
    }
    static double lost() { return static_cast<double>(recorder.statistics().refused_without_lane); }
};

}  // namespace

int main(int argc, char** argv) {
    bench::add_floors_of_tracers();
    bench::for_each_kind([]<class Kind>(const std::string& name, bool timed) {
        if (!timed) return;
        bench::add_tracer<recorded<Kind>>({"trace_ring_" + name, "trace_ring, " + name,
                                           "a recorder of 1 MiB, a lane for each thread",
                                           "overwrites"});
    });
#if BENCH_HAS_PER_CPU
    bench::add_tracer<recorded<bench::by_cpu>>({"trace_ring_per_cpu", "trace_ring, per_cpu",
                                                "a recorder of 1 MiB, a lane for each processor",
                                                "overwrites"});
#endif
    bench::describe({bench::own_queue, "trace_ring lossless_of_one, 1:1, room told of by 32",
                     "fixed size", "refuses"},
                    "queue");
    bench::add_one_to_one<bench::lossless<1>>(
        {"trace_ring_exact", "trace_ring lossless_of_one, 1:1", "fixed size", "refuses"});
    return bench::run(argc, argv);
}
