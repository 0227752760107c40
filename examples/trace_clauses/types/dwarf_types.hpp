// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Reads the types of a program's functions and structures from its DWARF (2 to 5, for C and C++),
/// and adds them to the table of its mode.
/// @code
///   type_table types(file.mode());
///   dwarf_types known(file, types);
///   if (const auto malloc_type = known.of_function(found.function->address)) {
///       show(types[malloc_type->parameters.at(0).type]);
///   }
/// @endcode
/// Base classes are members without a name. Qualifiers such as `const`, and typedefs, are skipped.
/// A type that cannot be expressed, such as a 128-bit integer, is `nothing`, with its size. A
/// malicious file costs bounded time and memory, and at worst yields wrong types.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <trace_clauses/points/program_file.hpp>

#include "type_table.hpp"

namespace trace_clauses {

/// To be used by one thread at a time. The table must outlive it.
class dwarf_types {
public:
    /// Opens the file, and the file with its debug information. Throws std::runtime_error, "FILE:
    /// cause", if it can no longer be read. A file without debug information has no types.
    dwarf_types(const program_file& of, type_table& into);
    ~dwarf_types();
    dwarf_types(dwarf_types&&) noexcept;

    /// Whether there is debug information.
    [[nodiscard]] bool any() const noexcept;
    /// The function that begins at that address of the file. The first call reads each function and
    /// structure of the file.
    [[nodiscard]] std::optional<function_type> of_function(std::uint64_t address);
    /// A function by its name; for C++, by its linker symbol.
    [[nodiscard]] std::optional<function_type> of_function(const std::string& name);
    /// "struct s", "union u", "enum e" or a typedef; nothing() if the program has none.
    [[nodiscard]] type_id find(const std::string& name);
    /// An enumerator of an enumeration outside of functions; for C++ also by its qualified name,
    /// such as "shop::state::open". Empty if the program has none.
    [[nodiscard]] std::optional<enumerator> value(const std::string& name);

private:
    class reader;
    std::unique_ptr<reader> reader_;
};

}  // namespace trace_clauses
