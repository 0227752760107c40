// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "plan.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace trace_reduce::sql {

namespace {
[[nodiscard]] const char* sign_text(unsigned char sign) noexcept {
    switch (sign) {
        case SQLITE_INDEX_CONSTRAINT_EQ:
            return "=";
        case SQLITE_INDEX_CONSTRAINT_NE:
            return "<>";
        case SQLITE_INDEX_CONSTRAINT_GT:
            return ">";
        case SQLITE_INDEX_CONSTRAINT_GE:
            return ">=";
        case SQLITE_INDEX_CONSTRAINT_LT:
            return "<";
        case SQLITE_INDEX_CONSTRAINT_LE:
            return "<=";
        default:
            return "GLOB";
    }
}
[[nodiscard]] bool is_order(unsigned char sign) noexcept {
    return sign == SQLITE_INDEX_CONSTRAINT_GT || sign == SQLITE_INDEX_CONSTRAINT_GE ||
           sign == SQLITE_INDEX_CONSTRAINT_LT || sign == SQLITE_INDEX_CONSTRAINT_LE;
}

/// Whether the rows of a table are the records of its files, one by one.
[[nodiscard]] bool has_records(table_kind kind) noexcept {
    return kind <= table_kind::references && kind != table_kind::spans;
}

[[nodiscard]] bool can_take(const table_shape& of, cell what, unsigned char sign) noexcept {
    const bool equal = sign == SQLITE_INDEX_CONSTRAINT_EQ;
    const bool glob = sign == SQLITE_INDEX_CONSTRAINT_GLOB;
    // An end may be in another place than its begin, and spans of other events decide which ends
    // belong together.
    if (!has_records(of.kind)) return false;
    switch (what) {
        case cell::time:
        case cell::since:
        case cell::ticks:
        case cell::position:
            return equal || is_order(sign);
        case cell::lane:
        case cell::tid:
        case cell::pid:
            return equal;
        case cell::thread:
        case cell::event:
            return equal || glob;
        case cell::field:
            return equal || glob || is_order(sign) || sign == SQLITE_INDEX_CONSTRAINT_NE;
        default:
            return false;
    }
}

/// The share of records that such a term leaves.
[[nodiscard]] double share_of(cell what, unsigned char sign) noexcept {
    if (what == cell::time || what == cell::since || what == cell::ticks) {
        return sign == SQLITE_INDEX_CONSTRAINT_EQ ? 1e-5 : 0.2;
    }
    if (what == cell::position) return sign == SQLITE_INDEX_CONSTRAINT_EQ ? 1e-4 : 0.3;
    if (what == cell::lane || what == cell::tid || what == cell::thread) return 0.1;
    if (what == cell::event) return 0.1;
    if (sign == SQLITE_INDEX_CONSTRAINT_NE) return 0.9;
    return sign == SQLITE_INDEX_CONSTRAINT_EQ ? 0.001 : 0.3;
}
/// Whether the reader reads less of the file by it, instead of passing over what it reads.
[[nodiscard]] bool seeks(cell what) noexcept {
    return what == cell::time || what == cell::since || what == cell::ticks ||
           what == cell::position || what == cell::lane || what == cell::tid;
}

[[nodiscard]] double records_in(const trace_set& in) {
    double sum = 1;
    for (const auto& file : in.files()) {
        const auto& tables = file->trace().about();
        sum += static_cast<double>(tables.present() * tables.plan().sub_buffer_bytes) / 32;
    }
    return sum;
}

}  // namespace

std::string plan::text(const table_shape& of) const {
    std::string out;
    for (const auto& each : terms) {
        if (!out.empty()) out += " AND ";
        out += of.columns[each.column].name;
        out += ' ';
        out += each.set ? "IN (?)" : std::string(sign_text(each.sign)) + " ?";
    }
    const auto note = [&out](const char* what) {
        if (!out.empty()) out += ", ";
        out += what;
    };
    if (backward) note("backward");
    if (ordered && !backward) note("by time");
    if (only_count) note("counted");
    return out.empty() ? "all" : out;
}

plan choose(sqlite3_index_info& asked, const table_shape& of, const trace_set& in) {
    plan made;
    double share = 1;       // of the records that SQLite sees
    double read_share = 1;  // of the records that are read
    for (int i = 0; i < asked.nConstraint; ++i) {
        const auto& each = asked.aConstraint[i];
        if (each.usable == 0 || each.iColumn < 0) continue;
        const auto column = static_cast<std::size_t>(each.iColumn);
        const cell what = of.columns[column].what;
        if (!can_take(of, what, each.op)) continue;
        // The reader compares texts byte by byte.
        if (each.op != SQLITE_INDEX_CONSTRAINT_GLOB &&
            std::string_view(sqlite3_vtab_collation(&asked, i)) != "BINARY") {
            continue;
        }
        const bool set = each.op == SQLITE_INDEX_CONSTRAINT_EQ &&
                         sqlite3_vtab_in(&asked, i, -1) != 0 && sqlite3_vtab_in(&asked, i, 1) != 0;
        made.terms.push_back({column, each.op, set});
        asked.aConstraintUsage[i].argvIndex = static_cast<int>(made.terms.size());
        share *= share_of(what, each.op);
        if (seeks(what)) read_share *= share_of(what, each.op);
    }
    const bool one_row = of.kind == table_kind::records || of.kind == table_kind::event ||
                         of.kind == table_kind::references;
    made.only_count = asked.colUsed == 0 && one_row;
    // Columns 3 and 4 are the counts.
    if (of.kind == table_kind::events) made.counts = (asked.colUsed >> 3 & 3U) != 0;
    if (asked.nOrderBy == 1 && has_records(of.kind) && asked.aOrderBy[0].iColumn >= 0) {
        const cell by = of.columns[static_cast<std::size_t>(asked.aOrderBy[0].iColumn)].what;
        const auto& files = in.files();
        const bool dates = std::all_of(files.begin(), files.end(),
                                       [](const auto& each) { return each->ascends(); });
        const bool alone = files.size() == 1;
        const bool is_counter =
            by == cell::ticks && alone && !in.files()[0]->time().eras().several();
        // A value of `flows` and `counters` may have several rows, all of one time.
        if ((by == cell::time && dates) ||
            (by == cell::since && alone && files[0]->time().known()) || is_counter) {
            made.ordered = true;
            made.backward = asked.aOrderBy[0].desc != 0;
            asked.orderByConsumed = 1;
        }
    }
    const double all = records_in(in);
    // A row costs SQLite more than the reader.
    asked.estimatedRows = static_cast<sqlite3_int64>(std::max(1.0, all * share));
    asked.estimatedCost = all * read_share * 0.3 + all * share + 10;
    return made;
}

}  // namespace trace_reduce::sql
