// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Where the code of a program or library calls hooks.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "object_file.hpp"

namespace address_trace {

struct hook {
    bool is_block = false;
    std::uint8_t arguments = 0;
};

/// The addresses that calls of hooks go to: the hooks themselves, and in libraries the stubs that
/// lead there; and the words from which such addresses are loaded.
struct hook_addresses {
    std::map<std::uint64_t, hook> targets, words;
    /// Symbols of the tracing itself, whose code is none of the program's.
    std::set<std::uint64_t> own_functions;
};

/// One call of a hook.
struct hook_call {
    std::uint64_t next = 0;  ///< where it returns to
    hook of;
};

[[nodiscard]] hook_addresses find_hooks(const object_file& in);

/// All calls, sorted. Linear in the code.
[[nodiscard]] std::vector<hook_call> hook_calls(const object_file& in, const hook_addresses& hooks);

/// Where functions begin; sorted.
struct function_starts {
    std::vector<std::uint64_t> all;
    std::string unknown;  ///< why there are none; empty: they are known
};

/// According to the table that unwinders search.
[[nodiscard]] function_starts find_functions(const object_file& in);

}  // namespace address_trace
