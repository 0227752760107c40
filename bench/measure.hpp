// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// How everything here is measured, so that any two figures of one program can be divided.
///
/// A benchmark is a subject: an object whose `operator()(n)` handles n records in its own loop,
/// which is not inlined. So every loop, including the floor's, is compiled alike, and the benchmark
/// library adds nothing to it. One iteration is one record (one clock read, one add). The measured
/// time is the thread's processor time, because that is what recording costs a program, and it is
/// disturbed least on a busy machine.
///
/// The label of each benchmark names the benchmark by which it is divided; `report.py` uses it.
/// Therefore each program measures the floors again, between the repetitions of its benchmarks.
/// Results of two programs are compared by their ratios to the same floor.
///
/// A subject may also have:
///   operator()(n, thread)         roles by thread: a producer and a consumer
///   prepare()                     called before each measurement, unmeasured (one thread)
///   counters(benchmark::State&)   reports more than a time: called once, at the end
///   static constexpr bool counted = true    its instructions are counted, too (instructions.hpp)

#include <benchmark/benchmark.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <vector>

#include "calm.hpp"
#include "distance.hpp"
#include "instructions.hpp"

namespace bench {

/// Which hardware threads share a processor's core, as the system lists them; empty: not known.
[[nodiscard]] inline std::string siblings(int processor) {
    std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(processor) +
                       "/topology/thread_siblings_list");
    std::string list;
    std::getline(file, list);
    return list;
}

/// The processors on which the program was started, the last one first, with one of each core
/// before the second of any core, because two threads on one core slow each other down.
[[nodiscard]] inline const std::vector<int>& processors() {
    static const std::vector<int> allowed = [] {
        std::vector<int> found;
        std::vector<int> further;
        std::set<std::string> cores;
        cpu_set_t set;
        CPU_ZERO(&set);
        if (::sched_getaffinity(0, sizeof set, &set) == 0) {
            for (int cpu = CPU_SETSIZE; cpu-- > 0;) {
                if (!CPU_ISSET(cpu, &set)) continue;
                const std::string core = siblings(cpu);
                const bool another = core.empty() || cores.insert(core).second;
                (another ? found : further).push_back(cpu);
            }
        }
        found.insert(found.end(), further.begin(), further.end());
        return found;
    }();
    return allowed;
}

/// Where two threads are measured.
[[nodiscard]] inline std::string placement() {
    const std::vector<int>& allowed = processors();
    if (allowed.size() < 2) return "one processor";
    const std::string core = siblings(allowed[0]);
    return "processors " + std::to_string(allowed[0]) + " and " + std::to_string(allowed[1]) +
           (core.empty()                   ? ""
            : core == siblings(allowed[1]) ? ", which share a core"
                                           : ", on different cores as the system sees it");
}

/// Ties the calling thread to one of them. The last ones come first, as the first one has most
/// interrupts to serve.
inline void pin(int thread) {
    const std::vector<int>& allowed = processors();
    if (allowed.empty()) return;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(allowed[static_cast<std::size_t>(thread) % allowed.size()], &one);
    static_cast<void>(::pthread_setaffinity_np(::pthread_self(), sizeof one, &one));
}

/// Whether only to see that all runs: then what takes seconds is cut short.
[[nodiscard]] inline bool only_tried() {
    static const bool given = std::getenv("BENCH_TRY") != nullptr;
    return given;
}

/// What a benchmark's time is.
enum class time_of {
    processor,  ///< the processor time of its threads, for one record
    passing,    ///< the time that passes, for one record of each thread: where threads wait
    nothing,    ///< none: what counts are its counters, taken once
};

namespace impl {

/// A subject whose type is forgotten: a call for thousands of records, and the compiler's work is
/// done once.
struct any_subject {
    any_subject() = default;
    any_subject(const any_subject&) = delete;
    any_subject& operator=(const any_subject&) = delete;
    virtual ~any_subject() = default;
    virtual void call(std::int64_t n, int thread) = 0;
    virtual bool prepare() = 0;  ///< false: there is nothing to prepare
    virtual void tell(benchmark::State& state) = 0;
};
template <class Subject>
struct holder : any_subject {
    Subject subject;

    void call(std::int64_t n, int thread) override {
        if constexpr (std::invocable<Subject&, std::uint64_t, int>) {
            subject(static_cast<std::uint64_t>(n), thread);
        } else {
            static_cast<void>(thread);
            subject(static_cast<std::uint64_t>(n));
        }
    }
    bool prepare() override {
        if constexpr (requires { subject.prepare(); }) {
            subject.prepare();
            return true;
        }
        return false;
    }
    void tell(benchmark::State& state) override {
        if constexpr (requires { subject.counters(state); }) {
            subject.counters(state);
        } else {
            static_cast<void>(state);
        }
    }
};
using maker = std::function<std::unique_ptr<any_subject>()>;

template <class Subject>
inline constexpr bool counted = false;
template <class Subject>
requires requires {
    Subject::counted;
}
inline constexpr bool counted<Subject> = Subject::counted;

inline void add(const std::string& name, const std::string& over, int threads, std::int64_t records,
                time_of what, bool count, const maker& make) {
    const auto shared = std::make_shared<std::unique_ptr<any_subject>>();
    const auto together = std::make_shared<calm::meeting>(0);
    const auto displaced = std::make_shared<std::unique_ptr<std::byte[]>>();
    const auto run = [=, turn = std::size_t{0}](benchmark::State& state) mutable {
        const int thread = state.thread_index();
        pin(thread);
        if (thread == 0) {
            // How long a line takes between two processors may depend on its address. So the
            // subject is at another address in each repetition, not at the same one in all of them.
            if (what == time_of::passing)
                *displaced = std::make_unique<std::byte[]>(128 * (turn++ % 32 + 1));
            *shared = make();
        }
        calm::watch watch(threads, what != time_of::nothing);
        watch.wait(*together, !only_tried());
        distance::watch apart(thread,
                              threads == 2 && what != time_of::nothing && processors().size() > 1);
        apart.before();
        watch.begin();
        bool warm = false;
        bool prepares = true;
        // The first step waits for all threads, so the subject is there for each of them; the last
        // does too, so none uses it any more.
        while (state.KeepRunningBatch(records)) {
            if (!warm) {
                state.PauseTiming();
                prepares = (*shared)->prepare();
                (*shared)->call(std::min(records, std::int64_t{1} << 14), thread);
                state.ResumeTiming();
                warm = true;
            }
            if (prepares) {
                state.PauseTiming();
                static_cast<void>((*shared)->prepare());
                state.ResumeTiming();
            }
            // Not where threads wait for each other: one would wait for the other's look.
            if (what != time_of::passing && watch.due()) {
                state.PauseTiming();
                watch.look();
                state.ResumeTiming();
            }
            (*shared)->call(records, thread);
        }
        watch.end();
        watch.look();
        apart.after(state);
        if (thread == 0) {
            (*shared)->tell(state);
            shared->reset();
            displaced->reset();
        }
        watch.tell(state);
        watch.leave(*together);
        state.SetLabel(over);
    };
    auto* const made = benchmark::RegisterBenchmark(name.c_str(), run);
    if (what == time_of::passing) made->UseRealTime();
    if (what == time_of::nothing) made->Iterations(1);
    if (threads > 1) made->Threads(threads);
    if (count && threads == 1) {
        instructions::add(name, [make] {
            const std::shared_ptr<any_subject> subject = make();
            return [subject](std::int64_t n) { subject->call(n, 0); };
        });
    }
}

}  // namespace impl

/// Adds a benchmark of `Subject`, to be divided by the one called `over`, if any. All `threads` of
/// a run share one subject, made for that run. Each call handles `records` records.
template <class Subject>
void add(const std::string& name, const std::string& over, int threads = 1,
         std::int64_t records = 1 << 14, time_of what = time_of::processor) {
    impl::add(name, over, threads, records, what, impl::counted<Subject>,
              [] { return std::make_unique<impl::holder<Subject>>(); });
}

/// Memory of the calling thread's own, at least `bytes` long, written to once: no page fault is
/// left in it. Aligned to a page.
[[gnu::noinline]] inline std::byte* thread_memory(std::size_t bytes) {
    struct block {
        std::byte* at = nullptr;
        std::size_t size = 0;
        ~block() { ::operator delete (at, std::align_val_t{4096}); }
    };
    static thread_local block own;
    if (own.size < bytes) {
        ::operator delete (own.at, std::align_val_t{4096});
        own.at = static_cast<std::byte*>(::operator new (bytes, std::align_val_t{4096}));
        own.size = bytes;
        for (std::size_t i = 0; i < bytes; ++i) own.at[i] = std::byte{1};
    }
    return own.at;
}

/// What the system calls the processor.
[[nodiscard]] inline std::string processor() {
    std::ifstream about("/proc/cpuinfo");
    for (std::string line; std::getline(about, line);) {
        const std::size_t colon = line.find(": ");
        if (line.rfind("model name", 0) == 0 && colon != std::string::npos)
            return line.substr(colon + 2);
    }
    return "unknown processor";
}

/// What is a main here.
inline int run(int argc, char** argv) {
    if (const auto done = instructions::run(argc, argv)) return *done;
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    benchmark::AddCustomContext("processor", processor());
    benchmark::AddCustomContext("placement", placement());
#if defined(__clang__)
    benchmark::AddCustomContext("compiler", "clang++ " __clang_version__);
#elif defined(__GNUC__)
    benchmark::AddCustomContext("compiler", "g++ " __VERSION__);
#endif
#if defined(BENCH_OPTIONS)
    benchmark::AddCustomContext("options", BENCH_OPTIONS);
#endif
    const std::size_t ran = benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
    return ran == 0 ? 1 : 0;
}

}  // namespace bench
