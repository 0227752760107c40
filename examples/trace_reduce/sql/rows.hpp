// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The rows of one table as one cursor of a query reads them.

#include <cstdint>

#include "sqlite.hpp"

namespace trace_reduce::sql {

class rows {
public:
    rows() = default;
    rows(const rows&) = delete;
    rows& operator=(const rows&) = delete;
    virtual ~rows() = default;

    /// Goes to the first row, or the next one; false: there is none. Throws `interrupted`, and what
    /// reading a trace throws.
    [[nodiscard]] virtual bool next() = 0;
    /// The value of a column in the current row.
    virtual void column(sqlite3_context* to, std::size_t which) = 0;
};

}  // namespace trace_reduce::sql
