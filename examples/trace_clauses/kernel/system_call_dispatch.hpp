// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// All system calls of all programs come by one place in the kernel: a program there goes on with
/// that of the call's number, and leaves all others alone.
/// @code
///   system_call_dispatch entries(function_part::system_call, {process});
///   entries.set(program_mode::lp64, 257, program);
/// @endcode
/// A call has 32 bits if it came by the kernel's entry for those: also one that a 64-bit program
/// makes by `int $0x80`. Its number and its arguments are then those of 32-bit programs.

#include <cstdint>

#include <trace_ring/policy/storage/file.hpp>
#include <trace_ring/record/data_model.hpp>

#include "followed_processes.hpp"
#include "translate.hpp"

namespace trace_clauses {

class system_call_dispatch {
public:
    /// Of all processes it is for all but this one. `entered`, unless -1, is for entries: the map
    /// where it notes when a call begins, as firing_code has it. Throws std::runtime_error as
    /// bpf_system.hpp and process_numbers.hpp do.
    system_call_dispatch(function_part part, const process_filter& only, int entered);

    /// Calls of that number and mode run the program from now on, one of type
    /// BPF_PROG_TYPE_RAW_TRACEPOINT. Throws std::runtime_error.
    void set(trace_ring::record::program_mode mode, std::uint32_t number,
             const trace_ring::file_descriptor& program);

private:
    trace_ring::file_descriptor programs_;  // by number, those of 32 bits behind the others
    trace_ring::file_descriptor dispatcher_;
    trace_ring::file_descriptor attached_;
};

}  // namespace trace_clauses
