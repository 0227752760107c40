// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Keeps the program from noticing the system calls of the cold path.

#include <pthread.h>

#include <cerrno>

namespace trace_ring::inline v1::impl {

/// Over a scope, keeps errno and puts off the thread's cancellation: the system calls of the cold
/// path are cancellation points, and a cancelled thread could not unwind through it. Used only
/// around system calls, because it is slow: claiming a sub-buffer needs neither.
class undisturbed {
public:
    undisturbed() noexcept : saved_(errno) {
        ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_);
    }
    ~undisturbed() {
        ::pthread_setcancelstate(cancel_, &cancel_);
        errno = saved_;
    }
    undisturbed(const undisturbed&) = delete;
    undisturbed& operator=(const undisturbed&) = delete;

private:
    int saved_;
    int cancel_ = 0;
};

}  // namespace trace_ring::inline v1::impl
