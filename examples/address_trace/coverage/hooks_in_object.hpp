// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file Finds the calls of hooks in the code of a program or library.

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "object_file.hpp"

namespace address_trace {

struct hook {
    bool is_block = false;
    std::uint8_t arguments = 0;
};

/// The addresses that calls of hooks go to: the hooks themselves and, in libraries, the stubs that
/// lead to them; and the words from which such addresses are loaded.
struct hook_addresses {
    std::map<std::uint64_t, hook> targets, words;
    /// Symbols of the tracing itself, whose code does not belong to the program.
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

/// From the table that unwinders search.
[[nodiscard]] function_starts find_functions(const object_file& in);

/// The calls of hooks that return to (from, until].
[[nodiscard]] inline std::span<const hook_call> calls_within(std::span<const hook_call> all,
                                                             std::uint64_t from,
                                                             std::uint64_t until) {
    const auto first = std::ranges::upper_bound(all, from, {}, &hook_call::next);
    return {first, std::ranges::upper_bound(first, all.end(), until, {}, &hook_call::next)};
}

/// Calls `visit(from, until)` for each function of a section of code. `starts`: sorted.
template <class Visit>
void each_function(const section& in, std::span<const std::uint64_t> starts, Visit visit) {
    const std::uint64_t begin = in.head.sh_addr, end = begin + in.bytes.size();
    for (auto at = std::ranges::lower_bound(starts, begin); at != starts.end() && *at < end; ++at)
        visit(*at, std::next(at) == starts.end() ? end : std::min(*std::next(at), end));
}

}  // namespace address_trace
