// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Work that is completed even if the process that the user has started is killed by SIGKILL: a
/// child of that process does the work, and is notified.
/// @code
///   if (const auto status = launching::outliving::split("guard")) return *status;  // the parent
///   while (!launching::outliving::is_abandoned()) work();
///   put_all_in_order();
/// @endcode

#include <signal.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <optional>

#include <trace_ring/setup_error.hpp>

#include "exit_status.hpp"
#include "signals.hpp"

namespace launching {

class outliving {
public:
    /// Returns nothing in the child, which continues. In the parent, it returns after the child has
    /// ended: the child's exit status, or 128 plus the number of the signal that ended it. Until
    /// then, the parent passes its signals on to the child. The child's name in the kernel is
    /// `name`, so that killing by name does not affect it. For a process with one thread. Throws
    /// setup_error.
    [[nodiscard]] static std::optional<int> split(const char* name) {
        const ::pid_t parent = ::getpid();
        const ::pid_t child = ::fork();
        if (child < 0) throw trace_ring::setup_error(name, "cannot fork", errno);
        if (child == 0) {
            ::prctl(PR_SET_NAME, name);
            std::signal(SIGUSR2, [](int) { abandoned_ = 1; });
            ::prctl(PR_SET_PDEATHSIG, SIGUSR2);
            if (::getppid() != parent) abandoned_ = 1;
            return std::nullopt;
        }
        const signal_taker taking(
            child, [](void*) {}, nullptr);
        int status = 0;
        while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
        }
        return exit_status(status);
    }
    /// In the child: nobody waits for it any more.
    [[nodiscard]] static bool is_abandoned() noexcept { return abandoned_ != 0; }

private:
    inline static volatile std::sig_atomic_t abandoned_ = 0;
};

}  // namespace launching
