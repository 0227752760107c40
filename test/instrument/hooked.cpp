// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// A program that calls the hooks as a compiler would have it do, with addresses that its test
// knows. hooked WAY [COUNT]
//
// It may be compiled with -finstrument-functions: then the code that records calls them, too.

#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <trace_ring/instrument/functions.hpp>
#include <trace_ring/instrument/memory.hpp>

#define PLAIN [[gnu::no_instrument_function]]

namespace {

PLAIN void load(std::uint64_t at) {
    __trace_ring_load8(reinterpret_cast<const void*>(static_cast<std::uintptr_t>(at)));
}
PLAIN void store(std::uint64_t at) {
    __trace_ring_store4(reinterpret_cast<const void*>(static_cast<std::uintptr_t>(at)));
}
/// Block, load at `from` + 8 * i, store at `from` + 4 * i.
PLAIN void row(std::uint64_t from, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
        __trace_ring_block();
        load(from + 8 * i);
        store(from + 4 * i);
    }
}

volatile std::uint64_t handled = 0;
PLAIN void handle(int) {
    for (int i = 0; i < 3; ++i) {
        handled = handled + 1;
        load(0x50000000 + handled);
    }
}

/// [begin, end) of the mapping of a file.
PLAIN bool mapped(const char* file, std::uint64_t& begin, std::uint64_t& end) {
    std::FILE* const maps = std::fopen("/proc/self/maps", "re");
    char line[4096];
    bool found = false;
    while (maps != nullptr && std::fgets(line, sizeof line, maps) != nullptr) {
        std::uint64_t from = 0, to = 0;
        if (std::string_view(line).find(file) == std::string_view::npos) continue;
        if (std::sscanf(line, "%" SCNx64 "-%" SCNx64, &from, &to) != 2) continue;
        begin = found ? begin : from;
        end = to;
        found = true;
    }
    if (maps != nullptr) std::fclose(maps);
    return found;
}

}  // namespace

PLAIN int main(int argc, char** argv) {
    const std::string_view way = argc > 1 ? argv[1] : "row";
    const std::uint64_t count = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1000;
    if (way == "row") {
        row(0x10000000, count);
    } else if (way == "calls") {
        for (std::uint64_t i = 0; i < count; ++i) {
            __cyg_profile_func_enter(nullptr, reinterpret_cast<void*>(std::uintptr_t{0x4000}));
            __cyg_profile_func_exit(nullptr, reinterpret_cast<void*>(std::uintptr_t{0x4000}));
        }
    } else if (way == "threads") {
        std::vector<std::thread> all;
        for (std::uint64_t t = 1; t <= 4; ++t)
            all.emplace_back([=] { row(t * 0x10000000, count); });
        for (auto& each : all) each.join();
    } else if (way == "signals") {
        struct sigaction action {};
        action.sa_handler = handle;
        sigaction(SIGALRM, &action, nullptr);
        const itimerval often{{0, 50}, {0, 50}};
        setitimer(ITIMER_REAL, &often, nullptr);
        for (std::uint64_t i = 0; i < count || handled < 300; ++i) load(0x10000000 + 8 * i);
        const itimerval never{};
        setitimer(ITIMER_REAL, &never, nullptr);
        std::printf("%" PRIu64 "\n", std::uint64_t{handled});
    } else if (way == "kill") {
        row(0x10000000, count);
        raise(SIGKILL);
    } else if (way == "exit") {  // no destructor runs
        row(0x10000000, count);
        _exit(0);
    } else if (way == "fork") {
        row(0x10000000, count);
        if (fork() == 0) {
            row(0x20000000, count);
            _exit(0);
        }
        int status = 0;
        wait(&status);
        row(0x30000000, count);
    } else if (way == "exec") {
        row(0x20000000, count);
        execl("/proc/self/exe", argv[0], "row", argv[2], nullptr);
    } else if (way == "faults") {  // of the last nine tenths
        row(0x10000000, count / 10);
        rusage before{}, after{};
        getrusage(RUSAGE_SELF, &before);
        row(0x10000000, count - count / 10);
        getrusage(RUSAGE_SELF, &after);
        std::printf("%ld\n",
                    after.ru_minflt + after.ru_majflt - before.ru_minflt - before.ru_majflt);
    } else if (way == "own") {
        load(0x1000);
        for (const char* const name : {"TRACE_RING_REFERENCES", "TRACE_RING_OPEN_REFERENCES"}) {
            std::uint64_t begin = 0, end = 0;
            if (!mapped(std::getenv(name), begin, end)) return 1;
            for (const std::uint64_t at : {begin - 4, begin, begin + 4092, end}) load(at);
            std::printf("%" PRIu64 " %" PRIu64 "\n", begin - 4, end);
        }
    } else {
        return 2;
    }
    return 0;
}
