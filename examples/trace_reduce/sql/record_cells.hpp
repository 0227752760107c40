// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Values of records for SQLite.
/// - Texts that are not UTF-8, or have zeros in them, are blobs.
/// - Integers from 2^63 on are texts of their digits. NaN, which SQLite lacks, is null.
/// - A value of an enumeration is its name, or a number if it has none. Arrays are JSON.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <trace_ring/exporter/text/append.hpp>
#include <trace_ring/reduce/item/record_view.hpp>

#include "shape.hpp"
#include "sqlite.hpp"
#include "traces.hpp"

namespace trace_reduce::sql {

void result_bytes_or_text(sqlite3_context* to, std::string_view text);
void result_value(sqlite3_context* to, const reduce::field_value& value);

/// Writes the cells of records. Keeps what helps for the next one.
class record_cells {
public:
    /// A cell that is no field's. Null if the record has no such value.
    void put(sqlite3_context* to, cell what, const traced_file& in,
             const reduce::record_view& record);
    /// A date, in ns since 1970; null if the clock is not known.
    void time(sqlite3_context* to, const traced_file& in, std::uint64_t ticks);
    /// The same as 2026-11-22T13:00:03.250000000Z.
    void time_text(sqlite3_context* to, const traced_file& in, std::uint64_t ticks);
    /// All fields as one JSON object; null if it has none.
    void fields(sqlite3_context* to, const reduce::record_view& record);

private:
    trace_ring::exporter::text_buffer text_;
    std::size_t near_ = 0;
};

}  // namespace trace_reduce::sql
