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
    std::string output{};  ///< the trace file, which is kept; empty: none is
    std::uint64_t limit = std::uint64_t{16} << 30;  ///< its bytes at most
    std::uint64_t buffer = std::uint64_t{8} << 20;  ///< bytes between program and analysis
    bool stops = true;    ///< the program waits while there is no room; else there are gaps
    bool itself = false;  ///< the tracing is traced, too
    std::vector<std::string> command{};
};

/// What a run of a program cost.
struct run_cost {
    double seconds = 0, user = 0, system = 0;
    std::uint64_t minor_faults = 0, major_faults = 0, switches = 0;
};

struct run_result {
    int status = 0;  ///< as waitpid says it
    run_cost program;
    double analysis_seconds = 0;  ///< of processor time, by address-trace itself
    std::uint64_t packed_bytes = 0, damaged_bytes = 0, missing_records = 0;
    trace_ring::instrument::reference_counts counts;
    std::vector<loaded_module> modules;
};

/// What is missing in what `of` found, as text. The references of threads that had no place are not
/// counted: only the threads are.
[[nodiscard]] inline std::string gaps_text(const run_result& of) {
    const auto& counts = of.counts;
    if (counts.lost_records == 0 && counts.lost_references == 0 && counts.untraced_threads == 0 &&
        of.missing_records == 0 && of.damaged_bytes == 0) {
        // absent: lost_records, lost_references, untraced_threads, missing_records, damaged_bytes
        // (examples/address_report_test)
        return "none";
    }
    std::string text = std::to_string(counts.lost_references) + " references in " +
                       std::to_string(counts.lost_records) + " records, " +
                       std::to_string(of.damaged_bytes) + " damaged bytes";
    if (of.missing_records > counts.lost_records) {
        text += ", " + std::to_string(of.missing_records - counts.lost_records) +
                " records more, of which the references are not known";
    }
    if (counts.untraced_threads != 0)
        text += ", and all of " + std::to_string(counts.untraced_threads) + " threads";
    return text;
}

/// Runs the program to its end, and gives `to` all of its references. Throws setup_error if the
/// trace cannot be made, or the program cannot be executed. Ctrl-C goes to the program; the second
/// kills it.
[[nodiscard]] run_result run_traced(const run_settings& how, analyses& to);

/// Runs a program untraced.
[[nodiscard]] run_cost run_untraced(const std::vector<std::string>& command, int& status);

}  // namespace address_trace
