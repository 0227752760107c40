// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A full fence that one thread makes for all, by membarrier, so that threads on the hot path need
/// none. Linux has it since 4.14 for the threads of one process, and since 4.16 for those of all
/// processes that have registered. It is a system call, and takes microseconds.

#if !defined(TRACE_RING_ATOMICS_HEADER)  // a model of atomics has its own barrier
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#endif

#include <trace_ring/atomic.hpp>

namespace trace_ring::inline v1::notify {

#if !defined(TRACE_RING_ATOMICS_HEADER)
namespace impl {
[[nodiscard]] inline bool membarrier(int command) noexcept {
    const int saved = errno;
    const bool done = ::syscall(SYS_membarrier, command, 0, 0) == 0;
    errno = saved;
    return done;
}
}  // namespace impl

/// When it returns, each thread of this process, or (`across`) of all registered processes, has
/// made its earlier accesses visible, and sees all earlier stores of this thread. False: the system
/// has no such barrier. Signal-safe.
[[nodiscard]] inline bool barrier_for_all(bool across) noexcept {
    if (across) return impl::membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
    // Registering lasts as long as the process, and is cheap; children inherit it.
    return impl::membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) ||
           (impl::membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) &&
            impl::membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED));
}
/// Makes the threads of this process take part in barriers across processes from now on.
[[nodiscard]] inline bool take_part_in_barriers() noexcept {
    return impl::membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED);
}
#endif

}  // namespace trace_ring::inline v1::notify
