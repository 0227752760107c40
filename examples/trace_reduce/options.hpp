// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What trace-reduce is asked to do.

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <trace_ring/exporter/text.hpp>

#include "measure/measures.hpp"

namespace trace_reduce {

enum class output_format {
    text,
    json,
    csv,
    chrome,
    perfetto,
    ctf,
    otlp,
    html,
    print,
    clickhouse,
    clickhouse_table,
};
/// The options that a format supports.
struct format_facts {
    const char* name;
    output_format value;
    bool backward;    ///< times may descend
    bool follow;      ///< what is written so far is good for something
    bool retry;       ///< another file can come into it later
    bool statistics;  ///< --stats has it
    bool roles;       ///< it has flows and, unless it is otlp, counters
    bool folder;      ///< it is a folder of files, which has to be named
    bool spools;      ///< CPTRAP files have it
};
inline constexpr format_facts known_formats[] = {
    {"text", output_format::text, true, true, true, true, false, false, true},
    {"json", output_format::json, true, true, true, true, false, false, true},
    {"csv", output_format::csv, true, true, false, true, false, false, true},
    {"chrome", output_format::chrome, false, true, false, false, true, false, false},
    {"perfetto", output_format::perfetto, false, true, false, false, true, false, false},
    {"ctf", output_format::ctf, false, false, false, false, false, true, false},
    {"otlp", output_format::otlp, false, false, false, false, true, true, false},
    {"html", output_format::html, false, false, false, false, true, false, true},
    {"clickhouse", output_format::clickhouse, false, false, false, false, false, false, false},
    {"clickhouse-table", output_format::clickhouse_table, false, false, false, false, false, false,
     false},
    {"print", output_format::print, true, false, false, true, false, false, true},
};
[[nodiscard]] constexpr bool is_folder(output_format format) noexcept {
    for (const auto& facts : known_formats) {
        if (facts.value == format) return facts.folder;
    }
    return false;
}
/// How the answer to --sql is printed.
enum class query_format { automatic, table, json, csv };
enum class colouring { automatic, always, never };

/// A value of --thread.
struct thread_choice {
    std::string text;
    std::optional<std::uint32_t> id;  ///< nothing: the text is a glob for names
};

struct options {
    std::vector<std::string> files;
    bool backward = false;
    std::uint64_t limit = std::numeric_limits<std::uint64_t>::max();
    std::vector<std::string> events;
    std::vector<std::uint32_t> threads;
    std::vector<thread_choice> asked_threads;
    std::string where;  ///< what records must be like; empty: anything
    std::string from;   ///< parse_when; empty: from the beginning
    std::string to;
    std::vector<std::string> offsets;  ///< FILE=SECONDS
    std::vector<std::string> matches;  ///< EVENT.FIELD[,EVENT.FIELD]
    bool statistics = false;
    measure::question measures;  ///< with `statistics`
    bool follow = false;
    bool until_closed = false;
    bool retry = false;
    bool browse = false;
    bool symbols = false;  ///< text names the places that addresses are of
    unsigned jobs = 0;     ///< threads that read ahead; 1: only the one that prints; 0: automatic
    output_format format = output_format::text;
    std::vector<std::string> flows;     ///< globs of EVENT.FIELD
    std::vector<std::string> counters;  ///< the same
    std::vector<std::string> types;     ///< of CPTRAP files, as are codes, pages and lengths
    std::vector<std::string> codes;
    std::string pages;
    std::vector<std::string> lengths;  ///< TYPE=BYTES
    std::string das;                   ///< das_storage::parse_place; empty: the content decides
    std::string branches;              ///< the report of a branch trace; empty: its records
    std::string sql;                   ///< a question instead of options; empty: none
    query_format sql_format = query_format::automatic;
    std::string output;
    std::string host;    ///< clickhouse and otlp name this machine
    std::string table;   ///< in ClickHouse
    std::string server;  ///< the version of ClickHouse
    trace_ring::exporter::time_format time = trace_ring::exporter::time_format::local;
    colouring colour = colouring::automatic;

    /// There are options that only CPTRAP files have, so a file of no other kind is one.
    [[nodiscard]] bool has_spool_options() const noexcept {
        return !types.empty() || !codes.empty() || !pages.empty() || !lengths.empty();
    }
};

/// True: continue. False: exit with `status`; the messages were printed.
[[nodiscard]] bool parse(int argc, char** argv, options& into, int& status);

}  // namespace trace_reduce
