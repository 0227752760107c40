// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A recorder with this claim has a lane for each processor, which the threads that run there
/// write: the memory depends on the number of processors, not of threads. Clock, copy and commit of
/// a record are one restartable sequence (recorder/cpu/append.hpp): a thread that is preempted,
/// migrated or interrupted by a signal before the last store has committed nothing, and starts
/// again. So there is no locked instruction, and no other thread ever finds an open record.
/// @code
/// struct by_cpu : trace_ring::policies<trace_ring::claim::per_cpu> {};
/// trace_ring::basic_recorder<by_cpu> recorder{{.size = 64 << 20}};  // in memory: it has no file
/// @endcode
/// Any number of threads and their signal handlers; not the child of a vfork, which shares its
/// parent's rseq words but may run on another processor. Some systems have no restartable
/// sequences: a C library before glibc 2.35, or configured not to register; a kernel, filter or
/// emulator without them; a machine other than x86-64 and aarch64; ThreadSanitizer. There the
/// recorder has a lane for each thread.
///
/// No ring has it, because a claim of a ring claims single slots of one table.

#include <trace_ring/policies.hpp>

namespace trace_ring::inline v1::claim {

/// The claim of a recorder that has a lane for each processor. It claims no slots of a ring, so it
/// does not model claim::policy. The only model is per_cpu.
template <class C>
concept by_cpu = in_family<C, trace_ring::family::claim> && requires {
    requires C::a_lane_each_cpu;
};

/// A recorder of it needs <trace_ring/per_cpu.hpp>.
struct per_cpu {
    using family = trace_ring::family::claim;
    static constexpr bool a_lane_each_cpu = true;  ///< a recorder has a lane for each processor
};
static_assert(by_cpu<per_cpu>);

}  // namespace trace_ring::inline v1::claim
