// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The exit status of a program that runs another, as env(1), nohup(1) and shells have it: the
/// other one's, or one of these.

#include <sys/wait.h>

#include <cerrno>
#include <string>

#include <trace_ring/setup_error.hpp>

namespace launching {

inline constexpr int failed = 125;          ///< the tracer itself did
inline constexpr int cannot_execute = 126;  ///< the program is there, and cannot be executed
inline constexpr int not_found = 127;       ///< there is no program of that name

/// Of a program that has ended, from what waitpid(2) says.
[[nodiscard]] inline int exit_status(int waited) noexcept {
    return WIFSIGNALED(waited) ? 128 + WTERMSIG(waited) : WEXITSTATUS(waited);
}
/// Of a program that was not executed, by the error of exec(2).
[[nodiscard]] inline int status_of_exec(int error) noexcept {
    if (error == ENOENT) return not_found;
    return error == EACCES || error == ENOEXEC || error == EISDIR ? cannot_execute : failed;
}
/// Of a failure at set-up, which may be about `program`, or about something else.
[[nodiscard]] inline int status_of(const trace_ring::setup_error& error,
                                   const std::string& program) noexcept {
    return error.subject() == program ? status_of_exec(error.code().value()) : failed;
}

}  // namespace launching
