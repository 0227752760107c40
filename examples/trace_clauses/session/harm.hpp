// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Points that would harm the traced program: exits for which the kernel would replace addresses to
/// return to, where these are needed, and leaks that are looked for under ptrace.
/// @code
///   plan made = make_plan(script, files, how);
///   leave_out_return_probes(made, may_use_ptrace, process);  // or throws kernel_refusal
/// @endcode
/// The kernel does so (uretprobes) where it is not known by which instructions a function returns.
/// An exception through such a function ends the program, and so do several stacks.

#include <sys/types.h>

#include <string>

#include "plan.hpp"

namespace trace_clauses {

/// Takes such points out of the plan, with a note, if the programs need the addresses. With
/// `may_use_ptrace`, throws kernel_refusal instead if ptrace does no harm to this process: it can
/// trace them. It does so, too, if no point remains.
void leave_out_return_probes(plan& from, bool may_use_ptrace, ::pid_t process);

/// Why ptrace would make the traced program fail; empty: it would not. `process`: that is traced,
/// or that has the environment of this one.
[[nodiscard]] std::string harm_by_ptrace(const plan& of, ::pid_t process);

/// Takes points out, with a note, whose clauses ask for `elapsed` or arguments at exits in programs
/// whose stacks move: there a call is not known again by its place on the stack. Throws
/// std::runtime_error if no point remains.
void leave_out_times_on_moving_stacks(plan& from);

}  // namespace trace_clauses
