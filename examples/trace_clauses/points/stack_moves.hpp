// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Detects programs that use several stacks in a thread or follow return addresses. The kernel's
/// return probes would end them.
/// @code
///   if (const std::string why = moves_stacks(files); !why.empty()) refuse(why);
/// @endcode

#include <set>
#include <string>
#include <vector>

#include "candidates.hpp"

namespace trace_clauses {

/// Returns which file moves stacks or return addresses, and by which function, among the files of
/// processes that have one of `exits` (files with exit points). Empty: no file does. Unreadable
/// files and this process are ignored. O(n) in the symbols.
[[nodiscard]] std::string moves_stacks(const std::vector<candidate>& files,
                                       const std::set<std::string>& exits);

/// The same for functions that follow return addresses. If these addresses are the kernel's, an
/// exception thrown through such a function ends the program, and printed stacks are wrong.
[[nodiscard]] std::string unwinds_stacks(const std::vector<candidate>& files,
                                         const std::set<std::string>& exits);

/// The same for leak checkers, which run when the program ends and fail under ptrace.
[[nodiscard]] std::string checks_leaks(const std::vector<candidate>& files,
                                       const std::set<std::string>& traced);

/// Returns whether a program moves its stacks while functions are on them: Go, and split stacks.
/// Also false if the file cannot be read.
[[nodiscard]] bool copies_stacks(const std::string& file);

}  // namespace trace_clauses
