// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Words that are kept from a function's entry to its return: its arguments, for clauses at its
/// exit.
/// @code
///   kept_words kept = output_of_entry_clause;
///   if (kept.faults == 0) use(kept.words[0]);
/// @endcode
/// A separate clause at the entry computes them. Its output has this form.

#include <array>
#include <cstddef>
#include <cstdint>

#include <trace_ring/point/machine/code.hpp>

namespace trace_clauses {

struct kept_words {
    std::array<std::uint64_t, trace_ring::point::most_arguments> words{};
    std::uint64_t faults = 0;  ///< number of words that could not be read; if not 0, no word is
                               ///< valid
};
static_assert(sizeof(kept_words) == 104 && offsetof(kept_words, faults) == 96);

}  // namespace trace_clauses
