// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// An index of a program's functions and structures. DWARF itself is not ordered by name.
/// @code
///   dwarf_index index(debug);
///   if (const Dwarf_Die* found = index.defined("struct order")) read(*found);
/// @endcode

#include <elfutils/libdw.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "type_table.hpp"

namespace trace_clauses {

/// Reads all of a file in one pass. Memory and time are linear, and bounded.
class dwarf_index {
public:
    explicit dwarf_index(Dwarf* of);

    /// Null if there is none.
    [[nodiscard]] Dwarf_Die* at(std::uint64_t address) { return found(by_address_, address); }
    [[nodiscard]] Dwarf_Die* function(const std::string& name) { return found(functions_, name); }
    /// Finds "struct s", or a typedef, including its namespaces and classes.
    [[nodiscard]] Dwarf_Die* defined(const std::string& name) { return found(defined_, name); }
    /// Finds an enumerator by its name, alone or qualified; null if there is none. Enumerations
    /// within functions are not included.
    [[nodiscard]] const enumerator* value(const std::string& name);
    /// The definition for a declaration, in any unit.
    [[nodiscard]] Dwarf_Die* definition_of(const Dwarf_Die& declaration) {
        const auto name = declared_.find(declaration.addr);
        return name == declared_.end() ? nullptr : defined(name->second);
    }

private:
    template <class Map, class Key>
    [[nodiscard]] static Dwarf_Die* found(Map& in, const Key& key) {
        const auto at = in.find(key);
        return at == in.end() ? nullptr : &at->second;
    }
    void look_at_children(Dwarf_Die& of, const std::string& around, bool cxx, int depth);
    void look_at(Dwarf_Die& one, const std::string& around, bool cxx, int depth);
    void add_function(Dwarf_Die& one);
    void add_values();
    void add_value(const std::string& name, const enumerator& value);

    std::size_t left_ = std::size_t{1} << 25;  // remaining number of entries to read
    std::map<std::uint64_t, Dwarf_Die> by_address_;
    std::unordered_map<std::string, Dwarf_Die> functions_;
    std::unordered_map<std::string, Dwarf_Die> defined_;
    std::unordered_map<const void*, std::string> declared_;
    std::vector<std::pair<Dwarf_Die, std::string>>
        enumerations_;  // with the scopes around their values
    std::unordered_map<std::string, enumerator> values_;
};

}  // namespace trace_clauses
