// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Call sites: call stacks put together by the function that wanted the memory.

#include <string>
#include <string_view>
#include <vector>

#include "ledger.hpp"
#include "stacks.hpp"
#include "symbols.hpp"

namespace heap {

struct site {
    std::string name;   ///< of the function, without its arguments, or "object+0x123"
    std::string where;  ///< "file:line", else the object
    std::vector<std::string> callers;  ///< of its heaviest stack, outwards
    std::size_t stacks = 0;            ///< how many led to it
    stack_sums sums;
};

/// True for functions that allocate on behalf of their callers: operator new, the C++ standard
/// library, and the wrappers of malloc that C programs are fond of.
[[nodiscard]] bool allocates_for_others(std::string_view function);

/// The sites of these stacks (sums by stack_id), in no order. A stack belongs to its innermost
/// function that does not allocate for others, or to its innermost if all do.
[[nodiscard]] std::vector<site> find_sites(const std::vector<stack_sums>& by_stack,
                                           const stack_table& stacks, symbolizer& symbols);

}  // namespace heap
