// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Keeps a trace that lives in memory when the program crashes. A trace in a file needs no
/// snapshot: the file exists already.
/// @code
///   trace_ring::recorder recorder{{}};
///   trace_ring::crash_snapshot at_crash(recorder, "orders.crash");
/// @endcode

#include <trace_ring/fwd.hpp>

#if __cplusplus >= 202002L

#include <signal.h>

#include <cerrno>
#include <cstddef>
#include <string>
#include <utility>

#include <trace_ring/atomic.hpp>
#include <trace_ring/recorder/recorder.hpp>

namespace trace_ring::inline v1 {

#if defined(TRACE_RING_DISABLE)
inline namespace disabled {  // see recorder/site/disabled.hpp
#endif
/// While it exists, SIGSEGV, SIGBUS, SIGILL, SIGFPE and SIGABRT (so abort, failed assertions and
/// uncaught exceptions) write a snapshot of a recorder to a file, once, and then do what they did
/// before. The handler runs on the signal stack if the thread has one (a stack overflow needs one).
/// For set-up; throws setup_error if the process has one already. The recorder must outlive it.
class crash_snapshot {
public:
    /// `file`: the name of the snapshot, with the patterns of recorder_options::file.
    template <class Kind>
    crash_snapshot(basic_recorder<Kind>& of, std::string file) : file_(std::move(file)) {
        take_ = [](void* from, const char* to) noexcept {
            static_cast<void>(static_cast<basic_recorder<Kind>*>(from)->snapshot(to));
        };
        recorder_ = &of;
        crash_snapshot* none = nullptr;
        // order: crash.set:A pairs with crash.take:A, crash.clear:A
        if (!current.compare_exchange_strong(none, this, acq_rel)) {
            fail_setup(file_, "a process has one crash_snapshot, and has it", EBUSY);
        }
        struct ::sigaction action {};
        action.sa_handler = &handle;
        action.sa_flags = SA_ONSTACK;
        ::sigemptyset(&action.sa_mask);
        for (std::size_t i = 0; i < count; ++i) ::sigaction(fatal[i], &action, &before_[i]);
    }
    crash_snapshot(const crash_snapshot&) = delete;
    crash_snapshot& operator=(const crash_snapshot&) = delete;
    ~crash_snapshot() {
        restore();
        // order: crash.clear:A pairs with crash.set:A
        current.store(nullptr, release);
    }

private:
    static constexpr int fatal[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
    static constexpr std::size_t count = sizeof fatal / sizeof fatal[0];
    static inline constinit atomic_pointer<crash_snapshot> current{nullptr};

    void restore() noexcept {
        for (std::size_t i = 0; i < count; ++i) ::sigaction(fatal[i], &before_[i], nullptr);
    }

    static void handle(int signal) noexcept {
        // Taken once: a crash inside the snapshot, or on another thread, finds the old handlers.
        // order: crash.take:A pairs with crash.set:A
        if (crash_snapshot* const self = current.exchange(nullptr, acquire)) {
            self->take_(self->recorder_, self->file_.c_str());
            self->restore();
        }
        // Delivered when this returns, to the handler set before; on another thread that crashed
        // too, again to this handler, until the first has restored the old ones.
        ::raise(signal);
    }

    std::string file_;
    void (*take_)(void*, const char*) noexcept = nullptr;
    void* recorder_ = nullptr;
    struct ::sigaction before_[count] {};
};
#if defined(TRACE_RING_DISABLE)
}
#endif

}  // namespace trace_ring::inline v1
#endif
