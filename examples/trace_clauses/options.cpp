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
        "Traces running programs, of 32 and 64 bits at once, by clauses: where, on which "
        "condition, what.\n"
        "  trace-clauses -e '@@uft:*:libc.so.6:malloc:entry when arg0 > 4096 { capture(arg0, "
        "ustack); }' "
        "-- PROGRAM",
        "trace-clauses");
    app.set_version_flag("--version", "trace-clauses " TRACE_RING_VERSION);
    app.add_option("-e", into.clauses, "Declarations and clauses; may be there several times")
        ->option_text("TEXT")
        ->allow_extra_args(false);
    app.add_option("-f", into.scripts, "Files of them, which are read first")
        ->option_text("FILE")
        ->allow_extra_args(false);
    auto* const process =
        app.add_option("-p", into.process, "Traces this process, until it ends or Ctrl-C")
            ->option_text("PID")
            ->check(CLI::PositiveNumber);
    auto* const all =
        app.add_flag("--all", into.all, "Traces all processes, until Ctrl-C")->excludes(process);
    app.add_flag("--children", into.children,
                 "Traces what PROGRAM, or PID from now on, forks, too, and what that forks")
        ->excludes(all);
    app.add_flag("--assume-abi", into.assume_abi,
                 "Reads arguments and results of functions that are not exported where the ABI has "
                 "them, although an optimizer may have chosen other places");
    app.add_flag("--leave-out", into.leave_out,
                 "Leaves out, with a note, clauses that have no point, or ask for what is not "
                 "available; otherwise they are errors");
    app.add_option(
           "-o,--output", into.output,
           "The trace file for what is captured; an older trace of that name is replaced. Without "
           "it each capture is a line")
        ->option_text("FILE");
    app.add_option("--size", into.size, "Bytes of it; when it is full, the newest are kept (64M)")
        ->option_text("SIZE")
        ->transform(CLI::AsSizeValue(false))
        ->check(CLI::Range(std::uint64_t{64} << 10, std::uint64_t{1} << 40));
    app.add_option("--ring", into.ring,
                   "Bytes between the kernel and trace-clauses, a power of two (32M)")
        ->option_text("SIZE")
        ->transform(CLI::AsSizeValue(false))
        ->check(CLI::Range(std::uint64_t{64} << 10, std::uint64_t{1} << 30));
    app.add_option(
           "--stack", into.stack,
           "Bytes of the stack that are copied to find who has called, by unwind "
           "information; 0: callers are found by frame pointers alone, which costs less (8K)")
        ->option_text("SIZE")
        ->transform(CLI::AsSizeValue(false))
        ->check(CLI::Range(0U, stack_snapshot::most_bytes));
    app.add_option("--source", into.from,
                   "Who tells what fires: the kernel (its uprobes and BPF), or ptrace (breakpoints "
                   "in the program); without it the kernel, or ptrace where it refuses")
        ->option_text("kernel|ptrace")
        ->transform(CLI::CheckedTransformer(std::map<std::string, options::source>{
            {"kernel", options::source::kernel}, {"ptrace", options::source::ptrace}}));
    app.add_option("--interval", into.interval,
                   "Shows counts and histograms each so many seconds, too")
        ->option_text("SECONDS")
        ->check(CLI::Range(0.1, 86400.0))
        ->check([](const std::string& text) {  // which every range includes
            return std::isnan(std::strtod(text.c_str(), nullptr)) ? text + " is no number"
                                                                  : std::string();
        });
    app.add_option("--list", into.list,
                   "Lists the functions and probes that match, as 'libc*:mal*', with their "
                   "arguments, or the system calls, as 'syscall:open*', and ends")
        ->option_text("OBJECT:NAME");
    app.add_flag("--dump", into.dump, "Shows the code of both modes side by side, and ends");
    app.add_flag("--quiet", into.quiet, "Says nothing of its own but errors");
    app.add_option("PROGRAM", into.command, "The program, and its arguments; put -- before it")
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
        if (targets > 1) throw CLI::ValidationError("one of -p, --all and PROGRAM is enough");
        if (targets == 0 && into.list.empty()) throw CLI::RequiredError("PROGRAM, -p or --all");
        if (into.clauses.empty() && into.scripts.empty() && into.list.empty()) {
            throw CLI::RequiredError("-e or -f");
        }
        if ((into.all || into.children) && into.from == options::source::ptrace) {
            throw CLI::ValidationError(
                "--all and --children are for the kernel's source: ptrace traces one process");
        }
        if ((into.ring & (into.ring - 1)) != 0)
            throw CLI::ValidationError("--ring is a power of two");
        return true;
    } catch (const CLI::ParseError& error) {
        status = app.exit(error, std::cout, std::cerr) == 0 ? 0 : failed;
        return false;
    }
}

}  // namespace trace_clauses
