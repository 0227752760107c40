// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Each processor has its own lane, written by the threads that run there: the memory depends on
/// the number of processors, not of threads. Clock, copy and commit of a record are one restartable
/// sequence (ring/per_cpu/section.hpp): a thread that is preempted, migrated or interrupted by a
/// signal before the last store has committed nothing, and starts again. So there is no locked
/// instruction, and no other thread ever finds an open record.
/// @code
/// struct by_cpu : trace_ring::policies<trace_ring::claim::per_cpu, trace_ring::storage::heap> {};
/// trace_ring::ring<by_cpu> ring(64 << 20);  // bytes, shared by all lanes
/// @endcode
/// Any number of threads and their signal handlers; not the child of a vfork, which shares its
/// parent's rseq words but may run on another processor. Some systems have no restartable
/// sequences: a C library before glibc 2.35, or told not to register; a kernel, filter or emulator
/// without them; a machine other than x86-64 and aarch64; ThreadSanitizer. There the ring claims
/// whole lanes by one locked instruction a record, and is otherwise the same.
///
/// Recorders have this claim, too (recorder/cpu/recorder.hpp). Of rings only those of records of
/// variable length have it, in storage::heap or storage::mapped, with full::overwrite_oldest and
/// notify::never. It does not claim single slots, so it models claim::by_cpu and not claim::policy.

#include <trace_ring/policy/claim/claim.hpp>

namespace trace_ring::inline v1::claim {

struct per_cpu {
    using family = trace_ring::family::claim;
    static constexpr bool many_writers = true;
    static constexpr bool asks_first = false;
    static constexpr bool counts = true;
    static constexpr bool a_lane_each_cpu = true;
};
static_assert(by_cpu<per_cpu> && !policy<per_cpu>);

}  // namespace trace_ring::inline v1::claim
