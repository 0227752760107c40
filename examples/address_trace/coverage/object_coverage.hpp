// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// How much of the code that a program had in memory calls the hooks. References by other code are
/// not in the trace.
///
/// A function is an entry of the object's unwind table, so no symbols are needed. A function that
/// calls a hook directly counts as hooked. The hooks themselves are not counted.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "../session/reference_stream.hpp"

namespace address_trace {

/// Of one program or library.
struct object_coverage {
    std::string path{};
    std::uint64_t functions = 0, hooked_functions = 0;
    std::uint64_t bytes = 0, hooked_bytes = 0;  ///< of code
    std::string unknown{};                      ///< why nothing else is known; empty: it is known
};

/// The coverage of each loaded object, those with hooks first. An object that cannot be read, has a
/// different build id now, or has no table of functions is listed with the reason. Linear in the
/// code of objects that know hooks.
[[nodiscard]] std::vector<object_coverage> find_coverage(std::span<const loaded_module> modules);

/// "libx.so (it has no table of functions, .eh_frame_hdr) and 2 more": objects with unknown
/// coverage. Empty: none.
[[nodiscard]] std::string describe_unknown(std::span<const object_coverage> all);

/// "3.1 KiB of 9.0 KiB of code, 12 of 40 functions, in 1 of 5 objects", and the objects with
/// unknown coverage.
[[nodiscard]] std::string describe(std::span<const object_coverage> all);

}  // namespace address_trace
