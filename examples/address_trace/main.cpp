// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// address-trace: compiles programs so that they can be traced, and traces them.

#include <cerrno>
#include <cstdint>
#include <exception>
#include <iostream>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <trace_ring/setup_error.hpp>

#include "../launching/find_program.hpp"
#include "analysis/counts.hpp"
#include "compiler/compiler.hpp"
#include "options.hpp"
#include "report/report.hpp"
#include "session/kept_trace.hpp"
#include "session/traced_run.hpp"

namespace address_trace {
namespace {

[[nodiscard]] std::string cost_text(const run_cost& of) {
    return fmt::format(
        "{:.3f} s, {:.3f} s user, {:.3f} s system, {} minor and {} major faults, {} switches",
        of.seconds, of.user, of.system, of.minor_faults, of.major_faults, of.switches);
}

/// Prints a line: a name and a value.
void tell(std::string_view name, const std::string& what) {
    std::cerr << fmt::format("{:<10}  {}\n", name, what);
}

[[nodiscard]] std::string cache_text(const cache_result& of) {
    const miss_counts all = of.all();
    std::string out = fmt::format("{} misses of {} ({:.2f} %)", all.misses, all.references,
                                  all.references == 0 ? 0.0
                                                      : 100.0 * static_cast<double>(all.misses) /
                                                            static_cast<double>(all.references));
    if (of.shape.takes_data())
        out += fmt::format(", {} by loads, {} by stores", of.loads.misses, of.stores.misses);
    if (of.shape.takes_code())
        out += fmt::format(", {} by {} fetches", of.fetches.misses, of.fetches.references);
    if (of.unknown_blocks != 0)
        out += fmt::format("; {} executions of blocks whose code is unknown", of.unknown_blocks);
    if (of.written)
        out += fmt::format("; {} bytes written back, {} still dirty", of.written->back,
                           of.written->still_dirty);
    if (of.invalidated) out += fmt::format("; {} lines invalidated", *of.invalidated);
    if (of.prefetched)
        out += fmt::format("; {} lines prefetched, {} used", of.prefetched->lines,
                           of.prefetched->used);
    return out + ": " + describe(of.shape);
}

void tell(const run_result& of, report& found, bool kept, bool with_blocks) {
    const reference_counts sum = address_trace::sum(found.found().fed->sites().all());
    tell("loads", fmt::format("{} of {} bytes", sum.loads, sum.bytes_loaded));
    tell("stores", fmt::format("{} of {} bytes", sum.stores, sum.bytes_stored));
    if (sum.updates + sum.failed_compares != 0)
        tell("updates", fmt::format("{} of {} bytes, atomic; {} compares failed", sum.updates,
                                    sum.bytes_updated, sum.failed_compares));
    if (with_blocks) {
        tell("blocks", fmt::format("{}", sum.blocks));
        tell("functions", fmt::format("{} calls", found.calls()));
    }
    const std::uint64_t data = sum.data();
    tell(kept ? "trace" : "drained",
         fmt::format(
             "{} bytes, {:.2f} for each load and store", of.packed_bytes,
             data == 0 ? 0.0 : static_cast<double>(of.packed_bytes) / static_cast<double>(data)));
    tell("stops", fmt::format("{}, {:.3f} s", of.counts.stops,
                              static_cast<double>(of.counts.stopped_ns) * 1e-9));
    tell("gaps", gaps_text(of));
    tell("traced", describe(found.coverage()));
    if (!of.living.empty())
        tell("living", fmt::format("{} processes continue untraced: {} (--wait waits for them)",
                                   of.living.size(), fmt::join(of.living, ", ")));
    if (of.counts.unseen != 0)
        tell("unseen",
             fmt::format("{} executions of assembler or instructions whose references are unknown",
                         of.counts.unseen));
    if (of.counts.cut_off != 0)
        tell("cut off",
             fmt::format(
                 "{} hook calls by a jump out of a signal handler, or by the end of a thread",
                 of.counts.cut_off));
    if (of.counts.suppressed != 0)
        tell("suppressed", fmt::format("{} references by the tracing itself, or to its buffers",
                                       of.counts.suppressed));
    if (of.counts.self_fed != 0)
        tell("self-fed",
             fmt::format("{} references were made by the tracing itself", of.counts.self_fed));
    for (const cache_result& cache : found.found().cache_results())
        tell(cache.shape.name, cache_text(cache));
}

/// A selected function does not exist, so nothing was analysed.
[[nodiscard]] bool lacks_function(const report& found) {
    const std::string missing = found.found().fed->chosen().missing();
    if (missing.empty()) return false;
    std::cerr << "address-trace: no loaded function with hooks is named '" << missing << "'\n";
    return true;
}

/// Throws std::invalid_argument if an instruction cache has no blocks to simulate.
void check_blocks(const options& wanted, const findings& found) {
    if (wanted.run.blocks) return;
    for (const cache_misses* const each : found.caches) {
        for (const cache_shape& shape : each->levels().all.front()) {
            if (!shape.takes_data())
                throw std::invalid_argument(
                    fmt::format("cache '{}': its code is not traced with --no-blocks", shape.name));
        }
    }
}

[[nodiscard]] int run(const options& wanted) {
    // Before any file is replaced.
    const std::string& program = wanted.run.command.front();
    if (launching::path_of_program(program).empty())
        throw trace_ring::setup_error(program, "cannot be executed", ENOENT);
    report found(wanted.report);
    check_blocks(wanted, found.found());
    run_cost untraced;
    if (!wanted.untraced.empty()) {
        std::vector<std::string> command = wanted.run.command;
        command[0] = wanted.untraced;
        int status = 0;
        untraced = run_untraced(command, status);
        if (status != 0) {
            std::cerr << "address-trace: " << wanted.untraced << " ended with status "
                      << launching::exit_status(status) << '\n';
        }
    }
    const run_result result = run_traced(wanted.run, found.fed());
    found.name_by(result.modules, result.stacks);
    const bool lacks = lacks_function(found);
    found.note_gaps(gaps_text(result));
    if (result.counts.calls == 0) {
        std::cerr << "address-trace: " << wanted.run.command[0]
                  << " called no hook: was it compiled and linked by `address-trace cc`?\n";
    }
    if (!wanted.quiet) {
        tell(result, found, !wanted.run.output.empty(), wanted.run.blocks);
        tell("program", cost_text(result.program));
        if (!wanted.untraced.empty()) {
            tell("untraced", cost_text(untraced));
            tell("distortion",
                 fmt::format("dilation {:.1f}, {} more minor faults, {} more switches, {:.3f} s of "
                             "analysis on another processor",
                             result.program.seconds / untraced.seconds,
                             static_cast<std::int64_t>(result.program.minor_faults) -
                                 static_cast<std::int64_t>(untraced.minor_faults),
                             static_cast<std::int64_t>(result.program.switches) -
                                 static_cast<std::int64_t>(untraced.switches),
                             result.analysis_seconds));
        }
    }
    // stdout belongs to the program.
    found.write(program, std::cerr, wanted.report.asks_for_tables() && !wanted.quiet);
    return lacks ? failed : launching::exit_status(result.status);
}

/// The references that are missing in a kept trace.
[[nodiscard]] std::string gaps_of(const reference_stream& in, const trace_ring::loss_counts& lost) {
    if (!in.end()) return "not known, as the trace has no end";
    run_result as_run;
    as_run.counts.calls = in.end()->calls;
    as_run.counts.lost_references = in.end()->lost_references;
    as_run.counts.lost_records = lost.total();
    as_run.references = in.references();
    as_run.missing_records = in.missing();
    as_run.damaged_bytes = in.damaged();
    return gaps_text(as_run);
}

/// The exit status if the file of `report` is damaged or is no kept trace, as for trace-reduce.
constexpr int damaged_file = 2;

[[nodiscard]] int report_of(const options& wanted) try {
    report found(wanted.report);
    reference_stream stream(found.fed());
    const kept_trace kept = read_kept(wanted.trace, stream);
    stream.finish();
    if (stream.references() == 0 && !stream.end() && !kept.may_lack_references) {
        std::cerr
            << "address-trace: " << wanted.trace
            << " has no address references: it was not recorded by `address-trace run -o`, "
               "or the run ended before the first reference (trace-reduce reads all traces)\n";
        return damaged_file;
    }
    found.name_by(stream.modules(), stream.stacks());
    found.note_gaps(gaps_of(stream, kept.lost));
    found.write(wanted.trace, std::cout, true);
    for (const auto& place : kept.places)
        std::cerr << fmt::format("address-trace: {}: offset {}: {}\n", wanted.trace, place.offset,
                                 place.what);
    if (kept.damages > kept.places.size())
        std::cerr << fmt::format("address-trace: {}: {} more damaged places\n", wanted.trace,
                                 kept.damages - kept.places.size());
    if (!stream.end())
        std::cerr << "address-trace: " << wanted.trace
                  << ": the trace has no end: its run was interrupted, or the trace is full\n";
    if (kept.lost.total() != 0 || stream.missing() != 0 || stream.damaged() != 0) {
        std::cerr << fmt::format(
            "address-trace: {}: {} records are lost, {} are missing, {} bytes are damaged\n",
            wanted.trace, kept.lost.total(), stream.missing(), stream.damaged());
    }
    if (lacks_function(found)) return failed;
    return kept.damages != 0 || stream.damaged() != 0 ? damaged_file : 0;
} catch (const trace_ring::format_error& error) {
    std::cerr << "address-trace: " << error.what() << '\n';
    return damaged_file;
}

}  // namespace
}  // namespace address_trace

int main(int argc, char** argv) {
    using namespace address_trace;
    const std::string_view way = argc > 1 ? argv[1] : "";
    options wanted;
    try {
        if (way == "cc" || way == "c++") {
            const std::vector<std::string> arguments(argv + 2, argv + argc);
            return run_compiler(way == "cc" ? language::c : language::cxx, arguments);
        }
        int status = 0;
        if (!parse(argc, argv, wanted, status)) return status;
        return wanted.trace.empty() ? run(wanted) : report_of(wanted);
    } catch (const trace_ring::setup_error& error) {
        std::cerr << "address-trace: " << error.what() << '\n';
        return launching::status_of(error,
                                    wanted.run.command.empty() ? "" : wanted.run.command.front());
    } catch (const std::exception& error) {
        std::cerr << "address-trace: " << error.what() << '\n';
        return failed;
    }
}
