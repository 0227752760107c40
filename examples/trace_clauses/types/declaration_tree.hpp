// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A script's declarations as a tree, before sizes are known. The parser builds the tree, which is
/// then laid out once for each mode.
/// @code
///   const declaration_tree made = parse_declarations(script, from);
///   lay_out(made.root, table);
/// @endcode

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "type_table.hpp"

namespace trace_clauses {

/// A node of the tree.
struct node {
    enum class kind : std::uint8_t {
        none,
        all,          ///< parts: definitions and typedefs
        definition,   ///< parts: a specifier
        alias,        ///< parts: a specifier, declarators
        words,        ///< `word`: C's own, as "unsigned long", or a name
        structure,    ///< `word`: its name; parts: lines, if it has a body
        union_,       ///< the same
        enumeration,  ///< `word`: its name; parts: enumerators
        line,         ///< parts: a specifier, declarators
        declarator,   ///< `word`: its name; parts: a declarator in parentheses, suffixes, a width
        array,        ///< parts: its size, if it has one
        function,
        width,       ///< parts: a constant
        enumerator,  ///< `word`: its name; parts: its constant, if it is given
        number,      ///< `value`
        name,        ///< `word`: an enumerator
        size_of,     ///< parts: a specifier; `pointers`
        sum,         ///< parts: operands; `word`: the operators between them, each a letter
        product,
        negated,
    };

    kind is = kind::none;
    bool has_body = false;
    bool packed = false;
    unsigned pointers = 0;
    std::int64_t value = 0;
    const char* at = nullptr;  ///< in the script
    std::string word{};
    std::vector<node> parts{};
};

/// Thrown to end the reading of declarations.
struct declaration_fault {
    const char* at;
    std::string what;
};

struct declaration_tree {
    node root;
    std::size_t end = 0;  ///< the place in the script where the declarations end
};
/// Throws declaration_fault.
[[nodiscard]] declaration_tree parse_declarations(std::string_view script, std::size_t from);

/// Adds the tree's declarations to a table. Throws declaration_fault.
void lay_out(const node& all, type_table& into);

}  // namespace trace_clauses
