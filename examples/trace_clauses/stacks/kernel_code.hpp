// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The code that the kernel maps into each process ([vdso]). 32-bit programs enter the kernel and
/// return from signal handlers through it. It is not in any file, and is the same in all processes
/// of a mode.
/// @code
///   const trace_ring::file_descriptor image = kernel_code_image(program_mode::ilp32);
/// @endcode

#include <trace_ring/policy/storage/file.hpp>
#include <trace_ring/record/data_model.hpp>

namespace trace_clauses {

/// Returns a file in memory with this code as an ELF file. For the other mode, it is copied from a
/// process of that mode, which is started and ended for this. Empty: the kernel does not run such
/// programs, or permissions are missing.
[[nodiscard]] trace_ring::file_descriptor kernel_code_image(trace_ring::record::program_mode of);

}  // namespace trace_clauses
