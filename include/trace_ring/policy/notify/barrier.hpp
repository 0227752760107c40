// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A full fence that one thread makes for all: by membarrier, so that those who are on the hot path
/// need none. Linux 4.14 has it for the threads of one process, Linux 4.16 for those of all
/// processes that have registered; a system call, and microseconds.

#if !defined(TRACE_RING_ATOMICS_HEADER)  // a model of atomics has a barrier of its own
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

/// When it returns, each thread of this process, or (`across`) of those that have registered, has
/// made all its accesses before it visible, and sees all that this thread did before. False: the
/// system has none. Signal-safe.
[[nodiscard]] inline bool barrier_for_all(bool across) noexcept {
    if (across) return impl::membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
    // Registering is for good, and cheap; children inherit it.
    return impl::membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) ||
           (impl::membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) &&
            impl::membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED));
}
/// From now on the threads of this process take part in barriers across processes.
[[nodiscard]] inline bool take_part_in_barriers() noexcept {
    return impl::membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED);
}
#endif

}  // namespace trace_ring::inline v1::notify
