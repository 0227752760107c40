// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The result of compiling a script for the programs to be traced: the clauses' code for both
/// modes, the places where they fire, and the output of their actions.
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

/// The text includes the place in the script, and a mark below it.
struct script_error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct plan {
    point::clauses code{};
    struct clause {
        std::string name;  ///< the name under which it counts
        std::string text;  ///< its first point, as written in the script
    };
    std::vector<clause> clauses{};
    struct clause_code {
        std::uint32_t clause = 0;             ///< its clause
        std::string name{};                   ///< of its events: the name of the function or probe
        std::vector<statement> statements{};  ///< its output
    };
    std::vector<clause_code> code_of{};  ///< indexes into `code`, one for each point of a clause
    /// Pairs of code at an entry and at the exits of the same function or system call, whose
    /// captures form a span.
    std::vector<std::pair<std::uint32_t, std::uint32_t>> spans{};
    std::vector<planned_point> points{};
    std::vector<std::uint32_t> at_begin{};
    std::vector<std::uint32_t> at_end{};
    std::vector<std::string> notes{};  ///< what is omitted, and why
    std::vector<candidate> files{};    ///< files that may be run
};

/// Options of make_plan, in addition to the script.
struct planning {
    ::pid_t process = -1;            ///< the process to trace; -1: all
    bool has_all_registers = false;  ///< the source also provides vector and x87 registers
    bool assumes_abi = false;        ///< functions that are not exported also use the ABI's places
    bool leaves_out = false;         ///< an impossible clause is a note instead of an error
};
/// Finds the points of all clauses in these files, and compiles the clauses. Throws script_error,
/// and std::runtime_error if a file cannot be read.
[[nodiscard]] plan make_plan(const std::string& script, candidates files, planning how);

/// Lists the functions and probes "OBJECT:NAME" in these files, one per line: the point, and its
/// known arguments. For system calls, "syscall:NAME", it lists the numbers. Throws
/// std::runtime_error if nothing matches.
[[nodiscard]] std::vector<std::string> list_points(const std::string& what, candidates files);

}  // namespace trace_clauses
