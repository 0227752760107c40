// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// trace-reduce --browse, from its first key to its last.

#include <csignal>

#include "../inputs.hpp"
#include "../options.hpp"

namespace trace_reduce::browse {

/// Shows the files until it is told to quit, or `ended` is not 0. Throws std::runtime_error if
/// there is no terminal to show them on. What is wrong with the files is told before and after.
void browse(const options& wanted, complaints& complain, const volatile std::sig_atomic_t& ended);

}  // namespace trace_reduce::browse
