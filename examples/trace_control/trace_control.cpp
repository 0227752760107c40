// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// Switches events of a running program on and off, pauses and resumes recording, and requests
/// snapshots, by writing to the control page of the program's trace file.

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>

#include <trace_ring/recorder/control.hpp>
#include <trace_ring/recorder/trim/trim.hpp>
#include <trace_ring/reduce/trace_file.hpp>

#include "../shown.hpp"

namespace {

constexpr int bad_input = 2;

/// Waits up to `seconds` for a writer to serve the request.
bool snapshot(trace_ring::control& control, double seconds) {
    const std::uint32_t number = control.request_snapshot();
    const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (!control.snapshot_done(number)) {
        if (std::chrono::steady_clock::now() > until) {
            complain("trace-control",
                     "request " + std::to_string(number) +
                         " is not served yet: no thread has claimed a sub-buffer since, or the "
                         "program has reached its maximum number of snapshots");
            return false;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::printf("snapshot %u\n", number);
    return true;
}

}  // namespace

int main(int count, char** arguments) {
    std::string file;
    std::vector<std::string> on;
    std::vector<std::string> off;
    bool list = false;
    bool pause = false;
    bool resume = false;
    bool wants_snapshot = false;
    bool trim = false;
    double wait = 5;

    CLI::App app("Controls a program that records with trace_ring, through its trace file.");
    app.name("trace-control");
    app.set_version_flag("--version", "trace-control " TRACE_RING_VERSION);
    app.add_option("FILE", file, "The trace file, or /proc/PID/fd/N of a memory file")->required();
    app.add_flag("--list", list, "List the event types and whether they are recorded");
    app.add_option("--enable", on, "Record the events whose names match this glob");
    app.add_option("--disable", off, "Do not record the events whose names match this glob");
    auto* const pausing = app.add_flag("--pause", pause, "Stop all recording into the file");
    app.add_flag("--resume", resume, "Resume recording")->excludes(pausing);
    app.add_flag("--snapshot", wants_snapshot, "Request a snapshot, and wait until it is complete");
    app.add_option("--wait", wait, "Seconds to wait for the snapshot")->capture_default_str();
    app.add_flag("--trim", trim,
                 "Trim the file that a killed program has left to its contents; do nothing else");
    app.footer(
        "Exit status: 0; 2 if the file cannot be opened or is not a trace; 1 for anything else: "
        "for\n"
        "example, a glob matches no event, or a snapshot is not complete in time.");
    try {
        app.parse(count, arguments);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 1;
    }
    try {
        if (trim) {
            if (trace_ring::trim(file)) return 0;
            complain("trace-control", shown(file) + ": in use, not trimmed");
            return 1;
        }
        // What was changed in a file that no program records into has no effect until one does.
        if ((pause || resume || wants_snapshot) &&
            !trace_ring::reduce::trace_file::open(file).live()) {
            complain("trace-control", shown(file) + ": no program records into it: nothing to " +
                                          (pause    ? "pause"
                                           : resume ? "resume"
                                                    : "ask for a snapshot"));
            return 1;
        }
        trace_ring::control control(file);
        bool all_matched = true;
        const auto change = [&](const std::vector<std::string>& globs, bool open) {
            for (const auto& glob : globs) {
                const std::size_t matched = control.enable(glob, open);
                std::printf("%s: %zu event types %s\n", shown(glob).c_str(), matched,
                            open ? "enabled" : "disabled");
                all_matched = all_matched && matched != 0;
            }
        };
        change(off, false);
        change(on, true);
        if (pause) control.pause();
        if (resume) control.resume();
        if (wants_snapshot && !snapshot(control, wait)) return 1;
        if (list) {
            control.list([](std::string_view name, bool open) {
                std::printf("%-3s  %s\n", open ? "on" : "off", shown(name).c_str());
            });
        }
        // The change has been made, but the caller has not seen the report of it.
        if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
            throw std::system_error(errno, std::generic_category(), "standard output");
        return all_matched ? 0 : 1;
    } catch (const trace_ring::setup_error& error) {
        complain("trace-control", error.what());
        return bad_input;
    } catch (const std::exception& error) {
        complain("trace-control", error.what());
        return 1;
    }
}
