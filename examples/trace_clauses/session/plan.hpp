// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What a script amounts to for the programs that are to be traced: the clauses' code for both
/// modes, the places where they fire, and what their actions store.
/// @code
///   const plan made = make_plan(script, files_of_program("shop"), process);  // throws script_error
///   for (const auto& each : made.points) source.attach(each.at, each.clauses);
/// @endcode

#include <sys/types.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <trace_ring/point/clauses.hpp>

#include "../firings/firing_record.hpp"
#include "../language/compile.hpp"
#include "../points/candidates.hpp"

namespace trace_clauses {

/// Its text has the place in the script, and a mark below it.
struct script_error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct plan {
    point::clauses code{};
    struct clause {
        std::string name;  ///< of what it counts
        std::string text;  ///< its first point, as it stands in the script
    };
    std::vector<clause> clauses{};
    struct clause_code {
        std::uint32_t clause = 0;             ///< whose
        std::string name{};                   ///< of its events: the function's or probe's
        std::vector<statement> statements{};  ///< what it stores
    };
    std::vector<clause_code> code_of{};  ///< by the numbers in `code`: for each point of a clause
    /// Code at an entry, and at the exits of the same function or system call: what both capture is
    /// one span.
    std::vector<std::pair<std::uint32_t, std::uint32_t>> spans{};
    std::vector<planned_point> points{};
    std::vector<std::uint32_t> at_begin{};
    std::vector<std::uint32_t> at_end{};
    std::vector<std::string> notes{};  ///< what is left out, and why
    std::vector<candidate> files{};    ///< that may run
};

/// What is asked of a plan, beside its script.
struct planning {
    ::pid_t process = -1;            ///< that is traced; -1: all
    bool has_all_registers = false;  ///< the source tells vector and x87 registers, too
    bool assumes_abi = false;        ///< what is not exported has the ABI's places, too
    bool leaves_out = false;         ///< a clause that is not possible is a note, and no error
};
/// Finds the points of all clauses in these files, and compiles. Throws script_error, and
/// std::runtime_error if a file cannot be read.
[[nodiscard]] plan make_plan(const std::string& script, candidates files, planning how);

/// The functions and probes "OBJECT:NAME" in these files, each a line: the point, and its arguments
/// as far as they are known. Of system calls, "syscall:NAME", the numbers. Throws
/// std::runtime_error if there are none.
[[nodiscard]] std::vector<std::string> list_points(const std::string& what, candidates files);

}  // namespace trace_clauses
