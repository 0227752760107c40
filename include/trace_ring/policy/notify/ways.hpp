// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The ways in which at_watermark tells, beside the futex that a waiting reader always has.
///
/// | expression       | meaning                                                               |
/// |------------------|-----------------------------------------------------------------------|
/// | `w.told(l, at)`  | called by the writer that passes the mark, on its thread: noexcept,   |
/// |                  | signal-safe, errno as it was                                          |
///
/// A way is default-constructible and constant-initialised, and a base of the notifier: what is set
/// there is set by `ring.notifier().tell(...)`. The smallest valid model is by_futex.

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <concepts>
#include <cstdint>

#include <trace_ring/atomic.hpp>
#include <trace_ring/policy/notify/notify.hpp>

namespace trace_ring::inline v1::notify {

template <class W>
concept way = std::default_initializable<W> && requires(W& w, line& shared, progress at) {
    { w.told(shared, at) }
    noexcept;
};

/// By drain::listener alone, in any process.
struct by_futex {
    static constexpr void told(line&, progress) noexcept {}
};
static_assert(way<by_futex>);

/// What by_callback calls: by the writer that passes the mark, on its thread (in a signal handler
/// if it records in one), with no record of its open, so that it may record; but where a writer
/// found no room, and its claim is under way. An object of the user's, which must outlive its use
/// by the ring: make it static, or take it out and know that no writer is in it.
struct callback {
    void (*call)(void* context, progress at) noexcept = nullptr;
    void* context = nullptr;
};

/// A function of this process, whichever of its threads passes the mark. Writers of other processes
/// have their own, or none.
class by_callback {
public:
    /// Sets who is told, or nobody (nullptr). Any thread, at any time.
    void tell(const callback* whom) noexcept {
        whom_.store(whom, release);  // order: notify.tell:A pairs with notify.told:A
    }
    void told(line&, progress at) noexcept {
        // order: notify.told:A pairs with notify.tell:A
        if (const callback* whom = whom_.load(acquire)) whom->call(whom->context, at);
    }

private:
    atomic_pointer<const callback> whom_;
};
static_assert(way<by_callback>);

/// An eventfd, to be polled with whatever else. Numbers of files are a process's own: each process
/// that writes sets its own for the same eventfd, inherited or received.
class by_eventfd {
public:
    /// `fd` of an eventfd, or -1: nobody. Any thread; close it when no writer can be telling it.
    void tell(int fd) noexcept { fd_.store(fd + 1, relaxed); }  // relaxed: the kernel's object
    void told(line&, progress) noexcept {
        const int fd = fd_.load(relaxed) - 1;  // relaxed: as above
        if (fd < 0) return;
        const int saved = errno;
        const std::uint64_t one = 1;
        // It fails only where the count cannot grow, and then its reader has been told.
        static_cast<void>(::write(fd, &one, sizeof one) == 0);
        errno = saved;
    }

private:
    atomic<int> fd_{0};
};
static_assert(way<by_eventfd>);

/// Who gets a signal: a process, or one thread of it.
struct signalled {
    pid_t process = 0;
    pid_t thread = 0;  ///< 0: whichever of its threads does not block the signal
    int signal = 0;    ///< 1 to 127
};

/// A signal, also to another process, as far as kill() may. A process that ends must take itself
/// out, or its pid may come to be another's.
class by_signal {
public:
    /// Sets who is told, in the ring's line and so for all its writers. False: out of bounds. Any
    /// thread, any process.
    bool tell(line& shared, const signalled& whom) noexcept {
        if (whom.process <= 0 || whom.process > most_pid || whom.thread < 0 ||
            whom.thread > most_pid || whom.signal <= 0 || whom.signal > 127)
            return false;
        const auto number = [](auto n) { return static_cast<std::uint64_t>(n); };
        const std::uint64_t word =
            number(whom.signal) << 56 | number(whom.process) << 28 | number(whom.thread);
        shared.whom.store(word, relaxed);  // relaxed: one word says all
        return true;
    }
    /// Nobody.
    void quiet(line& shared) noexcept { shared.whom.store(0, relaxed); }  // relaxed: as above

    void told(line& shared, progress) noexcept {
        const std::uint64_t word = shared.whom.load(relaxed);  // relaxed: as above
        const auto process = static_cast<pid_t>(word >> 28 & most_pid);
        const auto thread = static_cast<pid_t>(word & most_pid);
        const auto signal = static_cast<int>(word >> 56);
        // Others may write to the line: never to a group, nor to all.
        if (process == 0 || signal == 0) return;
        const int saved = errno;
        if (thread != 0) {
            ::syscall(SYS_tgkill, process, thread, signal);
        } else {
            ::kill(process, signal);
        }
        errno = saved;
    }

private:
    static constexpr pid_t most_pid = (1 << 28) - 1;  // Linux has 2^22 at most
};
static_assert(way<by_signal>);

}  // namespace trace_ring::inline v1::notify
