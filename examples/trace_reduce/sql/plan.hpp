// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The part of a query that the reader does itself: which records to read, and in which order.
/// SQLite checks each row again, so a filter here may let through more, and never less.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <trace_ring/reduce/filter.hpp>

#include "shape.hpp"
#include "sqlite.hpp"

namespace trace_reduce::sql {

/// One comparison of a column with a value that the query has when it runs.
struct term {
    std::size_t column = 0;
    unsigned char sign = 0;  ///< SQLITE_INDEX_CONSTRAINT_...
    bool set = false;        ///< the value is a list: IN

    friend bool operator==(const term&, const term&) = default;
};

struct plan {
    std::vector<term> terms;
    bool backward = false;    ///< the newest record first
    bool ordered = false;     ///< SQLite does not sort: the times have to ascend, or descend
    bool only_count = false;  ///< no column is used
    bool counts = false;      ///< of events: their records are counted

    friend bool operator==(const plan&, const plan&) = default;

    /// As EXPLAIN QUERY PLAN shows it: "time >= ? AND price > ?, backward".
    [[nodiscard]] std::string text(const table_shape& of) const;
};

/// Chooses from what a query asks of a table, and fills in the answer for SQLite, except the plan's
/// number.
[[nodiscard]] plan choose(sqlite3_index_info& asked, const table_shape& of, const trace_set& in);

/// What is to be read of one file for the values of the terms. `look` is called now and then while
/// reading, and may throw.
[[nodiscard]] reduce::filter filter_for(const plan& how, const table_shape& of, traced_file& in,
                                        sqlite3_value** values, std::function<void()> look);

/// Everything that was there at the last look, with `look` as above.
[[nodiscard]] reduce::filter filter_for_all(const traced_file& in, std::function<void()> look);

}  // namespace trace_reduce::sql
