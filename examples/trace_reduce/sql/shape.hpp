// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The columns of each table.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traces.hpp"

namespace trace_reduce::sql {

enum class table_kind : std::uint8_t {
    records,      ///< all of them; their fields as one JSON object
    event,        ///< the records of one event, with a column for each field
    spans,        ///< one row for both ends; of one event, with columns for its fields
    counters,     ///< a row for each number of a counter's record
    flows,        ///< a row for each number of a flow in a record
    references,   ///< of address traces
    branches,     ///< of branch traces
    allocations,  ///< of heap traces
    losses,
    events,
    fields,
    threads,
    processes,
    clocks,
};

/// The value of a column.
enum class cell : std::uint8_t {
    // Of a record. Of a span: of its begin, or of its end if that is all there is.
    time,
    time_text,
    since,
    ticks,
    latest,
    lane,
    position,
    thread,
    tid,
    pid,
    process,
    program,
    depth,
    cpu,
    event,
    id,
    span,
    began_lane,
    began_position,
    cut,
    fault,
    raw,
    fields,
    bytes,
    offset,
    file,
    field,         ///< number `index` of column_shape::names
    field_number,  ///< the same, as a number where the value has a name
    // Of one value of a record.
    name,
    value,
    // Of a span.
    end,
    end_text,
    duration,
    end_ticks,
    duration_ticks,
    inexact,
    state,
    end_lane,
    end_position,
    end_thread,
    end_tid,
    parent_lane,
    parent_position,
    level,
    results,
    function,  ///< that the site of a reference is in
    // Of tables that are lists: the number of the column in them.
    listed,
};

struct column_shape {
    std::string name;
    const char* type = "";  ///< for SQLite; empty: any
    cell what = cell::listed;
    std::size_t index = 0;  ///< of a field
    bool hidden = false;    ///< not in SELECT *
};

/// A field of an event, in all of the event's types that have it.
struct field_shape {
    std::string name;
    unsigned which = 0;  ///< of several fields of one name
    bool result = false;

    friend bool operator==(const field_shape&, const field_shape&) = default;
};

/// A table of a trace.
struct table_shape {
    table_kind kind = table_kind::records;
    std::string name;   ///< of the table
    std::string event;  ///< whose records it has; empty: of any
    std::vector<field_shape> fields;
    std::vector<column_shape> columns;

    /// CREATE TABLE, as SQLite wants it.
    [[nodiscard]] std::string declaration() const;
};

/// The name of a kind as arguments and tables have it.
[[nodiscard]] std::string_view name_of(table_kind kind) noexcept;

/// The shape of one table. Throws std::runtime_error if no file has such a table.
[[nodiscard]] table_shape shape_of(const trace_set& in, table_kind kind, const std::string& event);
/// The shapes of all tables that these files have. Their names differ.
[[nodiscard]] std::vector<table_shape> all_shapes(const trace_set& in);

/// Where an event's type has each of a table's fields; event_type::npos: it lacks it.
[[nodiscard]] std::vector<std::size_t> find_fields(const reduce::event_type& type,
                                                   std::span<const field_shape> fields);

/// A word in double quotes.
[[nodiscard]] std::string quoted(std::string_view word);

}  // namespace trace_reduce::sql
