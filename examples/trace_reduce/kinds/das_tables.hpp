// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// DAS trace tables through trace-reduce. Guest storage has no mark by which it could be
/// recognised, so --das opens files as such, and all other options that need records are refused.

#include <cstdint>
#include <string>
#include <system_error>

#include <trace_ring/reduce/source.hpp>
#include <trace_ring/reduce/source/format_error.hpp>

#include "../das/csv.hpp"
#include "../das/guest_image.hpp"
#include "../das/json.hpp"
#include "../das/place.hpp"
#include "../das/table.hpp"
#include "../das/text.hpp"
#include "job.hpp"

namespace trace_reduce {

/// Why a wanted option makes no sense for a DAS trace table; empty if all do.
[[nodiscard]] inline std::string das_refusal(const options& wanted) {
    if (!wanted.events.empty() || !wanted.threads.empty() || !wanted.where.empty()) {
        return "an entry of a DAS trace table has neither event, thread nor fields: not with "
               "--event, --thread, --where";
    }
    if (!wanted.from.empty() || !wanted.to.empty() || !wanted.offsets.empty() ||
        !wanted.matches.empty()) {
        return "an entry of a DAS trace table has no time: not with --from, --to, --offset, "
               "--match; "
               "use --limit, --backward";
    }
    if (wanted.has_spool_options()) {
        return "--type, --code, --page and --length are for CPTRAP files";
    }
    if (wanted.jobs != 0) return "a DAS trace table is read by one thread: not with --jobs";
    if (wanted.statistics) {
        return "a DAS trace table counts neither records nor losses: not with --stats";
    }
    if (wanted.follow) {
        return "a file of guest storage does not grow when the guest traces: not with --follow";
    }
    if (wanted.browse) return "--browse does not show DAS trace tables";
    if (wanted.symbols) return "the addresses of a guest have no names here: not with --symbols";
    if (wanted.format != output_format::text && wanted.format != output_format::json &&
        wanted.format != output_format::csv) {
        return "a DAS trace table is shown as text, json or csv: not with another --format";
    }
    return {};
}

/// The table of one file.
template <class Writer>
void reduce_das_table(const std::string& path, const das_storage::place& where,
                      const Writer& writer, std::uint64_t& entries, const job& on) {
    const das_storage::guest_image image(reduce::source::open(path), where.base);
    if (image.core() != nullptr) {
        for (const auto& each : image.core()->damages()) {
            on.complain.damage(path, each.offset, each.what);
        }
    }
    das_storage::table table(image, where);
    for (const auto& each : table.faults()) on.complain.damage(path, each.offset, each.what);
    writer.append(on.to.text(), table);
    while (entries < on.wanted.limit && on.interrupted == 0) {
        const auto one = table.next(on.wanted.backward);
        if (one.what == das_storage::item::kind::end) break;
        if (one.what == das_storage::item::kind::entry) ++entries;
        if (one.what == das_storage::item::kind::missing) {
            on.complain.damage(
                path, one.offset,
                std::to_string(one.entries) + (one.entries == 1 ? " entry is " : " entries are ") +
                    image.absence() + ", from " + das_storage::quoted(one.address, 6) + " on" +
                    image.hint(one.address, 32));
        }
        writer.append(on.to.text(), image, one);
        on.to.flush_some();
    }
}

/// The tables of all files, one after the other.
inline void reduce_das_tables(const job& on) {
    const auto& wanted = on.wanted;
    if (const auto why = das_refusal(wanted); !why.empty()) {
        on.complain.system("--das: " + why);
        return;
    }
    das_storage::place where;
    static_cast<void>(das_storage::parse_place(wanted.das, where));  // the command line was checked
    const bool csv = wanted.format == output_format::csv;
    if (csv) on.to.text() += das_storage::csv_writer::columns;
    std::uint64_t entries = 0;
    for (const auto& path : wanted.files) {
        if (on.interrupted != 0) break;
        const std::string shown = wanted.files.size() > 1 ? path : "";
        try {
            if (csv) {
                reduce_das_table(path, where, das_storage::csv_writer(path), entries, on);
            } else if (wanted.format == output_format::json) {
                reduce_das_table(path, where, das_storage::json_writer(shown), entries, on);
            } else {
                reduce_das_table(path, where, das_storage::text_writer(shown, on.coloured()),
                                 entries, on);
            }
        } catch (const trace_ring::format_error& error) {
            on.complain.damage(error.file(), error.offset(), error.cause());
        } catch (const std::system_error& error) {
            on.complain.system(error.what());
        }
    }
    on.to.flush();
}

}  // namespace trace_reduce
