// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file branch-trace: records the branches of a program in a trace file.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <exception>
#include <string>
#include <vector>

#include <trace_ring/policy/storage/mapping.hpp>
#include <trace_ring/recorder/recorder.hpp>
#include <trace_ring/x86/branch_source.hpp>
#include <trace_ring/x86/linux/perf_bts.hpp>
#include <trace_ring/x86/linux/perf_host.hpp>

#include "../launching/launched_program.hpp"
#include "../launching/signals.hpp"
#include "../shown.hpp"
#include "branch_log.hpp"
#include "branch_writer.hpp"
#include "options.hpp"
#include "step/single_step.hpp"

namespace branch_trace {
namespace {

using launching::launched_program;
using launching::signal_taker;

namespace x86 = trace_ring::x86;

/// Shows the progress to the user, if standard error is a terminal.
class progress {
public:
    explicit progress(bool wanted) : wanted_(wanted && ::isatty(STDERR_FILENO) != 0) {}
    progress(const progress&) = delete;
    progress& operator=(const progress&) = delete;
    ~progress() { clear(); }
    void clear() {
        if (shown_) std::fputs("\r\x1b[K", stderr);
        shown_ = false;
    }
    void tell(std::uint64_t number, const char* of_what) {
        if (!wanted_) return;
        const std::time_t now = std::time(nullptr);
        if (now < told_ + 1) return;
        shown_ = shown_ || told_ != 0;
        if (shown_) std::fprintf(stderr, "\rbranch-trace: %" PRIu64 " %s", number, of_what);
        told_ = now;
    }

private:
    bool wanted_;
    bool shown_ = false;
    std::time_t told_ = 0;
};

[[nodiscard]] trace_ring::recorder_options trace_options(const options& wanted) {
    trace_ring::recorder_options o;
    o.file = wanted.output;
    o.size = wanted.size;
    o.exists = trace_ring::if_exists::replace;
    return o;
}

[[nodiscard]] std::string joined(const std::vector<std::string>& command) {
    std::string all;
    for (const auto& each : command) all += (all.empty() ? "" : " ") + each;
    return all;
}

/// The trace being written, for any source.
class traced {
public:
    traced(const options& wanted, const std::string& source, const std::string& why)
        : wanted_(wanted),
          recorder_(trace_options(wanted)),
          log_(recorder_, wanted.size,
               {source, why, wanted.buffer, threshold_of(wanted), joined(wanted.command)}),
          told(!wanted.quiet),
          writer(log_, wanted.buffer, threshold_of(wanted)) {
        if (!wanted.quiet && wanted.from == source::automatic) {
            complain("branch-trace", "by " + source + ": " + why);
        }
    }

    /// Everything has been read. `status` is in the form of waitpid(2). Returns the exit status.
    int finish(::pid_t process, int status, const std::string& how_much) {
        writer.finish();
        log_.process_ended(static_cast<std::uint32_t>(process),
                           WIFEXITED(status) ? WEXITSTATUS(status) : 0,
                           WIFSIGNALED(status) ? WTERMSIG(status) : 0);
        if (!wanted_.quiet) {
            told.clear();
            std::fprintf(stderr,
                         "branch-trace: %" PRIu64 " branches of %zu thread%s%s, %" PRIu64
                         " drains: %s\n",
                         writer.branches(), writer.threads(), writer.threads() == 1 ? "" : "s",
                         how_much.c_str(), writer.drains(), wanted_.output.c_str());
            tell_gaps();
        }
        return launching::exit_status(status);
    }

private:
    /// Prints how many places have lost branches, and how to avoid this, with the options of this
    /// program.
    void tell_gaps() const {
        if (writer.gaps() == 0) return;
        std::string text = "branches may be missing in " + std::to_string(writer.gaps()) +
                           (writer.gaps() == 1 ? " place" : " places");
        if (const auto& advice = writer.advice()) {
            text += ": " + to_string(*advice);
            if (advice->remedy != x86::loss_remedy::none)
                text += advice->buffer == x86::loss_buffer::aux_area
                            ? " (options --aux and --aux-watermark)"
                        : advice->buffer == x86::loss_buffer::events
                            ? " (option --aux-events)"
                            : " (options --buffer, in bytes, "
                              "and --threshold)";
        }
        complain("branch-trace", text);
    }

    [[nodiscard]] static std::uint64_t threshold_of(const options& wanted) {
        return wanted.threshold != 0 ? wanted.threshold : wanted.buffer / 48;
    }

    const options& wanted_;
    trace_ring::recorder recorder_;
    branches::branch_log log_;

public:
    progress told;
    branches::branch_writer writer;
};

int by_steps(const options& wanted, const std::string& why) {
    step_options how;
    how.follow_forks = wanted.follow_forks;
    how.system_calls = false;  // no branches: a processor's store of a program's branches does not
                               // have them either
    single_step source(wanted.command, how);
    const signal_taker taking(
        source.process(), [](void* of) { static_cast<single_step*>(of)->stop(); }, &source);
    traced trace(wanted, "single steps", why);
    while (!source.ended() && !source.stopped()) {
        source.read(trace.writer);
        trace.told.tell(source.steps(), "instructions");
    }
    const bool stopped = !source.ended();
    trace.writer.finish();  // while the process still exists and its mappings can be read
    if (stopped) source.kill();
    const int exit = trace.finish(source.process(), source.status().value_or(SIGKILL),
                                  ", " + std::to_string(source.steps()) + " instructions");
    return stopped ? 128 + signal_taker::last() : exit;
}

/// For the program's first thread only, because Linux's AUX area cannot be attached to more.
int by_store(const options& wanted, launched_program& program, x86::perf_bts& source,
             const std::string& why) {
    const signal_taker taking(
        program.process(),
        [](void* of) { ::kill(static_cast<launched_program*>(of)->process(), SIGKILL); }, &program);
    traced trace(wanted, "the processor's branch trace store", why);
    program.go();
    const auto thread = static_cast<std::uint32_t>(program.process());
    const x86::visiting take{[&](x86::branch b) { trace.writer(b.set_thread(thread)); },
                             [&](x86::branch_gap g) {
                                 g.thread = thread;
                                 trace.writer(g);
                             }};
    while (!source.ended()) {
        constexpr int milliseconds = 100;
        source.wait(milliseconds);
        source.read(take);
        trace.told.tell(trace.writer.branches(), "branches");
        // The event of an ended thread hangs up. Waiting for the thread is not needed before that.
        if (signal_taker::second() && program.ended()) break;
    }
    while (!program.ended()) ::usleep(1000);
    const int exit = trace.finish(program.process(), program.status().value_or(SIGKILL), "");
    return signal_taker::second() ? 128 + signal_taker::last() : exit;
}

int trace(const options& wanted) {
    if (wanted.from == source::step) return by_steps(wanted, "requested");
    try {
        launched_program program(wanted.command);
        x86::perf_bts source({.thread = program.process(),
                              .aux_bytes = wanted.aux,
                              .aux_watermark = wanted.aux_watermark,
                              .data_bytes = wanted.aux_events,
                              .on_exec = true});
        return by_store(wanted, program, source,
                        wanted.from == source::bts ? "requested" : "this machine has it");
    } catch (const x86::perf_unavailable& error) {
        if (wanted.from == source::bts) throw;
        return by_steps(wanted, error.what());
    }
}

int run(const options& wanted) {
    try {
        return trace(wanted);
    } catch (const trace_ring::setup_error& error) {
        complain("branch-trace", error.what());
        return launching::status_of(error, wanted.command.front());
    } catch (const std::exception& error) {
        complain("branch-trace", error.what());
    }
    return failed;
}

}  // namespace
}  // namespace branch_trace

int main(int argc, char** argv) {
    branch_trace::options wanted;
    int status = 0;
    if (!branch_trace::parse(argc, argv, wanted, status)) return status;
    return branch_trace::run(wanted);
}
