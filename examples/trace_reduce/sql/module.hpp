// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The virtual tables: `CREATE VIRTUAL TABLE t USING trace_ring('orders.trace', table=spans)`, and
/// the function that makes all of them: `SELECT trace_ring_open('orders.trace')`.

#include <memory>

#include "sqlite.hpp"
#include "traces.hpp"

namespace trace_reduce::sql {

/// Adds both to a connection. `shared` is kept until the connection is closed. Returns a code of
/// SQLite's.
[[nodiscard]] int add_to(sqlite3* to, std::shared_ptr<connection> shared);

}  // namespace trace_reduce::sql
