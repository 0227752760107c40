// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The table of records in ClickHouse: its columns, and its rows as blocks of the Native format.
///
/// One table takes the records of all programs on all machines. A row is a record, a loss or a
/// clock jump. Columns that every row has come first (record_table::common_columns), then a column
/// for each field of each event, EVENT_FIELD: all other bytes than letters and digits are `_`.
/// - Fields of two events that make the same name share the column; `event` distinguishes them. If
///   their types differ, the second column has its type behind the name: EVENT_FIELD_UInt32.
/// - A column whose name is a common column's has `_` behind it. A second field of one name in an
///   event: EVENT_FIELD_2.
/// - A value of an enumeration is its name, as a text, or its number's digits if it has none.
/// - A scalar that the record does not have is null.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <records/file_id.hpp>
#include <trace_ring/exporter/text/span_length.hpp>
#include <trace_ring/reduce/item.hpp>
#include <trace_ring/reduce/tables.hpp>

#include "column.hpp"

namespace clickhouse {

namespace reduce = trace_ring::reduce;

/// What a server can do, by its version.
struct server_version {
    unsigned major = 0;
    unsigned minor = 0;

    /// Text that begins with MAJOR.MINOR; nothing if it does not.
    [[nodiscard]] static std::optional<server_version> parse(std::string_view text);
    /// LowCardinality, codecs, DateTime64 and data-skipping indexes: of no use before, or missing.
    [[nodiscard]] bool is_current() const noexcept { return major >= 23; }
};

/// What all rows of one trace have in common.
struct trace_identity {
    std::string host{};
    records::file_id id{};
    std::int64_t created_ns = 0;  ///< of the file, since 1970

    [[nodiscard]] std::string text() const { return id.text(); }
};
/// The identity in the file's header. Throws format_error if it cannot be read.
[[nodiscard]] trace_identity identity_of(const reduce::tables& in, std::string host);

/// One row's item, with what the reader knows of it.
struct row_item {
    const reduce::item* what = nullptr;
    /// Of the span that the record ends; null: not known.
    const trace_ring::exporter::span_length* took = nullptr;
    /// Where that span began, also if the record does not say so.
    std::optional<reduce::span_place> began{};
    /// The names of the functions in its call stack; empty: not known.
    std::string_view stack_text{};
};

/// The columns `lane` and `position` of an item's row: 0 if it is of no lane.
struct row_place {
    std::uint32_t lane = 0;
    trace_ring::position position = 0;
};
[[nodiscard]] row_place place_of(const reduce::item& what) noexcept;

/// The columns, and the rows that are collected for the next block. Not thread-safe.
class record_table {
public:
    struct shape {
        std::string name;
        column_type type;
        const char* current = nullptr;  ///< the type and codec for current servers; null: the type
        std::string comment{};
    };
    /// The numbers of the common columns, in the table's order.
    enum common : std::size_t {
        host,
        trace,
        program,
        pid,
        process,
        tid,
        thread,
        depth,
        lane,
        position,
        kind,
        event,
        time_ns,
        ticks,
        time_is,
        latest_ns,
        span,
        began_lane,
        began_position,
        duration_ns,
        duration_is,
        flows,
        cause,
        count,
        offset,
        from_ticks,
        step_ns,
        id,
        fault,
        raw,
        cut,
        stack_text,
        batch,
        common_count
    };

    record_table();

    [[nodiscard]] static std::span<const shape> common_columns();
    /// All columns: the common ones, then those of fields.
    [[nodiscard]] const std::deque<shape>& shapes() const noexcept { return shapes_; }
    /// Makes columns for the fields of an event's type, if they are not there.
    void enter(const reduce::event_type& type) { (void)fields_of(type); }
    /// Makes the columns of the calls in heap traces (heap_recorder/heap_events.hpp) that a query
    /// for live blocks reads, so that it need not know which of them a program calls.
    void enter_heap_calls();
    /// CREATE TABLE IF NOT EXISTS with all columns, and the ordering, partitions and codecs that
    /// suit traces.
    [[nodiscard]] std::string create_statement(const std::string& table,
                                               server_version server) const;
    /// Whether there are columns of which no call of `missing` knows that the server has them.
    [[nodiscard]] bool has_undeclared() const noexcept { return declared_ < shapes_.size(); }
    /// The statements that add the columns which the server's table lacks. `there`: the names and
    /// types of its columns. A field's column that has another type there gets another name.
    /// Throws std::runtime_error if a common column has another type.
    [[nodiscard]] std::vector<std::string> missing(const std::map<std::string, std::string>& there,
                                                   const std::string& table, server_version server);
    /// The server has all columns.
    void set_declared() noexcept { declared_ = shapes_.size(); }

    /// Adds a trace whose items become rows; `in` must outlive this, or what is added of it.
    [[nodiscard]] std::size_t add_trace(const reduce::tables& in, trace_identity whose);
    void remove_trace(std::size_t number) { traces_[number].reset(); }
    /// Adds a row. `batch_number`: identifies the insert that it is part of; 0: none.
    void add(std::size_t from, const row_item& one, std::uint64_t batch_number = 0);

    [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
    [[nodiscard]] std::size_t bytes() const noexcept;
    /// The day that the row of this item is in, as the table is partitioned.
    [[nodiscard]] std::int64_t day_of(std::size_t from, const reduce::item& what) const;
    /// Writes the rows as one block and removes them. `all`: with columns that no row has set.
    void write_block(text_buffer& out, bool all);

private:
    static constexpr std::size_t npos = ~std::size_t{0};

    struct field_column {
        std::size_t column = 0;
        std::size_t field = 0;
        bool flow = false;
    };
    struct event_columns {
        bool known = false;
        std::vector<field_column> fields{};
    };
    struct source {
        const reduce::tables* in = nullptr;
        trace_identity whose{};
        std::int64_t last_ns = 0;  // of the last item with a time
        std::map<const reduce::event_type*, event_columns> types{};
    };

    [[nodiscard]] static std::int64_t time_of(const source& its, const reduce::item& what,
                                              std::string_view& is);
    const event_columns& columns_of(source& its, const reduce::event_type& type);
    std::vector<field_column> fields_of(const reduce::event_type& type);
    std::size_t column_for(std::string name, const column_type& type, std::string comment);
    /// For a column whose name another column of another type has.
    [[nodiscard]] static std::string other_name(const std::string& name, const column_type& type);
    void set_lane(const source& its, const reduce::lane_info& of);
    void set(source& its, const reduce::record_view& record, const row_item& one);
    void set(const source& its, const reduce::loss_item& loss);
    void set(const source& its, const reduce::clock_jump& jump);
    void set_field(column& into, const reduce::field_value& value);
    template <class T>
    void put(common which, T&& value) {
        columns_[which].set(rows_, std::forward<T>(value));
    }

    std::deque<shape> shapes_{};
    std::deque<column> columns_{};
    std::map<std::string, std::size_t> by_name_{};
    std::size_t declared_ = 0;  // the first columns are known to be in the server's table
    std::vector<std::unique_ptr<source>> traces_{};
    std::size_t rows_ = 0;
};

/// An identifier in back quotes.
[[nodiscard]] std::string quoted_name(std::string_view name);
/// [DATABASE.]NAME, each in back quotes.
[[nodiscard]] std::string quoted_table(std::string_view name);
/// A text in single quotes.
[[nodiscard]] std::string quoted_text(std::string_view text);

}  // namespace clickhouse
