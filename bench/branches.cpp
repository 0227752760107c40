// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file Branch records: the cost of one step of a stepped program, compared with the bare ptrace
/// loop over the same program; and the cost per record of draining a debug store in place, compared
/// with copying its bytes. Measures nothing on machines without these.

#include "floor.hpp"
#include "kinds.hpp"

#if defined(__x86_64__)
#if !defined(TRACE_RING_ENABLE_X86_DS)
#define TRACE_RING_ENABLE_X86_DS
#endif
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <branch_trace/step/single_step.hpp>
#include <trace_ring/drain/session.hpp>
#include <trace_ring/x86/ds/branch_store.hpp>
#include <trace_ring/x86/ds/simulated_cpu.hpp>

namespace {

namespace floors = bench::floor;
namespace tr = trace_ring;

/// Never ends, and does what programs do: calls, returns, jumps, short runs between them.
const std::vector<std::string> endless{"/bin/sh", "-c", "while :; do :; done"};

/// The least that stepping takes: a request and a wait for each instruction.
class bare_steps {
public:
    bare_steps() : child_(::fork()) {
        if (child_ == 0) {
            ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
            ::execl(endless[0].c_str(), endless[0].c_str(), endless[1].c_str(), endless[2].c_str(),
                    static_cast<char*>(nullptr));
            ::_exit(127);
        }
        int status = 0;
        if (child_ < 0 || ::waitpid(child_, &status, __WALL) != child_ || !WIFSTOPPED(status)) {
            throw std::runtime_error("bench/branches: a program cannot be stepped here");
        }
    }
    bare_steps(const bare_steps&) = delete;
    bare_steps& operator=(const bare_steps&) = delete;
    ~bare_steps() {
        ::kill(child_, SIGKILL);
        ::waitpid(child_, nullptr, __WALL);
    }

    [[gnu::noinline]] void operator()(std::uint64_t n) const {
        for (std::uint64_t i = 0; i < n; ++i) {
            int status = 0;
            ::ptrace(PTRACE_SINGLESTEP, child_, nullptr, nullptr);
            ::waitpid(child_, &status, __WALL);
        }
    }

private:
    pid_t child_;
};

/// The same program with its branches reported.
struct stepped {
    branch_trace::single_step program{endless, {.steps_a_read = 64}};
    std::uint64_t sum = 0;

    [[gnu::noinline]] void operator()(std::uint64_t n) {
        const std::uint64_t until = program.steps() + n;
        while (program.steps() < until) {
            program.read([this](const tr::x86::branch& one) { sum += one.to() - one.from(); });
        }
        benchmark::DoNotOptimize(sum);
    }
};

constexpr std::int64_t stored = 1 << 14;  // records of a full buffer

/// A debug store that a simulated processor has filled, emptied by a session: each record visited.
struct drained_store {
    using model = tr::record::lp64;

    tr::x86::simulated_memory memory;
    tr::x86::simulated_cpu<model> processor{memory};
    tr::x86::branch_store<model, tr::x86::simulated_cpu<model>> store{
        processor,
        tr::x86::detect(processor, processor, tr::x86::processor_mode::ia32e),
        {.records = stored + 1, .threshold = stored}};
    std::uint64_t sum = 0;

    drained_store() {
        memory.map(store.linear(), {store.storage().data(), store.storage().size()});
        store.start();
    }
    void prepare() {
        for (std::uint64_t i = 0; i < stored; ++i) processor.branch(i, i + 16);
    }
    [[gnu::noinline]] void operator()(std::uint64_t n) {
        tr::drain::session session(store);
        const std::uint64_t there =
            session.for_each_record([this](const auto& record) { sum += record.to - record.from; });
        if (there != n) throw std::runtime_error("bench/branches: the buffer was not full");
        benchmark::DoNotOptimize(sum);
    }
};

/// What a drain that copies would have to do at least.
struct copied_records {
    std::vector<tr::record::branch_record64> from{stored}, to{stored};

    [[gnu::noinline]] void operator()(std::uint64_t n) {
        std::memcpy(to.data(), from.data(), n * sizeof from[0]);
        benchmark::DoNotOptimize(to.data());
        benchmark::ClobberMemory();
    }
};

}  // namespace
#endif

int main(int argc, char** argv) {
    bench::add<floors::loop>("floor/loop", "");
#if defined(__x86_64__)
    bench::add<bare_steps>("floor/bare_ptrace", "", 1, 1000, bench::time_of::passing);
    bench::add<copied_records>("floor/copied_records", "", 1, stored);
    bench::add<drained_store>("branches/drain", "floor/copied_records", 1, stored);
    bench::add<stepped>("branches/single_step", "floor/bare_ptrace", 1, 1000,
                        bench::time_of::passing);
#endif
    return bench::run(argc, argv);
}
