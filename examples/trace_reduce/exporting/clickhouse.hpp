// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Writes items as blocks of ClickHouse's Native format, for the table that clickhouse_table
/// declares. The columns are those of the event types that are known when writing begins.

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <clickhouse/record_table.hpp>
#include <clickhouse/span_ends.hpp>
#include <clickhouse/stack_names.hpp>
#include <trace_ring/reduce/filter.hpp>

#include "names.hpp"

namespace trace_reduce::exporting {

struct clickhouse_options {
    std::string host{};   ///< the machine that the traces come from
    std::string table{};  ///< for CREATE TABLE, as the statement has it
    clickhouse::server_version server{};
    std::vector<std::string> events{};  ///< globs: only these have columns; none: all
    bool symbols = false;               ///< names the functions in call stacks
};

/// The traces and the columns of their events.
class clickhouse_columns {
public:
    explicit clickhouse_columns(clickhouse_options options) : options_(std::move(options)) {
        wanted_.events = options_.events;
    }
    std::size_t add(const reduce::tables& in, std::string_view) {
        for (const auto& type : in.events().types()) {
            if (wanted_.wants_event(type.name)) table_.enter(type);
        }
        return table_.add_trace(in, clickhouse::identity_of(in, options_.host));
    }

protected:
    clickhouse_options options_;
    clickhouse::record_table table_{};

private:
    reduce::filter wanted_{};
};

/// The statement that creates the table.
class clickhouse_table_writer : public clickhouse_columns {
public:
    using clickhouse_columns::clickhouse_columns;
    void begin(text_buffer& out) {
        out += table_.create_statement(options_.table, options_.server);
        out += ";\n";
    }
    static void append(text_buffer&, std::size_t, const reduce::item&) {}
    static void end(text_buffer&) {}
};

class clickhouse_writer : public clickhouse_columns {
public:
    using clickhouse_columns::clickhouse_columns;
    std::size_t add(const reduce::tables& in, std::string_view name) {
        spans_.emplace_back();
        names_.emplace_back();
        if (options_.symbols) names_.back().emplace(in, symbols_);
        return clickhouse_columns::add(in, name);
    }
    static void begin(text_buffer&) {}
    void append(text_buffer& out, std::size_t from, const reduce::item& what) {
        auto row = spans_[from].look_at(what);
        if (auto& names = names_[from]) {
            names->look_at(what);
            row.stack_text = names->text_of(what);
        }
        table_.add(from, row);
        if (table_.rows() == most_rows || table_.bytes() >= most_bytes) {
            table_.write_block(out, true);
        }
    }
    void end(text_buffer& out) {
        if (table_.rows() != 0) table_.write_block(out, true);
    }

private:
    static constexpr std::size_t most_rows = 65536;  // as ClickHouse's own blocks
    static constexpr std::size_t most_bytes = std::size_t{64} << 20;

    std::deque<clickhouse::span_ends> spans_{};
    clickhouse::stack_symbols symbols_{};
    std::deque<std::optional<clickhouse::stack_names>> names_{};
};

}  // namespace trace_reduce::exporting
