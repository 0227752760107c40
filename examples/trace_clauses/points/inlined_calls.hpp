// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// At how many places a program has the code of a function in place of a call of it: there its
/// entry and its exit do not fire.
/// @code
///   inlined_calls calls(file);
///   if (const std::size_t places = calls.of(function.names)) tell(places);
/// @endcode
/// As the program's DWARF lists them (DW_TAG_inlined_subroutine).

#include <elfutils/libdw.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "program_file.hpp"

namespace trace_clauses {

/// Looks at all of a file's functions at once. Memory and time: linear, and bounded.
class inlined_calls {
public:
    /// A file that cannot be read any more has none.
    explicit inlined_calls(const program_file& of);

    /// Of a function, by any of its names.
    [[nodiscard]] std::size_t of(std::span<const std::string> names) const;
    /// Functions that match, as C++ names them or as they are linked, and how many places each has.
    [[nodiscard]] std::vector<std::pair<std::string, std::size_t>> matching(
        std::string_view glob) const;

private:
    void look_at_children(Dwarf_Die& of, int depth);

    std::size_t left_ = std::size_t{1} << 24;  // entries that are looked at
    std::unordered_map<std::string, std::size_t> places_;
};

}  // namespace trace_clauses
