// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Each processor has a lane of its own, written by whichever thread runs there: memory is bounded
/// by processors, however many threads there are. Clock, copy and commit of a record are one
/// restartable sequence (ring/per_cpu/section.hpp): a thread that is preempted, migrated or
/// interrupted by a signal before the last store has done nothing, and begins again. So there is no
/// locked instruction, and no record is ever open for others to find.
///
/// Any number of threads and their signal handlers; not the child of a vfork, which shares its
/// parent's words but not its place. Where the system has no restartable sequences
/// (a C library before glibc 2.35, or told not to register; a kernel, filter or emulator without
/// them; a machine other than x86-64 and aarch64; ThreadSanitizer) the ring claims whole lanes
/// instead, one locked instruction a record, and is otherwise the same.
///
/// A recorder has it, too: recorder/cpu/recorder.hpp. Of rings, only those of records of variable
/// length, in storage::heap or storage::mapped, with
/// full::overwrite_oldest and notify::never: what it needs of a ring is not a slot at a time, so it
/// is no claim::policy with `take` and `commit`, but models claim::by_cpu.

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
