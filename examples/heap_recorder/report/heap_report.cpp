// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// heap-report: what a heap trace of heap_recorder.so amounts to, process by process.

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include <trace_ring/reduce/source/format_error.hpp>

#include "../../shown.hpp"
#include "picture.hpp"
#include "profile.hpp"
#include "report_text.hpp"
#include "symbols.hpp"

namespace {

constexpr int bad_input = 2;
constexpr int other_failure = 1;

[[nodiscard]] std::size_t terminal_width() {
    if (const char* const columns = std::getenv("COLUMNS")) {
        const int wanted = std::atoi(columns);
        if (wanted > 0) return static_cast<std::size_t>(std::clamp(wanted, 60, 1000));
    }
    winsize size{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col != 0) {
        return std::clamp<std::size_t>(size.ws_col, 60, 1000);
    }
    return 120;
}

struct options {
    std::vector<std::string> files;
    std::vector<std::uint32_t> pids;
    std::string svg;
    std::size_t top = 10;
    std::size_t processes = 5;
    double short_life_ms = 1;
    bool calls = false;
    std::string colour = "auto";
};

void write_picture(const std::string& path, const std::vector<heap::process_profile*>& processes) {
    std::vector<heap::curve> curves;
    for (const auto* p : processes) {
        const auto& sums = p->heap.sums();
        if (p->heap.over_time().slices().empty()) continue;
        curves.push_back({fmt::format("{} ({})", p->name, p->pid), &p->heap.over_time(), p->end,
                          sums.peak_bytes, sums.peak_time});
    }
    const std::string what = processes.size() == 1
                                 ? fmt::format("{} ({})", processes[0]->name, processes[0]->pid)
                                 : fmt::format("{} processes", processes.size());
    const bool complete = std::all_of(processes.begin(), processes.end(),
                                      [](const auto* p) { return p->complete(); });
    const std::string picture = heap::draw(
        fmt::format("Live bytes on the heap: {}{}", what, complete ? "" : " (records were lost)"),
        std::move(curves));
    std::ofstream out(path, std::ios::binary);
    out << picture;
    out.close();
    if (!out) throw std::runtime_error(path + ": cannot be written");
}

int run(const options& wanted) {
    heap::stack_table stacks;
    heap::symbolizer symbols;
    std::deque<heap::file_profile> files;
    std::vector<heap::process_profile*> chosen;
    int status = 0;
    const auto short_life = static_cast<std::uint64_t>(std::max(wanted.short_life_ms, 0.0) * 1e6);
    for (const auto& path : wanted.files) {
        try {
            auto& file = files.emplace_back(heap::read_profile(path, stacks, short_life));
            if (!file.damages.empty()) status = bad_input;
            for (auto& process : file.processes) {
                if (wanted.pids.empty() || std::find(wanted.pids.begin(), wanted.pids.end(),
                                                     process.pid) != wanted.pids.end()) {
                    chosen.push_back(&process);
                }
            }
        } catch (const trace_ring::format_error& error) {
            complain("heap-report", error.what());
            status = bad_input;
        } catch (const heap::not_a_heap_trace& error) {
            complain("heap-report", error.what());
            status = bad_input;
        } catch (const std::system_error& error) {
            complain("heap-report", error.what());
            status = bad_input;
        }
    }
    std::stable_sort(chosen.begin(), chosen.end(),
                     [](const auto* a, const auto* b) { return a->begin < b->begin; });
    heap::text_style style;
    style.width = terminal_width();
    style.colour =
        wanted.colour == "always" || (wanted.colour == "auto" && ::isatty(STDOUT_FILENO) != 0 &&
                                      std::getenv("NO_COLOR") == nullptr);
    style.top = wanted.top;
    style.calls = wanted.calls;

    std::string text;
    for (const auto& file : files) text += heap::shortcomings(file, style);
    if (chosen.size() > 1) {
        text += heap::overview({chosen.begin(), chosen.end()}, style) + '\n';
    }
    auto in_full = chosen;
    if (in_full.size() > wanted.processes && wanted.pids.empty()) {
        // Those that allocated most, in the order of their beginnings.
        std::stable_sort(in_full.begin(), in_full.end(), [](const auto* a, const auto* b) {
            return a->heap.sums().allocated_bytes > b->heap.sums().allocated_bytes;
        });
        in_full.resize(wanted.processes);
        std::stable_sort(in_full.begin(), in_full.end(),
                         [](const auto* a, const auto* b) { return a->begin < b->begin; });
    }
    for (auto* process : in_full) {
        text += heap::report(*process, stacks, symbols, style) + '\n';
    }
    if (chosen.empty() && status == 0) {
        fmt::print(stderr, "heap-report: no such process in {}\n",
                   wanted.files.size() == 1 ? "this file" : "these files");
        status = other_failure;
    }
    for (const auto& [path, problem] : symbols.problems()) {
        text += fmt::format("No names from {}: {}\n", path, problem);
    }
    if (!text.empty() && text.ends_with("\n\n")) text.pop_back();
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() ||
        std::fflush(stdout) != 0) {
        throw std::runtime_error("the standard output cannot be written");
    }
    if (!wanted.svg.empty() && !chosen.empty()) write_picture(wanted.svg, chosen);
    return status;
}

}  // namespace

int main(int argc, char** argv) {
    options wanted;
    CLI::App app{
        "Reports on heap traces made by heap_recorder.so: live bytes and their peak, what was "
        "never\n"
        "freed, the call sites, churn and sizes. Bytes are those that the program asked for.",
        "heap-report"};
    app.set_version_flag("--version", "heap-report " HEAP_REPORT_VERSION);
    app.add_option("FILE", wanted.files, "Heap traces")->required();
    app.add_option("--svg", wanted.svg, "Draws the live bytes over time into this file");
    app.add_option("--top", wanted.top, "Rows in each table of call sites")->capture_default_str();
    app.add_option("--processes", wanted.processes,
                   "Processes reported on in full: those that allocated most")
        ->capture_default_str();
    app.add_option("--pid", wanted.pids, "Reports on this process only; may be given repeatedly")
        ->allow_extra_args(false);
    app.add_option("--short-life", wanted.short_life_ms,
                   "Milliseconds up to which a block is short-lived")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    app.add_flag("--calls", wanted.calls,
                 "Also lists the calls, a line each: call PID THREAD FUNCTION COUNT");
    app.add_option("--color", wanted.colour, "When to use colour")
        ->check(CLI::IsMember({"auto", "always", "never"}))
        ->capture_default_str();
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
