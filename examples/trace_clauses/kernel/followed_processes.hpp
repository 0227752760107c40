// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Selects the processes that a BPF program is for: all, one, or one and its descendants. The
/// kernel itself keeps the list of descendants, so that a child is listed before it runs.
/// @code
///   followed_processes family;
///   family.add(process);
///   return_unless(code, {process, family.map()}, scratch);
/// @endcode

#include <sys/types.h>

#include <trace_ring/policy/storage/file.hpp>

#include "bpf_code.hpp"

namespace trace_clauses {

/// The processes to trace.
struct process_filter {
    ::pid_t process = -1;  ///< -1: all
    int family = -1;       ///< a map of followed_processes: also the descendants of `process`
};

/// The beginning of a program: it returns in any other process. Uses r0 to r5, r8, r9, and
/// numbers_scratch bytes of the stack from `scratch` on.
void return_unless(bpf_code& code, const process_filter& wanted, int scratch,
                   std::int32_t otherwise = 0);

/// Follows at most 65,536 processes at a time. Further children are not followed.
class followed_processes {
public:
    /// Throws std::runtime_error like bpf_system.hpp and process_numbers.hpp.
    followed_processes();

    /// Children that the process has already forked are not followed.
    void add(::pid_t process);
    /// Returns whether the process is alive and followed.
    [[nodiscard]] bool has(::pid_t process) const;
    [[nodiscard]] int map() const noexcept { return processes_.get(); }

private:
    trace_ring::file_descriptor processes_;  // maps each process to the process it descends from
    trace_ring::file_descriptor at_fork_, at_exit_;
    trace_ring::file_descriptor fork_attached_, exit_attached_;
};

}  // namespace trace_clauses
