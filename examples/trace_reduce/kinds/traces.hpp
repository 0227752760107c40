// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Traces, of files and in core dumps, through trace-reduce: merged by time, in any format, forward
/// or backward, as they come, in numbers, or in the terminal.

#include <optional>
#include <vector>

#include <trace_ring/reduce/source.hpp>

#include "../../expressions/parse.hpp"
#include "job.hpp"

namespace trace_reduce {

/// `condition` is the condition of --where. False: there is nothing to show, and the reason was
/// reported.
[[nodiscard]] bool reduce_traces(std::vector<reduce::source> files,
                                 const std::optional<expressions::expression>& condition,
                                 const job& on);

}  // namespace trace_reduce
