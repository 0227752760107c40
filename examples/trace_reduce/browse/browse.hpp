// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// trace-reduce --browse, from its first key to its last.

#include <csignal>
#include <memory>
#include <optional>
#include <vector>

#include "../../expressions/parse.hpp"
#include "../inputs.hpp"
#include "../options.hpp"

namespace trace_reduce::browse {

/// Shows the files, of each what its filter says of times and positions, until it is told to quit,
/// or `ended` is not 0. `condition` is that of `wanted`. Throws std::runtime_error if there is no
/// terminal to show them on, wrong_expression if the condition makes no sense for any of the files.
/// What is wrong with what is read is told afterwards.
void browse(const std::vector<std::unique_ptr<input>>& from, const options& wanted,
            const std::optional<expressions::expression>& condition, complaints& complain,
            const volatile std::sig_atomic_t& ended);

}  // namespace trace_reduce::browse
