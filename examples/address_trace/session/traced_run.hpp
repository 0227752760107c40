// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A program that is traced while its references are analysed, from its start to its end.

#include <cstdint>
#include <string>
#include <vector>

#include <trace_ring/instrument/table_file.hpp>

#include "reference_stream.hpp"

namespace address_trace {

struct run_settings {
    std::string output{};                           ///< the trace file to keep; empty: none
    std::uint64_t limit = std::uint64_t{16} << 30;  ///< its maximum size in bytes
    std::uint64_t buffer = std::uint64_t{8} << 20;  ///< size of the buffer between program and
                                                    ///< analysis
    bool stops = true;    ///< the program waits while there is no room; otherwise there are gaps
    bool waits = false;   ///< also for processes that outlive the program
    bool itself = false;  ///< also traces the tracing itself
    bool blocks = true;
    std::vector<std::string> command{};
};

/// The cost of a program's run.
struct run_cost {
    double seconds = 0, user = 0, system = 0;
    std::uint64_t minor_faults = 0, major_faults = 0, switches = 0;
};

struct run_result {
    int status = 0;  ///< as from waitpid
    run_cost program;
    double analysis_seconds = 0;  ///< processor time of address-trace itself
    std::uint64_t packed_bytes = 0, damaged_bytes = 0, missing_records = 0;
    std::uint64_t references = 0;         ///< references received
    std::vector<std::uint32_t> living{};  ///< processes that continue untraced
    bool counts_change = false;           ///< some of them still call hooks
    trace_ring::instrument::reference_counts counts;
    std::vector<loaded_module> modules;
    std::vector<stack_range> stacks;
};

/// Hook calls whose references did not arrive, beyond the known losses; negative: more arrived.
/// Unknown for processes that are still running.
[[nodiscard]] inline std::int64_t unexplained(const run_result& of) {
    if (of.counts_change) return 0;
    return static_cast<std::int64_t>(of.counts.calls - of.references - of.counts.lost_references);
}

/// The missing references in the results of `of`, as text.
[[nodiscard]] inline std::string gaps_text(const run_result& of) {
    const auto& counts = of.counts;
    const std::int64_t more = unexplained(of);
    if (counts.lost_records == 0 && counts.lost_references == 0 &&
        counts.untraced_references == 0 && of.missing_records == 0 && of.damaged_bytes == 0 &&
        more == 0) {
        // absent: lost_records, lost_references, untraced_references, missing_records,
        // damaged_bytes, calls (examples/address_trace/address_report_test)
        return "none";
    }
    std::string text = std::to_string(counts.lost_references) + " references in " +
                       std::to_string(counts.lost_records) + " records, " +
                       std::to_string(of.damaged_bytes) + " damaged bytes";
    if (of.missing_records > counts.lost_records) {
        text += ", " + std::to_string(of.missing_records - counts.lost_records) +
                " records more, of which the references are not known";
    }
    if (counts.untraced_references != 0)
        text += ", and all " + std::to_string(counts.untraced_references) + " of " +
                std::to_string(counts.untraced_threads) + " threads, for which there was no place";
    if (more > 0) text += ", and " + std::to_string(more) + " that hooks have counted";
    if (more < 0) text += "; " + std::to_string(-more) + " more came than hooks have counted";
    return text;
}

/// Runs the program to its end, and gives `to` all of its references. Throws setup_error if the
/// trace cannot be made, or the program cannot be executed. Ctrl-C goes to the program; the second
/// kills it.
[[nodiscard]] run_result run_traced(const run_settings& how, analyses& to);

/// Runs a program untraced.
[[nodiscard]] run_cost run_untraced(const std::vector<std::string>& command, int& status);

}  // namespace address_trace
