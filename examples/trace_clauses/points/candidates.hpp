// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Finds the files that may contain trace points: those of a program to be run, of a running
/// process, of all processes, and of the machine.
/// @code
///   for (const auto& each : files_of_program("python3").files) show(each.path);
///   const auto all = files_of_process(4711);  // all.notes: files that cannot be read, and why
/// @endcode
/// The files are not opened, except to find the libraries that a program needs.

#include <sys/types.h>

#include <string>
#include <vector>

namespace trace_clauses {

struct candidate {
    std::string path;                ///< the path in the process, which may be in a container
    std::string opened;              ///< the path for reading and tracing
    std::vector<pid_t> processes{};  ///< the processes that have it loaded; empty: any may load it
};

struct candidates {
    std::vector<candidate> files{};
    std::vector<std::string> notes{};  ///< for the user, each a sentence without its full stop
};

/// A program, its libraries, their libraries, and the loader; for a script, those of its
/// interpreter. Libraries are found through LD_LIBRARY_PATH, the files themselves (DT_RPATH,
/// DT_RUNPATH) and ld.so's cache. Throws std::runtime_error if the program does not exist or is not
/// a program.
[[nodiscard]] candidates files_of_program(const std::string& name);
/// The files that a process runs now, seen through its own root folder. Throws std::runtime_error
/// if the process does not exist, or may not be inspected.
[[nodiscard]] candidates files_of_process(pid_t process);
/// The files of all processes that may be inspected.
[[nodiscard]] candidates files_of_all();
/// The libraries in ld.so's cache, for both modes: files that may be loaded later.
[[nodiscard]] candidates files_of_cache();

}  // namespace trace_clauses
