// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The rows of allocations: one for each block, when it is freed or replaced by realloc, and at the
/// end for those that live. Memory: for the blocks that live at the same time, and each call stack.

#include <functional>
#include <memory>

#include "rows.hpp"
#include "traces.hpp"

namespace trace_reduce::sql {

/// `look` is called now and then, and may throw.
[[nodiscard]] std::unique_ptr<rows> read_allocations(trace_set& in, connection& by,
                                                     std::function<void()> look);

}  // namespace trace_reduce::sql
