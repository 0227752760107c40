// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// SQLite as a loaded extension sees it: each function is called through the table that SQLite
/// passes to `sqlite3_traceringsqlite_init` (extension.cpp). trace-reduce passes it the same way.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include <sqlite3ext.h>

extern "C" {
// The macros of sqlite3ext.h use this name.
extern const sqlite3_api_routines* sqlite3_api;
}

namespace trace_reduce::sql {

/// A value that SQLite copies.
inline void result_text(sqlite3_context* to, std::string_view text) {
    sqlite3_result_text64(to, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
}
inline void result_blob(sqlite3_context* to, const void* bytes, std::size_t size) {
    sqlite3_result_blob64(to, bytes, size, SQLITE_TRANSIENT);
}
/// SQLite's integers end at 2^63 - 1: larger numbers are texts of their digits.
inline void result_unsigned(sqlite3_context* to, std::uint64_t value) {
    if (value <= static_cast<std::uint64_t>((std::numeric_limits<std::int64_t>::max)())) [[likely]]
        return sqlite3_result_int64(to, static_cast<std::int64_t>(value));
    result_text(to, std::to_string(value));
}

/// The query was interrupted.
struct interrupted {};

}  // namespace trace_reduce::sql
