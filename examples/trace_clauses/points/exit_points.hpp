// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Finds the functions whose exits can be traced: those entered with their return address on top of
/// the stack. If the instructions by which a function returns are unknown, both sources rely on
/// this word, and change it or the code at that address. At any other place this would destroy the
/// program's data.
/// @code
///   exit_points exits(file);
///   if (const char* why = exits.refusal(function)) leave_out(function, why);
///   const auto places = exits.places(function);
/// @endcode
/// The evidence is the file's unwind information (.eh_frame, .debug_frame), or DWARF showing that a
/// function begins there.

#include <elfutils/libdw.h>

#include <cstdint>
#include <set>

#include "debug_information.hpp"
#include "program_file.hpp"
#include "return_places.hpp"
#include "unwind_rules.hpp"

namespace trace_clauses {

/// To be used by one thread at a time.
class exit_points {
public:
    /// Throws std::runtime_error, "FILE: cause", if the file can no longer be read.
    explicit exit_points(const program_file& of);

    /// Why its exits cannot be traced; null: they can.
    [[nodiscard]] const char* refusal(const program_function& of);
    /// The instructions by which a function returns. If its exits are refused, only the properties
    /// of its entry are valid.
    [[nodiscard]] return_places::result places(const program_function& of) {
        return places_.of(of);
    }

private:
    /// Finds where functions begin, and their other parts.
    void find_entries();
    void add_function(Dwarf_Die& one);

    debug_information debug_;
    unwind_rules rules_;
    return_places places_;
    bool entries_are_known_ = false;
    std::set<std::uint64_t> entries_;
    std::set<std::uint64_t> parts_;  // the beginnings of functions' parts that are not their
                                     // entries
};

}  // namespace trace_clauses
