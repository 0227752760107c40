// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// DPDK: its trace library (buffers of a thread's own, overwritten) and rte_ring, without huge
/// pages and without devices.

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wvolatile"
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ring.h>
#include <rte_ring_elem.h>
#include <rte_trace.h>
#include <rte_version.h>

#include "dpdk_point.h"
#pragma GCC diagnostic pop

#include "queue.hpp"

namespace {

using bench::item;

struct trace {
    static void turn(bool on) {
        if (on) {
            rte_trace_point_enable(&__bench_sample);
        } else {
            rte_trace_point_disable(&__bench_sample);
        }
    }
    [[gnu::always_inline]] static void record(std::uint64_t first, std::uint64_t second) {
        bench_sample(first, second);
    }
    /// By how much the thread's buffer fills.
    static double bytes() {
        const auto offset = [] {
            return static_cast<const __rte_trace_header*>(RTE_PER_LCORE(trace_mem))->offset;
        };
        turn(true);
        for (;;) {
            record(1, 2);
            const std::uint32_t before = offset();
            record(1, 2);
            if (offset() > before) return offset() - before;
        }
    }
    static double lost() { return 0; }
};

/// The ring's memory is the program's own.
template <unsigned Flags>
struct ring {
    std::unique_ptr<void, void (*)(void*)> memory{
        std::aligned_alloc(RTE_CACHE_LINE_SIZE,
                           static_cast<std::size_t>(rte_ring_get_memsize_elem(
                               sizeof(item), static_cast<unsigned>(bench::room)))),
        std::free};
    rte_ring* const control = static_cast<rte_ring*>(memory.get());

    ring() {
        if (rte_ring_init(control, "bench", static_cast<unsigned>(bench::room), Flags) != 0) {
            std::fprintf(stderr, "rte_ring_init: error %d\n", rte_errno);
            std::exit(1);
        }
    }
    bool push(const item& what) {
        return rte_ring_enqueue_elem(control, const_cast<item*>(&what), sizeof what) == 0;
    }
    bool pop(item& what) { return rte_ring_dequeue_elem(control, &what, sizeof what) == 0; }
};

}  // namespace

int main(int argc, char** argv) {
    // Before DPDK ties this thread to one processor, and so all that it starts.
    bench::pin(0);
    const auto folder =
        std::filesystem::temp_directory_path() / ("bench.dpdk." + std::to_string(::getpid()));
    std::filesystem::create_directory(folder);
    const std::string into = "--trace-dir=" + folder.string();
    std::vector<std::string> given = {argv[0],
                                      "--no-huge",
                                      "-m",
                                      "64",
                                      "--no-pci",
                                      "--no-telemetry",
                                      "--no-shconf",
                                      "--lcores=0@" + std::to_string(::sched_getcpu()),
                                      "--trace=bench.sample",
                                      "--trace-mode=overwrite",
                                      "--trace-bufsz=1M",
                                      into};
    std::vector<char*> arguments;
    for (std::string& one : given) arguments.push_back(one.data());
    if (rte_eal_init(static_cast<int>(arguments.size()), arguments.data()) < 0) {
        std::filesystem::remove_all(folder);
        std::printf("rte_eal_init: %s\n", rte_strerror(rte_errno));
        return 77;
    }
    const std::string version = std::to_string(RTE_VER_YEAR) + "." +
                                (RTE_VER_MONTH < 10 ? "0" : "") + std::to_string(RTE_VER_MONTH);
    bench::add_floors_of_tracers();
    bench::add_tracer<trace>(
        {"dpdk_trace", "DPDK trace " + version, "a buffer of 1 MiB for each thread", "overwrites"});
    bench::add_one_to_one<ring<RING_F_SP_ENQ | RING_F_SC_DEQ>>(
        {"rte_ring_spsc", "rte_ring " + version + ", 1:1", "fixed size", "refuses"});
    const bench::about_peer many{"rte_ring_mpmc", "rte_ring " + version + ", n:n", "fixed size",
                                 "refuses"};
    bench::add_one_to_one<ring<0>>(many);
    bench::add_push_and_pop<ring<0>>(many);
    const int status = bench::run(argc, argv);
    rte_eal_cleanup();
    std::filesystem::remove_all(folder);
    return status;
}
