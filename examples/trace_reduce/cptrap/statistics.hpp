// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A CPTRAP file in numbers, as a table, as one JSON object or as CSV: records and bytes for each
/// type and code, what is lost by cause, and what cannot be read.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>

#include <trace_ring/cptrap/cp_entry.hpp>
#include <trace_ring/cptrap/record.hpp>
#include <trace_ring/cptrap/spool_reader.hpp>
#include <trace_ring/exporter/text/append.hpp>
#include <trace_ring/loss.hpp>

#include "../exporting/csv.hpp"
#include "../statistics.hpp"
#include "names.hpp"
#include "notation.hpp"

namespace trace_reduce {

struct spool_statistics {
    struct count {
        std::uint64_t records = 0;
        std::uint64_t bytes = 0;  ///< with the headers
        bool headed = false;      ///< they have a code
        /// Of entries of CP's trace table that all name one event: its name.
        std::string_view event{};
        bool several = false;  ///< they name several
    };

    void add(const reduce::spool_item& item) {
        if (item.what != reduce::spool_item::kind::record) {
            ++damages;
            damaged_bytes += item.bytes.size();
        } else if (const auto told = item.record.lost()) {
            // A damaged count must not wrap the sum.
            const std::uint64_t left = ~std::uint64_t{0} - lost.total();
            lost.add(told->cause, told->count < left ? told->count : left);
        } else {
            const auto type = static_cast<std::uint8_t>(item.record.type);
            for (auto* to : {&all, &rows[{type, item.record.code}]}) {
                ++to->records;
                to->bytes += item.bytes.size();
                to->headed = item.record.headed;
                const auto entry = item.record.entry();
                const auto event = entry ? name_of(entry->event()) : std::string_view();
                if (to->records != 1 && event != to->event) to->several = true;
                to->event = to->several ? std::string_view() : event;
            }
        }
    }

    count all;
    std::map<std::pair<std::uint8_t, std::uint16_t>, count> rows;  ///< by type and code
    trace_ring::loss_counts lost;
    std::uint64_t damages = 0;  ///< places
    std::uint64_t damaged_bytes = 0;
};

namespace in_text {

inline void show(text_buffer& out, const reduce::spool_reader& file, const spool_statistics& sum) {
    print_name(out, file.name());
    print(out, "\n  pages     %llu\n  records   %llu, %llu bytes\n  lost      %llu",
          wide(file.spool_records()), wide(sum.all.records), wide(sum.all.bytes),
          wide(sum.lost.total()));
    if (sum.lost.total() != 0) {
        out += ": ";
        print_lost(out, sum.lost);
    }
    out += '\n';
    if (sum.damages != 0) {
        print(out, "  damaged   in %llu place%s, %llu bytes\n", wide(sum.damages),
              sum.damages == 1 ? "" : "s", wide(sum.damaged_bytes));
    }
    out += "\n       records           bytes  share  type            code\n";
    for (const auto& [key, row] : sum.rows) {
        const auto name = name_of(static_cast<trace_ring::record::cptrap_type>(key.first));
        const auto type = static_cast<trace_ring::record::cptrap_type>(key.first);
        print(out, "%14llu  %14llu  %4.1f%%  ", wide(row.records), wide(row.bytes),
              100.0 * static_cast<double>(row.records) / static_cast<double>(sum.all.records));
        append_type(out, type);
        print(out, " %-11.*s  ", static_cast<int>(name.size()), name.data());
        row.headed ? append_code(out, type, key.second) : void(out += "-");
        if (!row.event.empty()) {
            out += ' ';
            out += row.event;
        }
        out += '\n';
    }
}

}  // namespace in_text

namespace in_json {

inline void show(text_buffer& out, const reduce::spool_reader& file, const spool_statistics& sum) {
    out += R"({"kind":"statistics","file":)";
    exporter::impl::append_json_string(out, file.name());
    member(out, R"(,"pages":)", file.spool_records());
    member(out, R"(,"records":)", sum.all.records);
    member(out, R"(,"bytes":)", sum.all.bytes);
    lost(out, sum.lost);
    member(out, R"(,"damages":)", sum.damages);
    member(out, R"(,"damaged_bytes":)", sum.damaged_bytes);
    out += R"(,"codes":[)";
    const char* between = "";
    for (const auto& [key, row] : sum.rows) {
        out += between;
        between = ",";
        const auto type = static_cast<trace_ring::record::cptrap_type>(key.first);
        out += R"({"type":")";
        append_type(out, type);
        out += '"';
        if (row.headed) {
            out += R"(,"code":")";
            append_code(out, type, key.second);
            out += '"';
        }
        member(out, R"(,"records":)", row.records);
        member(out, R"(,"bytes":)", row.bytes);
        if (!row.event.empty()) {
            out += R"(,"event":)";
            exporter::impl::append_json_string(out, row.event);
        }
        out += '}';
    }
    out += "]}\n";
}

}  // namespace in_json

namespace in_csv {

/// Stands above the rows of all files.
inline void show_spool_header(text_buffer& out) {
    out += "file,kind,type,name,code,event,records,bytes\n";
}
/// `kind` is `all`, `code` for each type and code, `lost` for each cause (in `name`), or `damaged`.
inline void show(text_buffer& out, const reduce::spool_reader& file, const spool_statistics& sum) {
    const auto begin = [&](std::string_view kind) {
        exporting::impl::append_csv_text(out, file.name());
        out += ',';
        out += kind;
        out += ',';
    };
    const auto text = [&](std::string_view value) {
        if (!value.empty()) exporting::impl::append_csv_text(out, value);
        out += ',';
    };
    const auto finish = [&](std::uint64_t records, bool with_bytes, std::uint64_t bytes) {
        exporter::impl::append_number(out, records);
        out += ',';
        if (with_bytes) exporter::impl::append_number(out, bytes);
        out += '\n';
    };
    begin("all");
    out += ",,,,";
    finish(sum.all.records, true, sum.all.bytes);
    for (const auto& [key, row] : sum.rows) {
        const auto type = static_cast<trace_ring::record::cptrap_type>(key.first);
        begin("code");
        out += "0x";
        append_type(out, type);
        out += ',';
        text(name_of(type));
        if (row.headed) {
            out += "0x";
            append_code(out, type, key.second);
        }
        out += ',';
        text(row.event);
        finish(row.records, true, row.bytes);
    }
    for (std::size_t i = 0; i < trace_ring::loss_cause_count; ++i) {
        const auto cause = static_cast<trace_ring::loss_cause>(i);
        if (sum.lost[cause] == 0) continue;
        begin("lost");
        out += ',';
        text(to_string(cause));
        out += ",,";
        finish(sum.lost[cause], false, 0);
    }
    if (sum.damages == 0) return;
    begin("damaged");
    out += ",,,,";
    finish(sum.damages, true, sum.damaged_bytes);
}

}  // namespace in_csv
}  // namespace trace_reduce
