// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file The command line of `address-trace run`. In a separate file because the parser takes long
/// to compile.

#include "options.hpp"

#include <CLI/CLI.hpp>
#include <iostream>

namespace address_trace {
namespace {

/// Rejects numbers that begin with one of these characters.
[[nodiscard]] CLI::Validator refused(const char* begins, const char* why) {
    return {[begins, why](std::string& text) {
                return text.find_first_of(begins) == 0 ? text + ' ' + why : std::string();
            },
            "N"};
}

[[nodiscard]] std::string is_named(std::string& function) {
    return function.empty() ? "a function has a name" : "";
}

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
                  "One cache per thread, kept coherent by MESI: misses caused by sharing, "
                  "invalidations, and bytes written back")
        ->option_text("NAME=SIZE,LINE,WAYS");
    to.add_flag("--lines", into.lines,
                "The most used cache lines, falsely shared lines, and their owners");
    to.add_flag("--reuse", into.reuse, "How many other lines are used before the same line again");
    to.add_flag("--strides", into.strides, "The address steps of each instruction");
    to.add_flag("--working-set", into.working_set, "The memory in use over time");
    to.add_flag_function(
        "--all",
        [&into](std::int64_t) { into.lines = into.reuse = into.strides = into.working_set = true; },
        "All of these four");
    to.add_option("--format", into.format,
                  "Format of the report: text, csv, json; lackey and din print the references "
                  "themselves, one per line")
        ->option_text("FORMAT")
        ->check(CLI::IsMember({"text", "csv", "json", "lackey", "din"}));
    to.add_option("--from", into.chosen.from,
                  "Analyses only from the start of a function of this name, in any thread; again "
                  "after each --to")
        ->option_text("FUNCTION")
        ->check(CLI::Validator(is_named, ""));
    to.add_option("--to", into.chosen.to, "Analyses only up to the start of this function")
        ->option_text("FUNCTION")
        ->check(CLI::Validator(is_named, ""));
    to.add_option("--skip", into.chosen.skip, "Skips the first N of these references")
        ->option_text("N")
        ->transform(CLI::AsSizeValue(true))
        ->transform(refused("-", "must not be negative"));
    to.add_option("--window", into.chosen.window, "Analyses at most N references")
        ->option_text("N")
        ->transform(CLI::AsSizeValue(true))
        ->transform(refused("-0", "must be more than 0"));
    to.add_option("--html", into.page, "Writes all results and the source to one page")
        ->option_text("FILE");
    to.add_option("--svg", into.pictures, "Writes each picture to a file")->option_text("FOLDER");
}

}  // namespace

bool parse(int argc, char** argv, options& into, int& status) {
    CLI::App app(
        "Traces every load, store and block of a program, and analyses them while it runs.\n"
        "  make CC='address-trace cc' CXX='address-trace c++'\n"
        "  address-trace run --cache D1=32K,64,8 -- PROGRAM ARGS",
        "address-trace");
    app.set_version_flag("--version", "address-trace " TRACE_RING_VERSION);
    app.require_subcommand(1);
    // main.cpp handles these, because their arguments are the compiler's.
    app.add_subcommand("cc", "Compiles and links C with hooks: takes the arguments of clang");
    app.add_subcommand("c++", "Compiles and links C++ with hooks: takes the arguments of clang++");
    auto& run = *app.add_subcommand("run", "Runs a program compiled by cc or c++, and traces it");
    run.add_option("-o,--output", into.run.output,
                   "Keeps the trace, for `report` and trace-reduce; replaces an older trace")
        ->option_text("FILE");
    run.add_option("--limit", into.run.limit,
                   "Largest size of that file (16G); references beyond it are reported as a gap")
        ->option_text("SIZE")
        ->transform(CLI::AsSizeValue(false))
        ->check(CLI::Range(std::uint64_t{1} << 20, std::uint64_t{1} << 42));
    bool on_the_fly = false;
    run.add_flag("--on-the-fly", on_the_fly,
                 "Analyses without a trace on disk; the default without --output")
        ->excludes("--output");
    run.add_option(
           "--buffer", into.run.buffer,
           "Size of the buffer between program and analysis (8M); the program waits while it "
           "is full")
        ->option_text("SIZE")
        ->transform(CLI::AsSizeValue(false))
        ->check(CLI::Range(std::uint64_t{256} << 10, std::uint64_t{1} << 36));
    bool goes_on = false;
    run.add_flag("--no-stop", goes_on,
                 "The program never waits; references that find no room are reported as a gap");
    bool skips_blocks = false;
    auto* const data_only = run.add_flag("--no-blocks", skips_blocks,
                                         "Traces loads and stores only: less time, and a smaller "
                                         "trace");
    run.add_flag("--wait", into.run.waits,
                 "Also waits for processes that outlive the program; otherwise they continue "
                 "untraced");
    run.add_option("--untraced", into.untraced,
                   "The same program compiled without hooks: runs it first, with the same "
                   "arguments, and reports how much tracing distorts")
        ->option_text("PROGRAM");
    run.add_flag("--traces-itself", into.run.itself,
                 "Also traces the tracing itself, to check that it has no hooks");
    run.add_flag("--quiet", into.quiet, "Prints no summary");
    add_report_options(run, into.report);
    data_only->excludes("--from")->excludes("--to");
    run.add_option("--report", into.report.to, "Writes a report to this file")->option_text("FILE");
    run.add_option("PROGRAM", into.run.command, "The program and its arguments, after --")
        ->option_text("ARGS...")
        ->required();
    auto& report = *app.add_subcommand("report", "Analyses a kept trace");
    report.add_option("TRACE", into.trace, "What `run --output` wrote")->required();
    add_report_options(report, into.report);
    report
        .add_option("-o,--output", into.report.to,
                    "Writes the report to this file instead of stdout")
        ->option_text("FILE");
    app.footer(
        "Environment of cc and c++: ADDRESS_TRACE_CC and ADDRESS_TRACE_CXX name the compilers; "
        "ADDRESS_TRACE_CALLS=1\n"
        "also traces where functions begin and end.\n"
        "Exit status: that of the program; 128 plus the signal's number if a signal ended it; 125 "
        "if "
        "address-trace\n"
        "itself fails, 126 if the program cannot be executed, 127 if it does not exist.");
    app.failure_message([](const CLI::App*, const CLI::Error& error) {
        return std::string("address-trace: ") + error.what() + " (see --help)\n";
    });
    try {
        app.parse(argc, argv);
        into.run.stops = !goes_on;
        into.run.blocks = !skips_blocks;
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
