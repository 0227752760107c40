// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What each thread knows of its own tracing.

#include <signal.h>

#include <cerrno>

#include <trace_ring/instrument/open_references.hpp>

namespace trace_ring::inline v1::instrument {

namespace impl {

/// What a thread without a place has instead: always busy, so its first reference is told.
inline constinit open_references::head nowhere{open_references::busy, 0};

inline thread_local constinit open_references::head* own_place
    __attribute__((tls_model("initial-exec"))) = &nowhere;
/// Whether the thread sets up or records now.
inline thread_local constinit bool tracing __attribute__((tls_model("initial-exec"))) = false;

/// Over a scope, the thread's signals wait, and it is known to work for the trace.
class undisturbed_tracing {
public:
    undisturbed_tracing() noexcept : errno_(errno) {
        sigset_t all;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &before_);
        was_ = tracing;
        tracing = true;
    }
    ~undisturbed_tracing() {
        tracing = was_;
        ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
        errno = errno_;
    }
    undisturbed_tracing(const undisturbed_tracing&) = delete;
    undisturbed_tracing& operator=(const undisturbed_tracing&) = delete;

private:
    sigset_t before_{};
    int errno_;
    bool was_{};
};

}  // namespace impl

}  // namespace trace_ring::inline v1::instrument
