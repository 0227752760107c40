// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The option --sql: asks SQLite about the files, and prints the answer.

#include "../kinds/job.hpp"

namespace trace_reduce {

/// Throws std::runtime_error if the query is wrong, or a file cannot be read.
void query_traces(const job& on);

}  // namespace trace_reduce
