// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// The command line of trace-clauses. In a separate file because the parser takes long to compile.

#include "options.hpp"

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>

#include "firings/stack_snapshot.hpp"

namespace trace_clauses {

bool parse(int argc, char** argv, options& into, int& status) {
    CLI::App app(
        "Traces running 32- and 64-bit programs by clauses: where, on which "
        "condition, what.\n"
        "  trace-clauses -e '@@uft:*:libc.so.6:malloc:entry when arg0 > 4096 { capture(arg0, "
        "ustack); }' "
        "-- PROGRAM",
        "trace-clauses");
    app.set_version_flag("--version", "trace-clauses " TRACE_RING_VERSION);
    app.add_option("-e", into.clauses, "Declarations and clauses; may be given several times")
        ->option_text("TEXT")
        ->allow_extra_args(false);
    app.add_option("-f", into.scripts, "Files of declarations and clauses, which are read first")
        ->option_text("FILE")
        ->allow_extra_args(false);
    auto* const process =
        app.add_option("-p", into.process, "Traces this process, until it ends or Ctrl-C")
            ->option_text("PID")
            ->check(CLI::PositiveNumber);
    auto* const all =
        app.add_flag("--all", into.all, "Traces all processes, until Ctrl-C")->excludes(process);
    app.add_flag("--children", into.children,
                 "Also traces the processes that PROGRAM, or PID from now on, forks, and their "
                 "descendants")
        ->excludes(all);
    app.add_flag("--assume-abi", into.assume_abi,
                 "For functions that are not exported, reads arguments and results where the ABI "
                 "puts them, although an optimizer may have chosen other places");
    app.add_flag("--leave-out", into.leave_out,
                 "Omits, with a note, clauses that match no trace point or use values that are not "
                 "available; by default they are errors");
    app.add_option("-o,--output", into.output,
                   "Writes captures to this trace file, and replaces an older trace; by default "
                   "each capture is printed as a line")
        ->option_text("FILE");
    app.add_option("--size", into.size,
                   "Size of the trace file; when it is full, the newest captures are kept (64M)")
        ->option_text("SIZE")
        ->transform(CLI::AsSizeValue(false))
        ->check(CLI::Range(std::uint64_t{64} << 10, std::uint64_t{1} << 40));
    app.add_option("--ring", into.ring,
                   "Size of the buffer between the kernel and trace-clauses, a power of two (32M)")
        ->option_text("SIZE")
        ->transform(CLI::AsSizeValue(false))
        ->check(CLI::Range(std::uint64_t{64} << 10, std::uint64_t{1} << 30));
    app.add_option("--stack", into.stack,
                   "Bytes of the stack to copy for finding callers by unwind information; 0: use "
                   "frame pointers alone, which costs less (8K)")
        ->option_text("SIZE")
        ->transform(CLI::AsSizeValue(false))
        ->check(CLI::Range(0U, stack_snapshot::most_bytes));
    app.add_option("--source", into.from,
                   "The source of firings: kernel (uprobes and BPF) or ptrace (breakpoints in the "
                   "program); the default is kernel, or ptrace if the kernel refuses")
        ->option_text("kernel|ptrace")
        ->transform(CLI::CheckedTransformer(std::map<std::string, options::source>{
            {"kernel", options::source::kernel}, {"ptrace", options::source::ptrace}}));
    app.add_option("--interval", into.interval,
                   "Also prints counts and histograms every SECONDS seconds")
        ->option_text("SECONDS")
        ->check(CLI::Range(0.1, 86400.0))
        ->check([](const std::string& text) {  // which every range includes
            return std::isnan(std::strtod(text.c_str(), nullptr)) ? text + " is no number"
                                                                  : std::string();
        });
    app.add_option("--list", into.list,
                   "Lists matching functions and probes ('libc*:mal*') with their arguments, or "
                   "matching system calls ('syscall:open*'), and exits")
        ->option_text("OBJECT:NAME");
    app.add_flag("--dump", into.dump, "Prints the code of both modes side by side, and exits");
    app.add_flag("--quiet", into.quiet, "Prints only results and errors");
    app.add_option("PROGRAM", into.command, "The program and its arguments, after --")
        ->option_text("ARGS...");
    app.footer(
        "Exit status: the program's; 128 and the signal's number if a signal ended it; 125 if "
        "trace-clauses\n"
        "fails itself, 126 if the program cannot be executed, 127 if there is none of that name; "
        "without a\n"
        "program, 0.");
    app.failure_message([](const CLI::App*, const CLI::Error& error) {
        return std::string("trace-clauses: ") + error.what() + " (see --help)\n";
    });
    try {
        app.parse(argc, argv);
        const int targets =
            (into.process != 0 ? 1 : 0) + (into.all ? 1 : 0) + (into.command.empty() ? 0 : 1);
        if (targets > 1) throw CLI::ValidationError("use only one of -p, --all and PROGRAM");
        if (targets == 0 && into.list.empty()) throw CLI::RequiredError("PROGRAM, -p or --all");
        if (into.clauses.empty() && into.scripts.empty() && into.list.empty()) {
            throw CLI::RequiredError("-e or -f");
        }
        if ((into.all || into.children) && into.from == options::source::ptrace) {
            throw CLI::ValidationError(
                "--all and --children need --source kernel: ptrace traces one process");
        }
        if ((into.ring & (into.ring - 1)) != 0)
            throw CLI::ValidationError("--ring must be a power of two");
        return true;
    } catch (const CLI::ParseError& error) {
        status = app.exit(error, std::cout, std::cerr) == 0 ? 0 : failed;
        return false;
    }
}

}  // namespace trace_clauses
