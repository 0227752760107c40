// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The code that the kernel maps into each process ([vdso]): what 32-bit programs enter the kernel
/// by, and return from signal handlers. It is in no file, and the same in all processes of a mode.
/// @code
///   const trace_ring::file_descriptor image = kernel_code_image(program_mode::ilp32);
/// @endcode

#include <trace_ring/policy/storage/file.hpp>
#include <trace_ring/record/data_model.hpp>

namespace trace_clauses {

/// A file in memory with an image of it, as an ELF file. Of the other mode it is taken from a
/// process of that mode, which is started for it, and ended. Empty: the kernel runs no such
/// programs, or permits this one too little.
[[nodiscard]] trace_ring::file_descriptor kernel_code_image(trace_ring::record::program_mode of);

}  // namespace trace_clauses
