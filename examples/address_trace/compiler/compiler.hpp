// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file `address-trace cc` and `address-trace c++`: run clang with the pass that inserts calls of
/// hooks, and link the object with the hooks.

#include <span>
#include <string>
#include <vector>

namespace address_trace {

/// The language that the compiler links for.
enum class language { c, cxx };

struct compiler_settings {
    std::string compiler;  ///< clang, or clang++
    std::string object;    ///< the path of address-trace.o
    std::string pass;      ///< and of address-trace-pass.so
    bool calls = false;    ///< also where functions begin and end
};

/// The settings from the environment (ADDRESS_TRACE_CC or ADDRESS_TRACE_CXX, ADDRESS_TRACE_CALLS)
/// and from the location of this program. Throws std::runtime_error if the files do not exist, or
/// if there is no clang of the release that the pass was built for.
[[nodiscard]] compiler_settings find_compiler(language of);

/// The command that compiles, links or both, according to `arguments`. Throws std::runtime_error
/// for programs that cannot be traced: 32-bit programs, and programs with sanitizers that track
/// memory.
[[nodiscard]] std::vector<std::string> compiler_command(const compiler_settings& with,
                                                        std::span<const std::string> arguments);

/// Replaces this process by the compiler. Returns only on failure, with the exit status.
[[nodiscard]] int run_compiler(language of, std::span<const std::string> arguments);

}  // namespace address_trace
