// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Which functions' exits can be traced: those that are entered with the address to return to on
/// top of the stack. Where it is not known by which instructions a function returns, both sources
/// take that word for it and change what is there, or what is at that address; at any other place
/// this would destroy the program's data.
/// @code
///   exit_points exits(file);
///   if (const char* why = exits.refusal(function)) leave_out(function, why);
///   const auto places = exits.places(function);
/// @endcode
/// The file's unwind information says it (.eh_frame, .debug_frame), or its DWARF that a function
/// begins there.

#include <elfutils/libdw.h>

#include <cstdint>
#include <set>

#include "debug_information.hpp"
#include "program_file.hpp"
#include "return_places.hpp"
#include "unwind_rules.hpp"

namespace trace_clauses {

/// Not for two threads at once.
class exit_points {
public:
    /// Throws std::runtime_error, "FILE: cause", if it cannot be read any more.
    explicit exit_points(const program_file& of);

    /// Why its exits are no trace points; null: they are.
    [[nodiscard]] const char* refusal(const program_function& of);
    /// By which instructions a function returns. If it is refused, only what is told of its entry
    /// counts.
    [[nodiscard]] return_places::result places(const program_function& of) {
        return places_.of(of);
    }

private:
    /// Where functions begin, and what other parts they have.
    void find_entries();
    void add_function(Dwarf_Die& one);

    debug_information debug_;
    unwind_rules rules_;
    return_places places_;
    bool entries_are_known_ = false;
    std::set<std::uint64_t> entries_;
    std::set<std::uint64_t> parts_;  // where those of functions begin that are not their entries
};

}  // namespace trace_clauses
