// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The tables in a connection of this program's own. Between a program that is linked with SQLite
/// and code that calls it as an extension does, no header may include the other's.

#include <functional>

#include "traces.hpp"

struct sqlite3;
struct sqlite3_api_routines;

/// To be called by SQLite for each new connection (sqlite3_auto_extension): so the tables' code
/// gets the functions that it calls.
extern "C" int trace_reduce_take_sqlite(sqlite3*, char**, const sqlite3_api_routines* api);

namespace trace_reduce::sql {

/// After trace_reduce_take_sqlite. Returns a code of SQLite's.
[[nodiscard]] int add_module(sqlite3* to, damage_report damaged, std::function<bool()> stop);

}  // namespace trace_reduce::sql
