// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The places of a function's arguments and result by the ABI of its mode, derived from their
/// types.
/// @code
///   const call_places places = places_by_convention(types, declared);
///   settle_places(types, declared, {.is_exported = true});
/// @endcode
/// Source: System V ABI, x86-64 supplement, 3.2.3 (classes INTEGER, SSE, X87, COMPLEX_X87, MEMORY),
/// i386 supplement, 3.9 and 3.13 with the behaviour of GCC and clang on Linux; Itanium C++ ABI,
/// 3.1.2 (classes that are passed by reference). A place that depends on the compiler or its
/// options, such as a vector of 32 bytes, is unknown, and so are the places that follow it.

#include <vector>

#include "type_table.hpp"
#include "value_place.hpp"

namespace trace_clauses {

struct call_places {
    std::vector<value_place> arguments{};
    value_place result{};
};

/// The places that a caller in another file would use. Linear.
[[nodiscard]] call_places places_by_convention(const type_table& types, const function_type& of);

struct known_of_function {
    bool is_exported = true;   ///< other files can call it, so the compiler must follow the ABI
    bool assumes_abi = false;  ///< the user requests the ABI's places even if they are uncertain
};

/// Sets all places of a function that was read from debug information. A place at the entry from
/// the debug information takes precedence; otherwise it is the ABI's, if the function follows the
/// ABI. An unknown place has the reason.
void settle_places(const type_table& types, function_type& of, known_of_function known);

}  // namespace trace_clauses
