// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What a tracer does with signals while a program that it has started is traced: the terminal
/// gives Ctrl-C to the program as well, what others send to the tracer is handed on to it, and the
/// second signal ends both.

#include <signal.h>
#include <sys/types.h>

#include <cerrno>
#include <csignal>

namespace launching {

/// One at a time; from its construction to its end the signals are taken, and ignored afterwards.
class signal_taker {
public:
    /// `stop(context)` is called for the second signal, in the handler.
    signal_taker(::pid_t program, void (*stop)(void*), void* context) {
        program_ = program;
        stop_ = stop;
        context_ = context;
        count_ = 0;
        struct sigaction action {};
        action.sa_sigaction = take;
        action.sa_flags = SA_SIGINFO | SA_RESTART;
        for (const int number : numbers) ::sigaction(number, &action, nullptr);
    }
    signal_taker(const signal_taker&) = delete;
    signal_taker& operator=(const signal_taker&) = delete;
    ~signal_taker() {
        for (const int number : numbers) std::signal(number, SIG_IGN);
    }

    /// The last one that came; 0: none.
    [[nodiscard]] static int last() noexcept { return last_; }
    /// Whether the second one has come.
    [[nodiscard]] static bool second() noexcept { return count_ > 1; }

private:
    static constexpr int numbers[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};

    static void take(int number, siginfo_t* info, void*) {
        const int saved = errno;
        last_ = number;
        count_ = count_ + 1;
        if (info->si_code <= 0) ::kill(program_, number);
        if (count_ > 1) stop_(context_);
        errno = saved;
    }

    // Set before the handlers are.
    inline static ::pid_t program_ = 0;
    inline static void (*stop_)(void*) = nullptr;
    inline static void* context_ = nullptr;
    inline static volatile std::sig_atomic_t count_ = 0;
    inline static volatile std::sig_atomic_t last_ = 0;
};

}  // namespace launching
