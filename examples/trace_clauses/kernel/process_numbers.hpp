// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The numbers of processes and threads as this process knows them. In a PID namespace, as
/// containers have them, they differ from the kernel's own numbers, which BPF programs get by
/// default.
/// @code
///   current_numbers(code, scratch);  // r0: the process in the high half, the thread in the low one
/// @endcode
/// A process outside the namespace has no number in it: it is 0 here, as for getppid(2). One in a
/// namespace below has a number in each namespace above it. To find that, the kernel must describe
/// its structures (BTF); otherwise it is 0, too.

#include "bpf_code.hpp"

namespace trace_clauses {

/// Bytes of the stack that the code below needs.
inline constexpr int numbers_scratch = 16;

/// Throws std::runtime_error if /proc is not there, or has the numbers of another namespace: what
/// is read there under the number of a process is then another's.
void need_own_proc();
/// Whether numbers differ from the kernel's here. Throws std::runtime_error as need_own_proc does.
[[nodiscard]] bool in_pid_namespace();

/// Puts the numbers of the thread that runs into r0. Uses r0 to r5, r8, r9, and `numbers_scratch`
/// bytes of the stack from `scratch` on. Throws std::runtime_error as in_pid_namespace does.
void current_numbers(bpf_code& code, int scratch);
/// Puts the number of a process into r0. The kernel's task_struct of one of its threads is at r3.
/// Throws std::runtime_error as offset_in_kernel does.
void process_number(bpf_code& code, int scratch);

}  // namespace trace_clauses
