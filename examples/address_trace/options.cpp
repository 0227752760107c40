// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// The command line of `address-trace run`. In a file of its own: the parser takes long to compile.

#include "options.hpp"

#include <CLI/CLI.hpp>
#include <iostream>

namespace address_trace {
namespace {

void add_report_options(CLI::App& to, report_settings& into) {
    to.add_option(
          "--cache", into.caches,
          "Counts the misses of a cache: D1=32K,64,8 is one of 32 KiB, lines of 64 bytes "
          "and 8 ways; L1=48K,64,12+L2=2M,64,16 are two levels, D1=32K,64,8/I1=32K,64,8 a "
          "split one, TLB=64,4096,4 is 64 pages of 4 KiB. Words may follow, in any order: the "
          "replacement, which is lru, fifo, plru, random or random:SEED; inclusive or exclusive, "
          "on a level behind another; write-back, which counts the bytes that dirty lines write; "
          "next, a prefetcher that brings the next line when one is missing. May be there several "
          "times")
        ->option_text("NAME=SIZE,LINE,WAYS[,WORD...]")
        ->allow_extra_args(false);
    to.add_option("--coherent", into.coherent,
                  "A cache for each thread, kept coherent by MESI: misses that sharing costs, "
                  "invalidations, and bytes written back")
        ->option_text("NAME=SIZE,LINE,WAYS");
    to.add_flag("--lines", into.lines,
                "The cache lines that are used most, and those that threads share falsely");
    to.add_flag("--reuse", into.reuse, "How many other lines are used before a line is again");
    to.add_flag("--strides", into.strides, "By which steps each place in the code goes on");
    to.add_flag("--working-set", into.working_set, "How much memory is in use, over time");
    to.add_flag_function(
        "--all",
        [&into](std::int64_t) { into.lines = into.reuse = into.strides = into.working_set = true; },
        "All of these four");
    to.add_option("--format", into.format,
                  "Of the report: text; csv for spreadsheets; json for programs; lackey or din, "
                  "which are the references themselves, a line each")
        ->option_text("FORMAT")
        ->check(CLI::IsMember({"text", "csv", "json", "lackey", "din"}));
    to.add_option("--skip", into.skip, "Leaves out so many references at the beginning")
        ->option_text("N")
        ->transform(CLI::AsSizeValue(true));
    to.add_option("--window", into.window, "Analyses so many references, and no more")
        ->option_text("N")
        ->transform(CLI::AsSizeValue(true))
        ->check(CLI::PositiveNumber);
    to.add_option("--html", into.page, "Everything on one page, with pictures")
        ->option_text("FILE");
    to.add_option("--svg", into.pictures, "Writes each picture as a file")->option_text("FOLDER");
}

}  // namespace

bool parse(int argc, char** argv, options& into, int& status) {
    CLI::App app(
        "Traces each load, store and block of a program, and analyses them while it runs.\n"
        "  make CC='address-trace cc' CXX='address-trace c++'\n"
        "  address-trace run --cache D1=32K,64,8 -- PROGRAM ARGS",
        "address-trace");
    app.set_version_flag("--version", "address-trace " TRACE_RING_VERSION);
    app.require_subcommand(1);
    // What follows these is the compiler's; main.cpp takes it.
    app.add_subcommand("cc",
                       "clang, for programs that can be traced: arguments as of a C compiler");
    app.add_subcommand("c++", "clang++, likewise");
    auto& run = *app.add_subcommand("run", "Runs a program that was compiled so, and traces it");
    run.add_option(
           "-o,--output", into.run.output,
           "Keeps the trace; an older trace of that name is replaced. trace-reduce reads it")
        ->option_text("FILE");
    run.add_option("--limit", into.run.limit,
                   "Bytes of that file at most (16G); then gaps are told")
        ->option_text("SIZE")
        ->transform(CLI::AsSizeValue(false))
        ->check(CLI::Range(std::uint64_t{1} << 20, std::uint64_t{1} << 42));
    bool on_the_fly = false;
    run.add_flag("--on-the-fly", on_the_fly,
                 "Analyses without a trace on disk, as it does without --output anyway")
        ->excludes("--output");
    run.add_option(
           "--buffer", into.run.buffer,
           "Bytes between the program and the analysis (8M): when they are full the program "
           "waits")
        ->option_text("SIZE")
        ->transform(CLI::AsSizeValue(false))
        ->check(CLI::Range(std::uint64_t{256} << 10, std::uint64_t{1} << 36));
    bool goes_on = false;
    run.add_flag("--no-stop", goes_on,
                 "The program never waits; what there is no room for is a gap, which is told");
    run.add_flag("--wait", into.run.waits,
                 "Waits for processes that outlive the program, too; else they go on untraced");
    run.add_option("--untraced", into.untraced,
                   "The same program as it is without address-trace: runs it first, with the same "
                   "arguments, and tells how far tracing distorts")
        ->option_text("PROGRAM");
    run.add_flag("--traces-itself", into.run.itself,
                 "Traces the tracing, too, if it was compiled with hooks: to see that it was not");
    run.add_flag("--quiet", into.quiet, "Says nothing of its own but errors");
    add_report_options(run, into.report);
    run.add_option("--report", into.report.to, "Where the report goes; without it there is none")
        ->option_text("FILE");
    run.add_option("PROGRAM", into.run.command, "The program, and its arguments; put -- before it")
        ->option_text("ARGS...")
        ->required();
    auto& report = *app.add_subcommand("report", "Analyses a trace that was kept");
    report.add_option("TRACE", into.trace, "What `run --output` wrote")->required();
    add_report_options(report, into.report);
    report.add_option("-o,--output", into.report.to, "Where the report goes, instead of stdout")
        ->option_text("FILE");
    app.footer(
        "Environment of cc and c++: ADDRESS_TRACE_CC and ADDRESS_TRACE_CXX are the compilers, "
        "ADDRESS_TRACE_CALLS=1\n"
        "traces where functions begin and end, too.\n"
        "Exit status: the program's; 128 and the signal's number if a signal ended it; 125 if "
        "address-trace\n"
        "fails itself, 126 if the program cannot be executed, 127 if there is none of that name.");
    app.failure_message([](const CLI::App*, const CLI::Error& error) {
        return std::string("address-trace: ") + error.what() + " (--help tells more)\n";
    });
    try {
        app.parse(argc, argv);
        into.run.stops = !goes_on;
        const bool as_lines = into.report.format == "lackey" || into.report.format == "din";
        if (into.trace.empty() && into.report.to.empty() && as_lines) {
            throw CLI::RequiredError("--report FILE, as stdout is the program's, with --format " +
                                     into.report.format);
        }
        return true;
    } catch (const CLI::ParseError& error) {
        status = app.exit(error, std::cout, std::cerr) == 0 ? 0 : failed;
        return false;
    }
}

}  // namespace address_trace
