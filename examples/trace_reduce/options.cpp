// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// The command line of trace-reduce. It is a separate file because the parser takes long to
/// compile.

#include "options.hpp"
#include "position/when_text.hpp"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <iostream>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <clickhouse/record_table.hpp>

#include "cptrap/choice.hpp"
#include "das/place.hpp"
#include "position/offset_text.hpp"

namespace trace_reduce {

namespace {

constexpr const char* footer =
    R"(EXPR: or || and && not !, == != < <= > >=, in {1, 0x10..0x1F}, ~ or like "glob" (!~), + - * /
% &, numbers, 10ms (fs ps ns us ms s min h d), "texts". Names are the events' fields (NAME, or
EVENT.NAME of one event alone; `odd name`, array[0]), and time (since the trace began), latest,
ticks, event, thread and process (id or name), tid, pid, lane, position; and function, which
contains the code address of the site: function == "main", function ~ "str*"; and duration, the
length of a span: duration > 10ms (or a field of that name, if there is one). If either end of a
span is selected, both are shown; with --follow an end is shown if its begin was, but not a begin
whose end comes later. A value that a record does not have is unknown: neither a comparison with it
nor its opposite selects the record. Whole numbers have 64 bits, stop at their limits, and compare
as in mathematics; a comparison with a division by zero does not hold. Records of CPTRAP files have
the fields type, code, length, page, index, offset, entry, attached, data[0] (bytes), halfwords[0],
words[0], ebcdic and ascii.

Exit status: 0; 2 if a file is of an unknown kind or is damaged (the readable part is printed, and
stderr shows the place: FILE: offset N: cause); 130 if interrupted, except when following;
1 for anything else.)";

/// A check of the parser's: what is wrong with a set of numbers.
template <class Parse>
auto cptrap_set(Parse parse) {
    return [parse](const std::string& text) {
        std::vector<bool> numbers;
        return parse(text, numbers);
    };
}

/// Takes a name of one of these values. The parser's own check would also take their numbers, and
/// does not name the others.
template <class Value>
CLI::Validator one_of(std::vector<std::pair<std::string, Value>> known) {
    return {[known = std::move(known)](std::string& text) {
                std::string names;
                for (const auto& [name, value] : known) {
                    if (name == text) {
                        text = std::to_string(static_cast<int>(value));
                        return std::string();
                    }
                    names += (names.empty() ? "" : ", ") + name;
                }
                return "'" + text + "' is none of " + names;
            },
            ""};
}

/// Ids alone are known from the tables. Names are asked of records, as in a condition: a thread
/// may get its name late.
void choose_threads(const std::vector<std::string>& threads, options& into) {
    std::string any;
    bool named = false;
    for (const auto& each : threads) {
        std::uint32_t id = 0;
        const char* const end = each.data() + each.size();
        const auto [stop, fault] = std::from_chars(each.data(), end, id);
        const bool is_id = fault == std::errc() && stop == end;
        if (each.empty()) throw CLI::ValidationError("--thread", "an empty name");
        into.asked_threads.push_back({each, is_id ? std::optional(id) : std::nullopt});
        if (is_id) into.threads.push_back(id);
        named = named || !is_id;
        if (!any.empty()) any += " or ";
        if (is_id) {
            any += "tid == " + each;
            continue;
        }
        any += "thread ~ \"";
        for (const char c : each) {
            if (c == '"' || c == '\\') any += '\\';
            any += c;
        }
        any += '"';
    }
    if (!named) return;
    if (!into.branches.empty()) {
        throw CLI::ValidationError("--thread", "--branches takes the ids of threads, not names");
    }
    into.threads.clear();
    into.where = into.where.empty() ? any : '(' + any + ") and (" + into.where + ')';
}

/// Throws if the format does not support an option.
void check_format(const options& wanted) {
    for (const auto& facts : known_formats) {
        if (facts.value != wanted.format) continue;
        const std::string name = std::string("--format ") + facts.name + " ";
        if (wanted.backward && !facts.backward) {
            throw CLI::ValidationError(name + "needs times that ascend: not with --backward");
        }
        if (wanted.follow && !facts.follow) {
            throw CLI::ValidationError(name + "is whole or nothing: not with --follow");
        }
        if (wanted.retry && !facts.retry) {
            throw CLI::ValidationError(name + "takes no file in later: not with --retry");
        }
        if (wanted.statistics && !facts.statistics) {
            throw CLI::ValidationError(
                name +
                "has no statistics: --stats is text, json or csv, and print of CPTRAP files");
        }
        if (facts.folder && wanted.output.empty()) {
            throw CLI::ValidationError(name + "makes a folder: it needs --output DIR");
        }
        if (wanted.symbols && facts.value != output_format::text &&
            facts.value != output_format::clickhouse) {
            throw CLI::ValidationError(name + "has addresses without names: not with --symbols");
        }
        if (!wanted.counters.empty() && facts.value == output_format::otlp) {
            throw CLI::ValidationError(name + "draws no curves: not with --counter");
        }
        if ((!wanted.flows.empty() || !wanted.counters.empty()) && !facts.roles) {
            throw CLI::ValidationError(name +
                                       "draws nothing: --flow and --counter are for chrome, "
                                       "perfetto and html, --flow also for otlp");
        }
    }
}

/// Of --sql: the query selects, so few other options have a meaning.
void check_query(const CLI::App& app, options& into) {
    for (const CLI::Option* each : app.get_options()) {
        const std::string name = each->get_name();
        const bool known = each->get_positional() || name == "--sql" || name == "--format" ||
                           name == "--output" || name == "--colour,--color";
        if (each->count() == 0 || known) continue;
        throw CLI::ValidationError(name, "not with --sql, which selects by itself");
    }
    if (into.sql.find_first_not_of(" \t\n;") == into.sql.npos) {
        throw CLI::ValidationError("--sql", "an empty query");
    }
    if (app.get_option("--format")->count() == 0) return;
    switch (into.format) {
        case output_format::text:
            into.sql_format = query_format::table;
            return;
        case output_format::json:
            into.sql_format = query_format::json;
            return;
        case output_format::csv:
            into.sql_format = query_format::csv;
            return;
        default:
            throw CLI::ValidationError("--format", "of --sql: text, json or csv");
    }
}

}  // namespace

bool parse(int argc, char** argv, options& into, int& status) {
    using trace_ring::exporter::time_format;
    namespace reduce = trace_ring::reduce;
    CLI::App app(
        "Shows the records of trace files, merged by time, with losses in their places; the "
        "records\n"
        "of CPTRAP files; and the traces in core dumps. The content of a file decides its kind.",
        "trace-reduce");
    app.set_version_flag("--version", "trace-reduce " TRACE_RING_VERSION);
    app.add_option(
           "FILE", into.files,
           "Trace files of programs that run, ended or were killed; CPTRAP files; core dumps")
        ->required();
    auto* backward = app.add_flag("--backward", into.backward, "The newest records first");
    auto* limit = app.add_option("--limit", into.limit, "Stop after so many records");
    const auto whole_number = [](std::string& text) {
        // The parser would take -1 for the greatest number, and 010 for 8.
        std::uint64_t value = 0;
        const char* const end = text.data() + text.size();
        const auto [stop, fault] = std::from_chars(text.data(), end, value);
        if (text.empty() || fault != std::errc() || stop != end) {
            return "\"" + text + "\" is no number of records";
        }
        text = std::to_string(value);
        return std::string();
    };
    limit->option_text("N")->transform(CLI::Validator(whole_number, ""));
    app.add_option("--event", into.events,
                   "Only events whose names match, with * ? and [a-z]; may be given again")
        ->option_text("GLOB")
        ->allow_extra_args(false);
    std::vector<std::string> threads;
    app.add_option(
           "--thread", threads,
           "Only records of the thread with this id, or of threads whose names match, with * "
           "? and [a-z]; may be given again")
        ->option_text("ID|GLOB")
        ->allow_extra_args(false);
    auto* where =
        app.add_option(
               "--where", into.where,
               "Only records that meet this condition, as in 'event ~ \"order.*\" and (price * "
               "2 > 1e6 or not urgent)'; if one end of a span meets it, both are shown; see "
               "below")
            ->option_text("EXPR")
            ->check([](const std::string& text) {
                return text.empty() ? std::string("--where: an empty condition") : std::string();
            });
    const auto is_place = [](const std::string& what) {
        spool_place place;
        // A duration alone does not say from where it counts.
        if (!parse_when(what) && !parse_spool_place(what, place).empty() &&
            parse_when('+' + what)) {
            return what + " says no direction: +" + what + " is after the beginning, -" + what +
                   " before the end";
        }
        return parse_when(what) || parse_spool_place(what, place).empty()
                   ? std::string()
                   : what + " is none of: " + std::string(forms_of_when) +
                         "; of a CPTRAP file: " + std::string(forms_of_spool_place);
    };
    auto* from = app.add_option("--from", into.from,
                                "Only from this place on: " + std::string(forms_of_when) +
                                    "; of a CPTRAP file " + std::string(forms_of_spool_place))
                     ->option_text("WHEN")
                     ->check(is_place);
    auto* to = app.add_option("--to", into.to, "Only before this place")
                   ->option_text("WHEN")
                   ->check(is_place);
    auto* offset =
        app.add_option(
               "--offset", into.offsets,
               "Make the times of a file, given by its name or number, later by this much (or "
               "earlier: -0.25), if its machine's clock was wrong; may be given again")
            ->option_text("FILE=SECONDS")
            ->allow_extra_args(false)
            ->check([](const std::string& what) {
                if (position::is_too_large(what)) {
                    return what +
                           " is too large: an offset is at most 3200000000 seconds, about "
                           "a hundred years";
                }
                return position::parse_offset(what)
                           ? std::string()
                           : what + " is no FILE=SECONDS, with up to nine decimal places";
            });
    auto* match =
        app.add_option(
               "--match", into.matches,
               "Estimate the offsets to the first file by messages between the machines: the "
               "event of sending and the event of receiving, with the field that both share; "
               "a single event is a span that begins there and ends here. May be given again")
            ->option_text("EVENT.FIELD[,EVENT.FIELD]")
            ->allow_extra_args(false)
            ->check([](const std::string& what) {
                return position::parse_match(what) ? std::string()
                                                   : what + " is no EVENT.FIELD[,EVENT.FIELD]";
            });
    auto* statistics =
        app.add_flag("--stats", into.statistics,
                     "Print counts of records, bytes, losses, events and lanes instead");
    auto* fields = app.add_flag("--fields", into.measures.fields,
                                "With --stats, of each event's fields: count, rate, minimum, "
                                "maximum, mean and percentiles (within 0.4 %) of numbers, the most "
                                "frequent values of texts, and the durations of spans");
    auto* by = app.add_option("--by", into.measures.by,
                              "With --stats: records by thread, lane, process, event, or the value "
                              "of a field (field:NAME if it has one of these names); with "
                              "--fields its figures too. 10000 groups are kept, 500 with --fields: "
                              "if there are more, the rarest are summed up");
    by->option_text("FIELD");
    auto* histogram = app.add_option("--histogram", into.measures.histograms,
                                     "With --stats: how a field's values are distributed; a glob, "
                                     "in which spans have a field 'duration'; may be given again");
    histogram->option_text("EVENT.FIELD")->allow_extra_args(false);
    auto* buckets =
        app.add_option("--buckets", into.measures.linear,
                       "Of histograms: by powers of two (log, the default), or of equal "
                       "width (linear)");
    buckets->option_text("log|linear")->transform(one_of<bool>({{"log", false}, {"linear", true}}));
    auto* top = app.add_option("--top", into.measures.rows,
                               "Of groups and frequent values: how many to show (10 by default)");
    top->option_text("N")->check(CLI::PositiveNumber);
    for (auto* each : {static_cast<CLI::Option*>(fields), by, histogram}) each->needs(statistics);
    buckets->needs(histogram);
    top->needs(statistics);
    auto* follow =
        app.add_flag("--follow", into.follow,
                     "Continue with new records as they are written, until interrupted. If "
                     "another file takes the name of one, stderr reports it");
    app.add_flag("--until-closed", into.until_closed,
                 "With --follow: until no program records into the files")
        ->needs(follow);
    auto* retry =
        app.add_flag("--retry", into.retry,
                     "With --follow: if another file takes the name of one, read the old one to "
                     "its end, then the new one from its beginning")
            ->needs(follow);
    auto* types =
        app.add_option("--type", into.types,
                       "Of CPTRAP files only these types of records: interface, "
                       "table_entry, an event of CP's trace table (start_io), a hexadecimal "
                       "number (0B, 0x0B, X'0B'), a range (13-15); several with commas, or given "
                       "again");
    types->option_text("SET")->allow_extra_args(false)->check(cptrap_set(parse_types));
    auto* codes =
        app.add_option("--code", into.codes,
                       "Of CPTRAP files only records with these codes, which are hexadecimal: "
                       "0B,100-1FF. With --type: also interface data with these codes");
    codes->option_text("SET")->allow_extra_args(false)->check(cptrap_set(parse_codes));
    auto* pages =
        app.add_option("--page", into.pages,
                       "Of CPTRAP files only these spool records of 4 KiB, from 0: 5, 5-7 or 5-");
    pages->option_text("RANGE")->check([](const std::string& text) {
        page_range range;
        return parse_pages(text, range);
    });
    auto* lengths =
        app.add_option("--length", into.lengths,
                       "Of CPTRAP files: records of this type, a hexadecimal number, have so many "
                       "bytes, or the header of interface data; of types whose layout is not "
                       "known. May be given again");
    lengths->option_text("TYPE=BYTES|header")
        ->allow_extra_args(false)
        ->check([](const std::string& text) {
            trace_ring::record::cptrap_lengths known;
            return parse_length(text, known);
        });
    app.add_option(
           "--jobs", into.jobs,
           "Threads that read, decode and select ahead (1: one thread does everything; the default "
           "is one per processor if records are selected or counted, otherwise 1). "
           "The result is the same")
        ->option_text("N")
        ->check(CLI::Range(1, 256));
    auto* browse =
        app.add_flag("--browse", into.browse,
                     "Browse, search and filter the records in the terminal, within the given "
                     "range and conditions: h shows the keys; with --follow, new records as they "
                     "are written");
    auto* branches =
        app.add_option("--branches", into.branches,
                       "Of a branch trace (branch-trace makes them): the last branches, the newest "
                       "first; the hottest edges or basic blocks; the calls as a tree; or how much "
                       "of a function was run. --limit is rows then, 20 by default, and --thread a "
                       "traced thread")
            ->option_text("last|edges|blocks|calls|coverage=FUNCTION")
            ->check([](const std::string& what) {
                const bool known = what == "last" || what == "edges" || what == "blocks" ||
                                   what == "calls" ||
                                   (what.starts_with("coverage=") && what.size() > 9);
                return known ? std::string()
                             : what + " is none of last, edges, blocks, calls, coverage=FUNCTION";
            });
    auto* das =
        app.add_option("--das", into.das,
                       "Read the files as storage of a System/370 guest, and show the DAS trace "
                       "table whose header lies at this address, or that the word at location 84 "
                       "designates, from the oldest entry to the newest. Of an emulator's core "
                       "dump, with the address in its process that guest location 0 has. All "
                       "numbers are hexadecimal")
            ->option_text("ADDRESS|word84[+PREFIX][@BASE]")
            ->check(das_storage::fault_of_place);
    auto* sql =
        app.add_option(
               "--sql", into.sql,
               "Print the answer to a question in SQL instead, as SQLite understands it: as a "
               "table "
               "on a terminal, otherwise as CSV; or as --format says: text, json or csv. The "
               "tables "
               "are records, spans, counters, flows, losses, events, fields, threads, processes, "
               "clocks, and one for each event, in double quotes: \"order.sent\"; of heap traces "
               "allocations, of address traces \"references\", of branch traces branches")
            ->option_text("QUERY");
    auto* symbols =
        app.add_flag("--symbols", into.symbols,
                     "In text, name the functions and source lines of addresses: by the trace's "
                     "records 'module', and the files that these name, if they are still the same; "
                     "in clickhouse, fill the column stack_text with the names of heap traces' "
                     "call stacks");
    std::vector<std::pair<std::string, output_format>> formats;
    for (const auto& each : known_formats) formats.emplace_back(each.name, each.value);
    auto* format =
        app.add_option(
               "--format", into.format,
               "text (the default); json: one object a line; csv: one row a record; chrome "
               "and perfetto: for these and other viewers of timelines; ctf: a folder that "
               "babeltrace2 and Trace Compass read; otlp: a folder of requests for OpenTelemetry "
               "collectors; html: a page with the timeline, of CPTRAP "
               "files with the records; clickhouse: rows in ClickHouse's Native format, and "
               "clickhouse-table: the statement that creates their table; or print: pages of 60 "
               "lines, of CPTRAP files only")
            ->option_text(
                "text|json|csv|chrome|perfetto|ctf|otlp|html|clickhouse|clickhouse-table|print")
            ->transform(one_of(std::move(formats)));
    app.add_option(
           "--flow", into.flows,
           "In chrome, perfetto and html, connect records that have the same number in this "
           "field, in addition to fields of type flow; in otlp, their spans are one trace; with * "
           "? and [a-z]; may be given again")
        ->option_text("EVENT.FIELD")
        ->allow_extra_args(false);
    app.add_option(
           "--counter", into.counters,
           "In chrome, perfetto and html, also draw this field as a curve; may be given again")
        ->option_text("EVENT.FIELD")
        ->allow_extra_args(false);
    auto* host = app.add_option("--host", into.host,
                                "Of clickhouse and otlp: the machine that the traces come from");
    host->option_text("NAME");
    auto* table = app.add_option("--table", into.table, "Of clickhouse-table: the table's name");
    table->option_text("[DATABASE.]NAME")->default_val("trace_records");
    auto* server =
        app.add_option("--server", into.server,
                       "Of clickhouse-table: the server's version; before 23 without codecs, "
                       "LowCardinality and indexes");
    server->option_text("VERSION")->default_val("25.3")->check([](const std::string& text) {
        return clickhouse::server_version::parse(text) ? std::string()
                                                       : "'" + text + "' is no version, as 25.3";
    });
    auto* result = app.add_option(
        "--output", into.output,
        "Write to this file, whole or not at all; of ctf and otlp: to this folder, which must not "
        "be there, or be empty");
    result->option_text("FILE|DIR");
    auto* time =
        app.add_option("--time", into.time,
                       "Times as local date and time (the default), seconds since the trace began, "
                       "or ticks of its clock");
    time->option_text("local|relative|raw")
        ->transform(one_of<time_format>({{"local", time_format::local},
                                         {"relative", time_format::relative},
                                         {"raw", time_format::raw}}));
    app.add_option("--colour,--color", into.colour, "Colours in text (auto: on a terminal)")
        ->option_text("auto|always|never")
        ->transform(one_of<colouring>({{"auto", colouring::automatic},
                                       {"always", colouring::always},
                                       {"never", colouring::never}}));
    follow->excludes(backward)->excludes(statistics);
    statistics->excludes(backward)->excludes(limit);
    follow->excludes(to);
    for (auto* each : {from, to, offset, match}) branches->excludes(each);
    branches->excludes(backward)->excludes(statistics)->excludes(follow)->excludes(format);
    branches->excludes(where)->excludes(das);
    browse->excludes(backward)->excludes(limit)->excludes(statistics)->excludes(branches);
    browse->excludes(format)->excludes(result);
    symbols->excludes(follow)->excludes(browse)->excludes(statistics)->excludes(branches);
    retry->excludes(browse)->excludes(offset)->excludes(match);
    for (auto* each : {types, codes, pages, lengths}) each->excludes(branches);
    sql->excludes(das)->excludes(branches)->excludes(browse)->excludes(statistics);
    app.footer(footer);
    app.failure_message([](const CLI::App*, const CLI::Error& error) {
        return std::string("trace-reduce: ") + error.what() + " (see --help)\n";
    });
    try {
        app.parse(argc, argv);
        if (*sql) {
            check_query(app, into);
            return true;
        }
        check_format(into);
        const bool rows = into.format == output_format::clickhouse;
        const bool declared = into.format == output_format::clickhouse_table;
        if (*host && !rows && into.format != output_format::otlp) {
            throw CLI::ValidationError("--host", "only with --format clickhouse or otlp");
        }
        for (const auto* each : {table, server}) {
            if (*each && !declared) {
                throw CLI::ValidationError(each->get_name(), "only with --format clickhouse-table");
            }
        }
        if (declared) into.limit = 0;  // no record matters
        choose_threads(threads, into);
        // An empty text is not checked.
        if (*from && into.from.empty()) throw CLI::ValidationError("--from", is_place(""));
        if (*to && into.to.empty()) throw CLI::ValidationError("--to", is_place(""));
        if (*das && into.das.empty()) throw CLI::ValidationError("--das", "an empty place");
        if (*das && *time) {
            throw CLI::ValidationError("--time",
                                       "an entry of a DAS trace table has no time: not with --das");
        }
        return true;
    } catch (const CLI::ParseError& error) {
        status = app.exit(error, std::cout, std::cerr) == 0 ? 0 : 1;
        return false;
    }
}

}  // namespace trace_reduce
