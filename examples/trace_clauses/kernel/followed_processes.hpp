// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Which processes a program of the kernel is for: all, one, or one and those that it forks, and
/// these fork. The kernel itself keeps the list of these: a child is there before it runs.
/// @code
///   followed_processes family;
///   family.add(process);
///   return_unless(code, {process, family.map()}, scratch);
/// @endcode

#include <sys/types.h>

#include <trace_ring/policy/storage/file.hpp>

#include "bpf_code.hpp"

namespace trace_clauses {

/// For whom.
struct process_filter {
    ::pid_t process = -1;  ///< -1: all
    int family = -1;       ///< a map of followed_processes: those that come from it, too
};

/// What a program begins with: in any other process it ends there. Uses r0 to r5, r8, r9, and
/// numbers_scratch bytes of the stack from `scratch` on.
void return_unless(bpf_code& code, const process_filter& wanted, int scratch,
                   std::int32_t otherwise = 0);

/// At most 65,536 processes at once: those forked then are not followed.
class followed_processes {
public:
    /// Throws std::runtime_error as bpf_system.hpp and process_numbers.hpp do.
    followed_processes();

    /// Those that it has forked before are not followed.
    void add(::pid_t process);
    /// Whether it lives, and is one of them.
    [[nodiscard]] bool has(::pid_t process) const;
    [[nodiscard]] int map() const noexcept { return processes_.get(); }

private:
    trace_ring::file_descriptor processes_;  // of each, from which it comes
    trace_ring::file_descriptor at_fork_, at_exit_;
    trace_ring::file_descriptor fork_attached_, exit_attached_;
};

}  // namespace trace_clauses
