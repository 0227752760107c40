// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The ways in which at_watermark notifies, in addition to the futex of every waiting reader.
/// @code
/// struct jobs : trace_ring::policies<
///                   trace_ring::record::sequenced<int>,
///                   trace_ring::notify::at_watermark<trace_ring::notify::records(100),
///                                                    trace_ring::notify::by_eventfd>> {};
/// inline trace_ring::ring<jobs> queue;
///
/// queue.notifier().tell(fd);        // of eventfd()
/// auto consumer = queue.consumer();
/// while (!consumer.rearm()) {       // when it is armed, poll fd
///     while (const auto item = consumer.next()) use(item);
/// }
/// @endcode
///
/// | expression       | meaning                                                               |
/// |------------------|-----------------------------------------------------------------------|
/// | `w.told(l, at)`  | called by the writer that passes the mark, on its thread: noexcept,   |
/// |                  | signal-safe, keeps errno                                              |
///
/// A way is default-constructible and constant-initialised. It is a base of the notifier, so
/// `ring.notifier().tell(...)` sets it. The smallest valid model is by_futex.

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

/// Notifies only a drain::listener, in any process.
struct by_futex {
    static constexpr void told(line&, progress) noexcept {}
};
static_assert(way<by_futex>);

/// The function that by_callback calls. The writer that passes the mark calls it, on its thread (in
/// a signal handler if it records in one). It has no record open then, so the function may record;
/// except if the writer found no room, because then it is in the middle of a claim. The object is
/// the user's and must outlive its use by the ring: make it static, or remove it when no writer can
/// be calling it.
struct callback {
    /// Called by the writer that passes the mark.
    void (*call)(void* context, progress at) noexcept = nullptr;
    void* context = nullptr;  ///< its first argument
};

/// Notifies by a function of this process, on the thread that passes the mark. Writers of other
/// processes have their own function, or none.
class by_callback {
public:
    /// Sets the function, or none (nullptr). Any thread, at any time.
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

/// Notifies by an eventfd, which a reader can poll together with other files. Each process that
/// writes sets its own file descriptor of the same eventfd, inherited or received.
class by_eventfd {
public:
    /// Sets `fd` of an eventfd, or none (-1). Any thread; close it when no writer can be using it.
    void tell(int fd) noexcept { fd_.store(fd + 1, relaxed); }  // relaxed: the kernel's object
    void told(line&, progress) noexcept {
        const int fd = fd_.load(relaxed) - 1;  // relaxed: as above
        if (fd < 0) return;
        const int saved = errno;
        const std::uint64_t one = 1;
        // It fails only if the count is at its maximum, and then its reader has been notified.
        static_cast<void>(::write(fd, &one, sizeof one) == 0);
        errno = saved;
    }

private:
    atomic<int> fd_{0};
};
static_assert(way<by_eventfd>);

/// A signal, and the process or thread that gets it.
struct signalled {
    pid_t process = 0;  ///< the process
    pid_t thread = 0;   ///< 0: any of its threads that does not block the signal
    int signal = 0;     ///< 1 to 127
};

/// Notifies by a signal, to this or to another process, as far as kill() may. A process must call
/// `quiet` before it ends, because another one may get its pid.
class by_signal {
public:
    /// Sets the signal and its receiver, in the ring's line and so for all its writers. False: a
    /// number is out of bounds. Any thread, any process.
    bool tell(line& shared, const signalled& whom) noexcept {
        if (whom.process <= 0 || whom.process > most_pid || whom.thread < 0 ||
            whom.thread > most_pid || whom.signal <= 0 || whom.signal > 127)
            return false;
        const auto number = [](auto n) { return static_cast<std::uint64_t>(n); };
        const std::uint64_t word =
            number(whom.signal) << 56 | number(whom.process) << 28 | number(whom.thread);
        shared.whom.store(word, relaxed);  // relaxed: one word holds all of it
        return true;
    }
    /// No signal from now on.
    void quiet(line& shared) noexcept { shared.whom.store(0, relaxed); }  // relaxed: as above

    void told(line& shared, progress) noexcept {
        const std::uint64_t word = shared.whom.load(relaxed);  // relaxed: as above
        const auto process = static_cast<pid_t>(word >> 28 & most_pid);
        const auto thread = static_cast<pid_t>(word & most_pid);
        const auto signal = static_cast<int>(word >> 56);
        // A faulty process may have written to the line: never signal a group, or all processes.
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
