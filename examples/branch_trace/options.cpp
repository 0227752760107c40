// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file The command line of branch-trace. In a separate file because the parser takes long to
/// compile.

#include "options.hpp"

#include <CLI/CLI.hpp>
#include <iostream>
#include <map>

namespace branch_trace {

bool parse(int argc, char** argv, options& into, int& status) {
    CLI::App app(
        "Records every branch that a program takes, through the layout of the x86 debug store, "
        "into "
        "a trace\nfile. What it amounts to: trace-reduce --branches last|edges|blocks|calls|... "
        "FILE",
        "branch-trace");
    app.set_version_flag("--version", "branch-trace " TRACE_RING_VERSION);
    app.add_option(
           "--source", into.from,
           "The source of branches: bts, the processor's branch trace store; step, single-stepping "
           "by ptrace, about 20 microseconds per instruction; auto (the default), bts if "
           "available, otherwise step, with a report of the choice and its reason")
        ->option_text("auto|bts|step")
        ->transform(CLI::Transformer(std::map<std::string, source>{
            {"auto", source::automatic}, {"bts", source::bts}, {"step", source::step}}));
    app.add_option("--buffer", into.buffer, "Size of each thread's store (64K)")
        ->option_text("SIZE")
        ->transform(CLI::AsSizeValue(false))
        ->check(CLI::Range(std::size_t{64}, std::size_t{1} << 30));
    app.add_option("--threshold", into.threshold,
                   "Number of records at which a store is drained (half of the buffer)")
        ->option_text("N")
        ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 30));
    app.add_option("--aux", into.aux,
                   "For bts: size of the kernel's AUX area for the processor, a power of two (4M)")
        ->option_text("SIZE")
        ->transform(CLI::AsSizeValue(false))
        ->check(CLI::Range(std::size_t{4096}, std::size_t{1} << 30));
    app.add_option("--aux-watermark", into.aux_watermark,
                   "For bts: number of bytes in the AUX area at which it is read (half of it)")
        ->option_text("SIZE")
        ->transform(CLI::AsSizeValue(false))
        ->check(CLI::Range(std::uint32_t{1}, std::uint32_t{1} << 30));
    app.add_option("--aux-events", into.aux_events,
                   "For bts: size of the ring of the kernel's events about the AUX area, a power "
                   "of two (64K)")
        ->option_text("SIZE")
        ->transform(CLI::AsSizeValue(false))
        ->check(CLI::Range(std::size_t{4096}, std::size_t{1} << 30));
    app.add_option("--output", into.output,
                   "The trace file (branch.trace); replaces an older trace")
        ->option_text("FILE");
    app.add_option("--size", into.size,
                   "Size of the trace file; when it is full, the newest branches are kept (64M)")
        ->option_text("SIZE")
        ->transform(CLI::AsSizeValue(false))
        ->check(CLI::Range(std::uint64_t{64} << 10, std::uint64_t{1} << 40));
    app.add_flag("--follow-forks", into.follow_forks,
                 "Also traces the processes that the program starts");
    app.add_flag("--quiet", into.quiet, "Prints only errors");
    app.add_option("PROGRAM", into.command, "The program and its arguments, after --")
        ->option_text("ARGS...")
        ->required();
    app.footer(
        "Ctrl-C goes to the program, as does a SIGTERM or SIGHUP that branch-trace gets; a second "
        "one ends both.\nHowever the program ends, its last branches are in the trace.\n\n"
        "Exit status: the program's; 128 and the signal's number if a signal ended it; 125 if "
        "branch-trace\nfails itself, 126 if the program cannot be executed, 127 if there is none "
        "of "
        "that name.");
    app.failure_message([](const CLI::App*, const CLI::Error& error) {
        return std::string("branch-trace: ") + error.what() + " (see --help)\n";
    });
    try {
        app.parse(argc, argv);
        return true;
    } catch (const CLI::ParseError& error) {
        status = app.exit(error, std::cout, std::cerr) == 0 ? 0 : failed;
        return false;
    }
}

}  // namespace branch_trace
