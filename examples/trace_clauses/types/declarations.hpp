// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Structures, unions, enumerations and typedefs that a script declares in C, laid out for programs
/// of both modes.
/// @code
///   type_table wide(program_mode::lp64), narrow(program_mode::ilp32);
///   const std::string script = "struct order { long id; unsigned urgent : 1; }; @@uft:...";
///   const std::size_t end = declare(script, 0, wide, narrow);  // where the clauses begin
///   wide[wide.find("struct order")].size.bytes;                // 16, and 8 in the other
/// @endcode
/// The sizes of arrays are constant expressions with + - * / % and sizeof. The only supported
/// attribute is `packed`. Members may be bit-fields and pointers to functions. The integers of
/// stdint.h, size_t and similar types need no declaration.

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

#include "type_table.hpp"

namespace trace_clauses {

/// The text is "line 3, column 7: ';' is expected".
class declaration_error : public std::runtime_error {
public:
    declaration_error(std::string_view script, std::size_t at, const std::string& what);

    std::size_t at;      ///< offset in the script, in bytes
    std::size_t line;    ///< from 1
    std::size_t column;  ///< from 1, in characters of UTF-8
};

/// Reads declarations from `from` on, and returns where they end. Throws declaration_error; the
/// tables then contain the declarations before the error. If a table already has a name from a
/// program, the script's declaration replaces it. Time: about linear; nesting is bounded.
std::size_t declare(std::string_view script, std::size_t from, type_table& lp64, type_table& ilp32);

}  // namespace trace_clauses
