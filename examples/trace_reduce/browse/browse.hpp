// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// trace-reduce --browse, from its first key to its last.

#include <csignal>
#include <memory>
#include <optional>
#include <vector>

#include <trace_ring/reduce/source.hpp>

#include "../../expressions/parse.hpp"
#include "../cptrap/spool_choice.hpp"
#include "../inputs.hpp"
#include "../options.hpp"

namespace trace_reduce::browse {

/// Shows traces until the person quits, or `ended` is not 0. The filter of each input gives its
/// times and positions, and `condition` is the condition of `wanted`. Throws std::runtime_error if
/// there is no terminal to show them on, wrong_expression if the condition makes no sense for any
/// of the files. Damage is reported to `complain` after the terminal was given back.
void browse_traces(const std::vector<std::unique_ptr<input>>& from, const options& wanted,
                   const std::optional<expressions::expression>& condition, complaints& complain,
                   const volatile std::sig_atomic_t& ended);

/// The same for CPTRAP files, one after the other. The places and lengths of `wanted` were checked;
/// `what` is the first filter.
void browse_spools(std::vector<reduce::source> files, const options& wanted, spool_choice what,
                   complaints& complain, const volatile std::sig_atomic_t& ended);

}  // namespace trace_reduce::browse
