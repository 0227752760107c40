// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// heap-record: runs a program with heap_recorder.so and reports on its heap.
///
/// A preload that does not work in a program gives no sign. Therefore heap-record checks the
/// program before running it, each recorder adds its trace to a list, and finally this list is
/// compared with the programs that were executed.

#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <trace_ring/setup_error.hpp>

#include "../../launching/exit_status.hpp"
#include "../../launching/launched_program.hpp"
#include "../../launching/process_memory.hpp"
#include "../../launching/signals.hpp"
#include "../../shown.hpp"
#include "../call_stack.hpp"
#include "../recordable.hpp"
#include "../report/reporting.hpp"

namespace {

namespace fs = std::filesystem;
using launching::failed;

constexpr const char* own = "heap-record";

struct options {
    std::vector<std::string> command;
    std::map<std::string, std::string> variables;  ///< the recorder's settings from the command
                                                   ///< line
    std::string recorder;
    heap::report_options report;
    bool anyway = false;
    bool quiet = false;
};

[[nodiscard]] std::string find_recorder() {
    const fs::path folder = fs::read_symlink("/proc/self/exe").parent_path();
    for (const char* const way : {".", HEAP_LIBRARY_FOLDER}) {
        const fs::path at = folder / way / "heap_recorder.so";
        if (fs::exists(at)) return fs::weakly_canonical(at).string();
    }
    throw std::runtime_error(
        "heap_recorder.so is neither next to this program (" + folder.string() +
        ") nor in " HEAP_LIBRARY_FOLDER "; --recorder specifies another place");
}

/// The file to which each recorder adds its trace. Removed at the end.
class trace_list {
public:
    struct entry {
        ::pid_t process;
        std::string trace;
    };

    trace_list() : path_((fs::temp_directory_path() / "heap-record-XXXXXX").string()) {
        const int file = ::mkstemp(path_.data());
        if (file < 0) throw trace_ring::setup_error(path_, "cannot be made", errno);
        ::close(file);
    }
    trace_list(const trace_list&) = delete;
    trace_list& operator=(const trace_list&) = delete;
    ~trace_list() { ::unlink(path_.c_str()); }

    [[nodiscard]] const std::string& path() const noexcept { return path_; }
    [[nodiscard]] std::vector<entry> read() const {
        std::ifstream in(path_, std::ios::binary);
        std::vector<entry> all;
        for (std::string text; std::getline(in, text, '\0');) {
            const char* const end = text.data() + text.size();
            ::pid_t process = 0;
            const auto [behind, error] = std::from_chars(text.data(), end, process);
            // Any program that runs may write to the list.
            if (error != std::errc{} || behind == end || *behind != ' ') continue;
            all.push_back({process, std::string(behind + 1, end)});
        }
        return all;
    }

private:
    std::string path_;
};

/// Characters that the dynamic linker interprets must not be in the path.
void check_recorder(const std::string& path) {
    if (path.find_first_of(" :") != path.npos) {
        throw std::runtime_error(path +
                                 ": LD_PRELOAD cannot name a library whose path has a blank or a "
                                 "colon; --recorder names one elsewhere");
    }
    if (heap::made_for(path.c_str()) == heap::target_machine{}) {
        throw std::runtime_error(path + ": is no library");
    }
}

void set(const std::string& name, const std::string& value) {
    if (::setenv(name.c_str(), value.c_str(), 1) != 0) {  // NOLINT(concurrency-mt-unsafe)
        throw trace_ring::setup_error(name, "cannot be set", errno);
    }
}

void preload(const std::string& recorder) {
    const char* const before = std::getenv("LD_PRELOAD");  // NOLINT(concurrency-mt-unsafe)
    set("LD_PRELOAD", before == nullptr || *before == '\0' ? recorder : recorder + ':' + before);
}

[[nodiscard]] bool still_runs(::pid_t process) {
    const char state = launching::state_of(process);
    return state != ' ' && state != 'Z';
}

/// Runs the program to its end. Returns its status in the form of waitpid(2).
[[nodiscard]] int run_program(launching::launched_program& program) {
    const launching::signal_taker taking(
        program.process(),
        [](void* of) { ::kill(static_cast<launching::launched_program*>(of)->process(), SIGKILL); },
        &program);
    program.go();
    int status = 0;
    while (::waitpid(program.process(), &status, 0) < 0 && errno == EINTR) {
    }
    program.ended_with(status);
    return status;
}

void tell_traces(const std::vector<trace_list::entry>& made) {
    constexpr std::size_t most = 8;
    for (std::size_t i = 0; i < std::min(made.size(), most); ++i) {
        complain(own, made[i].trace);
    }
    if (made.size() > most) {
        complain(own, fmt::format("and {} more traces", made.size() - most));
    }
}

/// Prints the obstacles as the report does.
void tell_obstacles(const heap::report_outcome& outcome) {
    for (const auto& file : outcome.files) {
        for (const auto& each : file.executions) {
            if (each.obstacle.empty()) continue;
            complain(own, fmt::format("{} is not recorded: {}", each.path, each.obstacle));
        }
    }
}

/// Each program that a recorded one executes begins another trace, unless the report gives the
/// reason. Reports those that began none.
void tell_missing(const std::vector<trace_list::entry>& made, ::pid_t first,
                  const std::string& first_name, const heap::report_outcome& outcome) {
    struct images {
        std::size_t executed = 0, recorded = 0;
        std::string names;
    };
    std::map<::pid_t, images> by_process;
    by_process[first] = {1, 0, first_name};
    for (const auto& file : outcome.files) {
        for (const auto& each : file.executions) {
            if (!each.obstacle.empty() || each.pid == 0) continue;
            images& of = by_process[static_cast<::pid_t>(each.pid)];
            ++of.executed;
            of.names += (of.names.empty() ? "" : ", ") + each.path;
        }
    }
    for (const auto& each : made) ++by_process[each.process].recorded;
    for (const auto& [process, of] : by_process) {
        if (of.executed <= of.recorded) continue;
        // absent: recorded, executed (examples/heap_recorder/heap_recorder_test)
        complain(own, of.recorded == 0
                          ? fmt::format("process {} recorded nothing: {}", process, of.names)
                          : fmt::format("process {} executed {} programs, {} without a trace: {}",
                                        process, of.executed, of.executed - of.recorded, of.names));
    }
}

int record(options& wanted) {
    if (wanted.recorder.empty()) wanted.recorder = find_recorder();
    wanted.recorder = fs::absolute(wanted.recorder).string();
    check_recorder(wanted.recorder);
    const std::string& name = wanted.command.front();
    const std::string path = launching::path_of_program(name);
    if (!path.empty()) {
        const char* const obstacle =
            heap::obstacle_of(path.c_str(), heap::made_for(wanted.recorder.c_str()));
        if (obstacle != nullptr) {
            complain(own, fmt::format("{} cannot be recorded: {}{}", path, obstacle,
                                      wanted.anyway ? ""
                                                    : " (--anyway runs it for the programs that it "
                                                      "executes)"));
            if (!wanted.anyway) return failed;
        }
    }
    const trace_list list;
    for (const auto& [variable, value] : wanted.variables) set(variable, value);
    set("TRACE_RING_LIST", list.path());
    preload(wanted.recorder);
    launching::launched_program program(wanted.command);
    const int status = run_program(program);
    const int exit = launching::signal_taker::second() ? 128 + launching::signal_taker::last()
                                                       : launching::exit_status(status);
    const auto made = list.read();
    for (const auto& each : made) {
        if (still_runs(each.process)) {
            complain(own, fmt::format("process {} still runs: its trace has what it did so far",
                                      each.process));
        }
    }
    tell_traces(made);
    heap::report_outcome outcome;
    if (!made.empty()) {
        for (const auto& each : made) wanted.report.files.push_back(each.trace);
        outcome = heap::report_on(wanted.report, own, wanted.quiet ? nullptr : stderr);
    }
    if (wanted.quiet) tell_obstacles(outcome);
    tell_missing(made, program.process(), name, outcome);
    return exit;
}

}  // namespace

int main(int argc, char** argv) {
    options wanted;
    CLI::App app{
        "Runs a program with heap_recorder.so preloaded, and reports on its heap in the end, on "
        "the "
        "standard\nerror output. It reports what cannot be recorded.",
        own};
    app.set_version_flag("--version", std::string(own) + " " HEAP_REPORT_VERSION);
    const auto variable = [&](const char* option, const char* name, const char* value,
                              const char* what) {
        return app
            .add_option_function<std::string>(
                option, [&wanted, name](const std::string& text) { wanted.variables[name] = text; },
                what)
            ->option_text(value);
    };
    const CLI::Range frames(0, int{heap::max_depth});
    variable("-o,--output", "TRACE_RING_FILE", "FILE",
             "The trace of each process: %e is the program, %p the process id "
             "(heap.%e.%p.trace)");
    variable("--limit", "TRACE_RING_LIMIT", "SIZE",
             "Bytes of records in one trace, at least 1M (1G)")
        ->transform(CLI::AsSizeValue(false))
        ->check(CLI::Range(std::uint64_t{1} << 20, std::uint64_t{1} << 40));
    variable("--stack", "TRACE_RING_STACK", "N", "Frames of a stack, 0 to 32 (8)")->check(frames);
    variable("--free-stack", "TRACE_RING_FREE_STACK", "N", "The same for free (4)")->check(frames);
    variable("--unwind", "TRACE_RING_UNWIND", "tables|fp|unwind|none",
             "How stacks are taken (tables)")
        ->check(CLI::IsMember(heap::unwind_names));
    app.add_option("--recorder", wanted.recorder,
                   "The library to preload, for example one for 32-bit programs (by default "
                   "the\nheap_recorder.so of this program's build or installation)")
        ->option_text("FILE");
    app.add_flag(
        "--anyway", wanted.anyway,
        "Runs a program even if it cannot be recorded, to record the programs that it executes");
    app.add_flag("--quiet", wanted.quiet, "Prints only the names of the traces, and no report");
    heap::add_report_options(app, wanted.report);
    app.add_option("PROGRAM", wanted.command, "The program and its arguments, after --")
        ->option_text("ARGS...")
        ->required();
    app.footer(
        "Ctrl-C goes to the program, as does a SIGTERM or SIGHUP that heap-record gets; a second "
        "one ends it.\n\nExit status: the program's; 128 and the signal's number if a signal ended "
        "it; 125 if heap-record fails\nitself or the program cannot be recorded, 126 if the "
        "program "
        "cannot be executed, 127 if there is none\nof that name.");
    app.failure_message([](const CLI::App*, const CLI::Error& error) {
        return std::string(own) + ": " + error.what() + " (see --help)\n";
    });
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : failed;
    }
    try {
        return record(wanted);
    } catch (const trace_ring::setup_error& error) {
        complain(own, error.what());
        return launching::status_of(error, wanted.command.front());
    } catch (const std::exception& error) {
        complain(own, error.what());
    }
    return failed;
}
