// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// heap-report: what a heap trace of heap_recorder.so amounts to, process by process.

#include <cstdio>
#include <exception>

#include "../../shown.hpp"
#include "reporting.hpp"

namespace {

constexpr int bad_input = 2;
constexpr int other_failure = 1;

int run(const heap::report_options& wanted) {
    const auto outcome = heap::report_on(wanted, "heap-report", stdout);
    if (outcome.is_bad_input) return bad_input;
    if (outcome.has_processes) return 0;
    std::fprintf(stderr, "heap-report: no such process in %s\n",
                 wanted.files.size() == 1 ? "this file" : "these files");
    return other_failure;
}

}  // namespace

int main(int argc, char** argv) {
    heap::report_options wanted;
    CLI::App app{
        "Reports on heap traces made by heap_recorder.so: live bytes and their peak, what was "
        "never\n"
        "freed, the call sites, churn and sizes. Bytes are the requested bytes.",
        "heap-report"};
    app.set_version_flag("--version", "heap-report " HEAP_REPORT_VERSION);
    app.add_option("FILE", wanted.files, "Heap traces")->required();
    app.add_option("--pid", wanted.pids, "Reports on this process only; may be given repeatedly")
        ->allow_extra_args(false);
    heap::add_report_options(app, wanted);
    app.footer(
        "Exit status: 0; 2 if a file is missing, damaged (what can be read is reported) or no heap "
        "trace; 1 otherwise.");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : other_failure;
    }
    try {
        return run(wanted);
    } catch (const std::exception& error) {
        complain("heap-report", error.what());
    }
    return other_failure;
}
