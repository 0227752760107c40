// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Where functions have their arguments and results by the ABI of their mode, derived from types.
/// @code
///   const call_places places = places_by_convention(types, declared);
///   settle_places(types, declared, {.is_exported = true});
/// @endcode
/// Source: System V ABI, x86-64 supplement, 3.2.3 (classes INTEGER, SSE, X87, COMPLEX_X87, MEMORY),
/// i386 supplement, 3.9 and 3.13 with what GCC and clang do on Linux; Itanium C++ ABI, 3.1.2
/// (classes that are passed by reference). What depends on the compiler, or on its options, as
/// vectors of 32 bytes do, is unknown, and so is what follows it there.

#include <vector>

#include "type_table.hpp"
#include "value_place.hpp"

namespace trace_clauses {

struct call_places {
    std::vector<value_place> arguments{};
    value_place result{};
};

/// As a caller in another file would pass them. Linear.
[[nodiscard]] call_places places_by_convention(const type_table& types, const function_type& of);

struct known_of_function {
    bool is_exported = true;   ///< other files can call it: the compiler must keep to the ABI
    bool assumes_abi = false;  ///< the user wants the ABI's places, known or not
};

/// Sets all places of a function as its program's debug information has it: where that says a place
/// at the entry, it is that, and else the ABI's, if the function keeps to it. What is not known has
/// the reason.
void settle_places(const type_table& types, function_type& of, known_of_function known);

}  // namespace trace_clauses
