// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// All system calls of all programs pass one tracepoint in the kernel. A BPF program there jumps to
/// the program for the call's number, and ignores all other calls.
/// @code
///   system_call_dispatch entries(function_part::system_call, {process});
///   entries.set(program_mode::lp64, 257, program);
/// @endcode
/// A call has 32 bits if it used the kernel's 32-bit entry. This includes `int $0x80` in a 64-bit
/// program. Its number and its arguments are then those of 32-bit programs.

#include <cstdint>

#include <trace_ring/policy/storage/file.hpp>
#include <trace_ring/record/data_model.hpp>

#include "followed_processes.hpp"
#include "translate.hpp"

namespace trace_clauses {

class system_call_dispatch {
public:
    /// If all processes are traced, this process is excluded. `entered`, unless -1, is for entries:
    /// the map that stores when a call begins, as in firing_code. Throws std::runtime_error like
    /// bpf_system.hpp and process_numbers.hpp.
    system_call_dispatch(function_part part, const process_filter& only, int entered);

    /// From now on, calls of this number and mode run the program, which has the type
    /// BPF_PROG_TYPE_RAW_TRACEPOINT. Throws std::runtime_error.
    void set(trace_ring::record::program_mode mode, std::uint32_t number,
             const trace_ring::file_descriptor& program);

private:
    trace_ring::file_descriptor programs_;  // by number; the 32-bit ones follow the others
    trace_ring::file_descriptor dispatcher_;
    trace_ring::file_descriptor attached_;
};

}  // namespace trace_clauses
