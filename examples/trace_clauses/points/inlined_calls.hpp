// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Counts the places where a program contains an inlined copy of a function. The function's entry
/// and exit do not fire there.
/// @code
///   inlined_calls calls(file);
///   if (const std::size_t places = calls.of(function.names)) report(places);
/// @endcode
/// The program's DWARF lists these places (DW_TAG_inlined_subroutine).

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

/// Examines all functions of a file in one pass. Memory and time are linear, and bounded.
class inlined_calls {
public:
    /// A file that can no longer be read has no inlined calls.
    explicit inlined_calls(const program_file& of);

    /// For a function, by any of its names.
    [[nodiscard]] std::size_t of(std::span<const std::string> names) const;
    /// The matching functions, by their C++ name or linker symbol, with the number of places of
    /// each.
    [[nodiscard]] std::vector<std::pair<std::string, std::size_t>> matching(
        std::string_view glob) const;

private:
    void look_at_children(Dwarf_Die& of, int depth);

    std::size_t left_ = std::size_t{1} << 24;  // remaining number of DWARF entries to examine
    std::unordered_map<std::string, std::size_t> places_;
};

}  // namespace trace_clauses
