// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Programs that have several stacks in a thread or follow addresses to return to, which the
/// kernel's return probes would end.
/// @code
///   if (const std::string why = moves_stacks(files); !why.empty()) refuse(why);
/// @endcode

#include <set>
#include <string>
#include <vector>

#include "candidates.hpp"

namespace trace_clauses {

/// Which of the files in processes that have one of `exits`, files that have exit points, moves
/// stacks, or addresses to return to, and by what. Empty: none does. What cannot be read does not;
/// this process, whose files these may be, does not. O(n) in the symbols.
[[nodiscard]] std::string moves_stacks(const std::vector<candidate>& files,
                                       const std::set<std::string>& exits);

/// The same of what follows the addresses to return to: where these are the kernel's, an exception
/// that is thrown through such a function ends the program, and stacks are shown otherwise.
[[nodiscard]] std::string unwinds_stacks(const std::vector<candidate>& files,
                                         const std::set<std::string>& exits);

/// The same of what looks for leaks where the program ends, which is not possible under ptrace:
/// then the program fails.
[[nodiscard]] std::string checks_leaks(const std::vector<candidate>& files,
                                       const std::set<std::string>& traced);

/// Whether the stacks of a program move while functions are on them: Go's, and split ones. False,
/// too, if it cannot be read.
[[nodiscard]] bool copies_stacks(const std::string& file);

}  // namespace trace_clauses
