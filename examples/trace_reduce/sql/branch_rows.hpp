// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The rows of branches: one for each branch of a thread, in the order of the trace. Those before
/// the record that names their thread come with it.

#include <functional>
#include <memory>

#include "rows.hpp"
#include "traces.hpp"

namespace trace_reduce::sql {

/// `look` is called now and then, and may throw.
[[nodiscard]] std::unique_ptr<rows> read_branches(trace_set& in, connection& by,
                                                  std::function<void()> look);

}  // namespace trace_reduce::sql
