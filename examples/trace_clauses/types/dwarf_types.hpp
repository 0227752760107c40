// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The types of a program's functions and structures, as its compiler wrote them down (DWARF 2 to
/// 5, of C and C++), put into the table of its mode.
/// @code
///   type_table types(file.mode());
///   dwarf_types known(file, types);
///   if (const auto malloc_type = known.of_function(found.function->address)) {
///       show(types[malloc_type->parameters.at(0).type]);
///   }
/// @endcode
/// Base classes are members without a name. `const` and the like and
/// typedefs are looked through. What cannot be expressed, as a 128-bit integer, is `nothing`, with
/// its size. A file that lies costs bounded time and memory, and is read wrong at worst.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <trace_clauses/points/program_file.hpp>

#include "type_table.hpp"

namespace trace_clauses {

/// Not for two threads at once. The table must outlive it.
class dwarf_types {
public:
    /// Opens the file, and that of its debug information. Throws std::runtime_error, "FILE: cause",
    /// if it cannot be read any more; one without debug information has no types.
    dwarf_types(const program_file& of, type_table& into);
    ~dwarf_types();
    dwarf_types(dwarf_types&&) noexcept;

    /// Whether there is debug information.
    [[nodiscard]] bool any() const noexcept;
    /// The function that begins at that address, as the file has it. The first call looks at each
    /// function and structure of the file.
    [[nodiscard]] std::optional<function_type> of_function(std::uint64_t address);
    /// A function by its name, C++ ones as the linker has them.
    [[nodiscard]] std::optional<function_type> of_function(const std::string& name);
    /// "struct s", "union u", "enum e" or a typedef's; nothing() if the program has none.
    [[nodiscard]] type_id find(const std::string& name);
    /// What an enumeration outside of functions calls so; of C++, also with what is around it, as
    /// "shop::state::open". Nothing if the program has none.
    [[nodiscard]] std::optional<enumerator> value(const std::string& name);

private:
    class reader;
    std::unique_ptr<reader> reader_;
};

}  // namespace trace_clauses
