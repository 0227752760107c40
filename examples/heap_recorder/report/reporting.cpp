// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "reporting.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <trace_ring/reduce/source/format_error.hpp>

#include "../../shown.hpp"
#include "picture.hpp"
#include "report_text.hpp"
#include "symbols.hpp"

namespace heap {
namespace {

[[nodiscard]] std::size_t terminal_width(std::FILE* out) {
    if (const char* const columns = std::getenv("COLUMNS")) {
        const int wanted = std::atoi(columns);
        if (wanted > 0) return static_cast<std::size_t>(std::clamp(wanted, 60, 1000));
    }
    winsize size{};
    if (::ioctl(::fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col != 0) {
        return std::clamp<std::size_t>(size.ws_col, 60, 1000);
    }
    return 120;
}

void write_picture(const std::string& path, const std::vector<process_profile*>& processes) {
    std::vector<curve> curves;
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
    const std::string picture = draw(
        fmt::format("Live bytes on the heap: {}{}", what, complete ? "" : " (records were lost)"),
        std::move(curves));
    std::ofstream out(path, std::ios::binary);
    out << picture;
    out.close();
    if (!out) throw std::runtime_error(path + ": cannot be written");
}

void write_text(const report_options& wanted, const std::deque<file_profile>& files,
                const std::vector<process_profile*>& chosen, const stack_table& stacks,
                std::FILE* out) {
    text_style style;
    style.width = terminal_width(out);
    style.colour =
        wanted.colour == "always" || (wanted.colour == "auto" && ::isatty(::fileno(out)) != 0 &&
                                      std::getenv("NO_COLOR") == nullptr);
    style.top = wanted.top;
    style.calls = wanted.calls;

    symbolizer symbols;
    std::string text;
    for (const auto& file : files) text += shortcomings(file, style);
    if (chosen.size() > 1) {
        text += overview({chosen.begin(), chosen.end()}, style) + '\n';
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
        text += report(*process, stacks, symbols, style) + '\n';
    }
    for (const auto& [path, problem] : symbols.problems()) {
        text += fmt::format("No names from {}: {}\n", path, problem);
    }
    if (!text.empty() && text.ends_with("\n\n")) text.pop_back();
    if (std::fwrite(text.data(), 1, text.size(), out) != text.size() || std::fflush(out) != 0) {
        throw std::runtime_error("the report cannot be written");
    }
}

}  // namespace

void add_report_options(CLI::App& app, report_options& into) {
    app.add_option("--svg", into.svg, "Writes a picture of the live bytes over time to this file");
    app.add_option("--top", into.top, "Rows in each table of call sites")->capture_default_str();
    app.add_option("--processes", into.processes,
                   "Number of processes to report in full, those that allocated most first")
        ->capture_default_str();
    app.add_option("--short-life", into.short_life_ms,
                   "Longest lifetime of a short-lived block, in milliseconds")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    app.add_flag("--calls", into.calls,
                 "Also lists the calls, one per line: call PID THREAD FUNCTION COUNT");
    app.add_option("--color", into.colour, "When to use colour")
        ->check(CLI::IsMember({"auto", "always", "never"}))
        ->capture_default_str();
}

report_outcome report_on(const report_options& wanted, const char* program, std::FILE* out) {
    stack_table stacks;
    report_outcome outcome;
    auto& files = outcome.files;
    std::vector<process_profile*> chosen;
    const auto short_life = static_cast<std::uint64_t>(std::max(wanted.short_life_ms, 0.0) * 1e6);
    for (const auto& path : wanted.files) {
        try {
            auto& file = files.emplace_back(read_profile(path, stacks, short_life));
            if (!file.damages.empty()) outcome.is_bad_input = true;
            for (auto& process : file.processes) {
                if (wanted.pids.empty() || std::find(wanted.pids.begin(), wanted.pids.end(),
                                                     process.pid) != wanted.pids.end()) {
                    chosen.push_back(&process);
                }
            }
        } catch (const trace_ring::format_error& error) {
            complain(program, error.what());
            outcome.is_bad_input = true;
        } catch (const not_a_heap_trace& error) {
            complain(program, error.what());
            outcome.is_bad_input = true;
        } catch (const std::system_error& error) {
            complain(program, error.what());
            outcome.is_bad_input = true;
        }
    }
    std::stable_sort(chosen.begin(), chosen.end(),
                     [](const auto* a, const auto* b) { return a->begin < b->begin; });
    outcome.has_processes = !chosen.empty();
    if (out != nullptr) write_text(wanted, files, chosen, stacks, out);
    if (!wanted.svg.empty() && !chosen.empty()) write_picture(wanted.svg, chosen);
    return outcome;
}

}  // namespace heap
