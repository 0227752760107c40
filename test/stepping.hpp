// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A thread of a child process that executes one instruction at a time, and is stopped in between,
/// so that a test can inspect its state, do something else, or kill it there.
///
/// Where the tests are built with a sanitizer or without optimization, most steps would be those of
/// the sanitizer, or of moves to and from the stack; emulators cannot step.

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>

#include <recorder/scratch.hpp>
#include <shared_board.hpp>

namespace test {

#if defined(__x86_64__) && defined(__OPTIMIZE__) && !defined(TRACE_RING_TEST_TSAN) && \
    !defined(TRACE_RING_TEST_ASAN)
inline constexpr bool built_to_be_stepped = true;
#else
inline constexpr bool built_to_be_stepped = false;
#endif

/// For the child: the calling thread stops, until it is stepped or released. False: it cannot be
/// traced here, which the board says.
inline bool stop_to_be_stepped(board& told) {
    const long thread = ::syscall(SYS_gettid);
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) {
        told.stopped = -1;
        return false;
    }
    told.stopped = thread;
    ::syscall(SYS_tgkill, ::getpid(), thread, SIGSTOP);
    return true;
}

/// For the thread that started the child.
class stepped {
public:
    /// Waits for a thread of `child` to stop.
    stepped(pid_t child, const board& told) : child_(child) {
        while (told.stopped.load() == 0) {
            // A traced child that has stopped is reported, too; it has announced itself before.
            siginfo_t changed{};
            if (::waitid(P_PID, static_cast<id_t>(child), &changed, WEXITED | WNOHANG | WNOWAIT) ==
                    0 &&
                changed.si_pid == child) {
                break;
            }
            ::usleep(50);
        }
        if (told.stopped.load() <= 0) return;
        thread_ = static_cast<pid_t>(told.stopped.load());
        static_cast<void>(wait());
    }
    stepped(const stepped&) = delete;
    stepped& operator=(const stepped&) = delete;
    ~stepped() {
        if (!over_) static_cast<void>(kill());
    }

    /// It is stopped.
    [[nodiscard]] explicit operator bool() const { return standing_; }

    /// One instruction, or into the handler of `signal`. False: the thread has ended.
    bool step(int signal = 0) {
        if (!standing_) return false;
        void* const number = reinterpret_cast<void*>(static_cast<std::intptr_t>(signal));
        return ::ptrace(PTRACE_SINGLESTEP, thread_, nullptr, number) == 0 && wait();
    }
    /// It continues as if nothing had happened.
    void let_go() {
        if (standing_) ::ptrace(PTRACE_DETACH, thread_, nullptr, nullptr);
        standing_ = false;
    }
    /// Kills the whole process at this point. Returns its end, like test::wait_for.
    int kill() {
        if (!over_) ::kill(child_, SIGKILL);
        // A thread that is traced is waited for by itself, and before its process.
        if (standing_ && thread_ != child_) static_cast<void>(wait());
        return end();
    }
    /// Waits until the process has ended by itself.
    int end() {
        let_go();
        if (!over_) status_ = wait_for(child_);
        over_ = true;
        return status_;
    }

private:
    /// True: it has stopped again. False: it has ended.
    bool wait() {
        int status = 0;
        while (::waitpid(thread_, &status, __WALL) < 0) {
            if (errno != EINTR) return standing_ = false;
        }
        if (!WIFSTOPPED(status) && thread_ == child_) {
            over_ = true;
            status_ = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
        }
        return standing_ = WIFSTOPPED(status);
    }

    pid_t child_;
    pid_t thread_ = 0;
    bool standing_ = false;
    bool over_ = false;  // the process has ended,
    int status_ = 0;     // and how
};

/// Says that a child could not be stepped.
inline bool cannot_be_traced() {
    std::fprintf(stderr, "skipped: children cannot be traced here\n");
    return true;
}
/// Says why, if a test that steps far is not run.
inline bool cannot_be_stepped() {
    if (built_to_be_stepped) return false;
    std::fprintf(stderr,
                 "skipped: children are stepped where this is built for x86-64, "
                 "optimized, without a sanitizer\n");
    return true;
}

}  // namespace test
