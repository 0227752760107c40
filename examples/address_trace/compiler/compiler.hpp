// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// `address-trace cc` and `address-trace c++`: clang, with the pass that makes a program call
/// hooks, and the object that has them.

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
    bool calls = false;    ///< where functions begin and end, too
};

/// The settings of the environment: ADDRESS_TRACE_CC or ADDRESS_TRACE_CXX, ADDRESS_TRACE_CALLS; and
/// of where this program lies. Throws std::runtime_error if these are not there.
[[nodiscard]] compiler_settings find_compiler(language of);

/// The command that compiles, links or both as `arguments` say. Throws std::runtime_error for what
/// cannot be traced: programs of 32 bits, and those with sanitizers that make references of their
/// own.
[[nodiscard]] std::vector<std::string> compiler_command(const compiler_settings& with,
                                                        std::span<const std::string> arguments);

/// Becomes the compiler; returns only if that fails, with the exit status.
[[nodiscard]] int run_compiler(language of, std::span<const std::string> arguments);

}  // namespace address_trace
