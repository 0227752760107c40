// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Signals to one thread at a steady rate, for tests of signal handlers.

#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <stdexcept>

#if !defined(sigev_notify_thread_id)
#define sigev_notify_thread_id _sigev_un._tid
#endif

namespace test {

/// A handler for as long as the object lives.
class signal_handler {
public:
    signal_handler(int signal, void (*handle)(int), int flags = 0) : signal_(signal) {
        struct ::sigaction action {};
        action.sa_handler = handle;
        action.sa_flags = flags | SA_RESTART;
        ::sigemptyset(&action.sa_mask);
        ::sigaction(signal, &action, &before_);
    }
    signal_handler(const signal_handler&) = delete;
    signal_handler& operator=(const signal_handler&) = delete;
    ~signal_handler() { ::sigaction(signal_, &before_, nullptr); }

private:
    int signal_;
    struct ::sigaction before_ {};
};

/// Sends the calling thread a signal every `period_ns`; none is left when the object is gone.
class thread_timer {
public:
    thread_timer(int signal, long period_ns) {
        sigevent event{};
        event.sigev_notify = SIGEV_THREAD_ID;
        event.sigev_signo = signal;
        event.sigev_notify_thread_id = static_cast<pid_t>(::syscall(SYS_gettid));
        if (::timer_create(CLOCK_MONOTONIC, &event, &timer_) != 0)
            throw std::runtime_error("timer_create");
        const itimerspec when{{0, period_ns}, {0, period_ns}};
        ::timer_settime(timer_, 0, &when, nullptr);
    }
    thread_timer(const thread_timer&) = delete;
    thread_timer& operator=(const thread_timer&) = delete;
    ~thread_timer() {
        ::timer_delete(timer_);
        // One may be pending: it is taken before the handler goes.
        ::usleep(1000);
    }

private:
    timer_t timer_{};
};

class deadline {
public:
    explicit deadline(double seconds) : end_(now() + seconds) {}
    [[nodiscard]] bool is_past() const { return now() >= end_; }

private:
    [[nodiscard]] static double now() {
        timespec t{};
        ::clock_gettime(CLOCK_MONOTONIC, &t);
        return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
    }
    double end_;
};

}  // namespace test
