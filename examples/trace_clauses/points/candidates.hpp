// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// In which files trace points may be: those of a program that is to be run, of a running process,
/// of all processes, and of the machine.
/// @code
///   for (const auto& each : files_of_program("python3").files) show(each.path);
///   const auto all = files_of_process(4711);  // all.notes: what cannot be read, and why
/// @endcode
/// They are not opened, but for what a program needs, which it says itself.

#include <sys/types.h>

#include <string>
#include <vector>

namespace trace_clauses {

struct candidate {
    std::string path;                ///< as the process calls it, which may be in a container
    std::string opened;              ///< where it is read and traced
    std::vector<pid_t> processes{};  ///< that have it loaded; empty: any may load it
};

struct candidates {
    std::vector<candidate> files{};
    std::vector<std::string> notes{};  ///< for the user, each a sentence without its full stop
};

/// A program, its libraries, theirs, and what loads them; of a script, its interpreter's. Libraries
/// are where LD_LIBRARY_PATH, the files themselves (DT_RPATH, DT_RUNPATH) and ld.so's cache say.
/// Throws std::runtime_error if there is no such program, or it is none.
[[nodiscard]] candidates files_of_program(const std::string& name);
/// What a process runs now, through its own root folder. Throws std::runtime_error if there is no
/// such process, or it may not be looked at.
[[nodiscard]] candidates files_of_process(pid_t process);
/// What all processes run that may be looked at.
[[nodiscard]] candidates files_of_all();
/// The libraries in ld.so's cache, for both modes: what may yet be loaded.
[[nodiscard]] candidates files_of_cache();

}  // namespace trace_clauses
