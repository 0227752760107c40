// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// The command line of trace-reduce. In a file of its own: the parser takes long to compile.

#include "options.hpp"

#include <CLI/CLI.hpp>
#include <iostream>
#include <map>

namespace trace_reduce {

bool parse(int argc, char** argv, options& into, int& status) {
    using trace_ring::exporter::time_format;
    CLI::App app(
        "Shows the records of trace files, merged by time, and what was lost in its place.",
        "trace-reduce");
    app.set_version_flag("--version", "trace-reduce " TRACE_RING_VERSION);
    app.add_option("FILE", into.files, "Trace files: of programs that run, ended or were killed")
        ->required();
    auto* backward = app.add_flag("--backward", into.backward, "The newest records first");
    auto* limit = app.add_option("--limit", into.limit, "Stop after so many records");
    limit->option_text("N");
    app.add_option("--event", into.events,
                   "Only events whose names match, with * ? and [a-z]; may be given again")
        ->option_text("GLOB")
        ->allow_extra_args(false);
    app.add_option("--thread", into.threads,
                   "Only records of the thread with this id; may be given again")
        ->option_text("ID")
        ->allow_extra_args(false);
    auto* statistics = app.add_flag("--stats", into.statistics,
                                    "Records, bytes, losses, events and lanes in numbers instead");
    auto* follow = app.add_flag("--follow", into.follow,
                                "Go on with new records as they come, until interrupted");
    app.add_flag("--until-closed", into.until_closed,
                 "With --follow: until no program records into the files")
        ->needs(follow);
    app.add_option("--format", into.format, "text (the default) or json: one object a line")
        ->option_text("text|json")
        ->transform(CLI::Transformer(std::map<std::string, output_format>{
            {"text", output_format::text}, {"json", output_format::json}}));
    app.add_option("--output", into.output, "Write to this file, whole or not at all")
        ->option_text("FILE");
    app.add_option("--time", into.time,
                   "Times as local date and time (the default), seconds since the trace began, "
                   "or ticks of its clock")
        ->option_text("local|relative|raw")
        ->transform(
            CLI::Transformer(std::map<std::string, time_format>{{"local", time_format::local},
                                                                {"relative", time_format::relative},
                                                                {"raw", time_format::raw}}));
    app.add_option("--colour,--color", into.colour, "Colours in text (auto: on a terminal)")
        ->option_text("auto|always|never")
        ->transform(
            CLI::Transformer(std::map<std::string, colouring>{{"auto", colouring::automatic},
                                                              {"always", colouring::always},
                                                              {"never", colouring::never}}));
    follow->excludes(backward)->excludes(statistics);
    statistics->excludes(backward)->excludes(limit);
    app.footer(
        "Exit status: 0; 2 if a file is no trace or is damaged (what can be read is printed, and\n"
        "stderr says where: FILE: offset N: cause); 130 if interrupted, except when following;\n"
        "1 for anything else.");
    app.failure_message([](const CLI::App*, const CLI::Error& error) {
        return std::string("trace-reduce: ") + error.what() + " (--help tells more)\n";
    });
    try {
        app.parse(argc, argv);
        return true;
    } catch (const CLI::ParseError& error) {
        status = app.exit(error, std::cout, std::cerr) == 0 ? 0 : 1;
        return false;
    }
}

}  // namespace trace_reduce
