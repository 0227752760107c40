// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// While something is explored, time passes only where a thread sleeps, and sleeping is yielding.
/// To be included once in a program: it defines what full::block and the clocks call.

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>

#include <model/scheduler.hpp>

namespace model {
/// Nanoseconds. Tests set it to zero for each run.
inline std::uint64_t slept = 0;
}  // namespace model

extern "C" int clock_gettime(clockid_t which, timespec* out) noexcept {
    if (!model::the_scheduler.exploring())
        return static_cast<int>(::syscall(SYS_clock_gettime, which, out));
    out->tv_sec = static_cast<time_t>(1 + model::slept / 1'000'000'000);
    out->tv_nsec = static_cast<long>(model::slept % 1'000'000'000);
    return 0;
}
extern "C" int nanosleep(const timespec* nap, timespec* left) {
    if (!model::the_scheduler.exploring())
        return static_cast<int>(::syscall(SYS_nanosleep, nap, left));
    model::slept += static_cast<std::uint64_t>(nap->tv_nsec);
    model::yield();
    return 0;
}
