// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The branch record of the x86 debug store: from, to, flags, each as wide as an address of the
/// layout in force (Intel SDM volume 3, "Branch Trace Store"). The processor decides which layout
/// is in force: the 64-bit one if CPUID reports DTES64, or in IA-32e mode; else the 32-bit one.
/// @code
///              from   to   flags   size
///   ilp32        0     4     8      12
///   lp64         0     8    16      24
/// @endcode

#include <trace_ring/x86/enabled.hpp>

#include <cstddef>
#include <type_traits>

#include <trace_ring/fwd.hpp>
#include <trace_ring/record/data_model.hpp>

namespace trace_ring::inline v1::record {

/// One taken branch, interrupt (from is the return address) or exception (from is the faulting
/// address). Little-endian, as the processor writes it. A record with both addresses zero is
/// padding; in a trace from Linux a zero `from` begins a run of branches, and a zero `to` ends it.
template <data_model Model>
struct branch_record {
    using family = trace_ring::family::record;
    using address = typename Model::pointer_type;  ///< an address in that mode

    /// Address of the branch.
    alignas(Model::pointer_alignment) address from = 0;
    /// Address of its target.
    alignas(Model::pointer_alignment) address to = 0;
    /// Bit 4: predicted.
    alignas(Model::pointer_alignment) address flags = 0;

    /// Bit 4 of the flags: the branch was predicted. Processors of the Core and Atom families do
    /// not set it, so false means "mispredicted" only on older ones.
    [[nodiscard]] constexpr bool predicted() const noexcept { return (flags >> 4 & 1U) != 0; }

    /// An empty record, which tracers put between buffers.
    [[nodiscard]] constexpr bool padding() const noexcept { return from == 0 && to == 0; }

    friend constexpr bool operator==(const branch_record&, const branch_record&) noexcept = default;
};

using branch_record32 = branch_record<ilp32>;  ///< 12 bytes
using branch_record64 = branch_record<lp64>;   ///< 24 bytes

static_assert(sizeof(branch_record32) == 12 && alignof(branch_record32) == 4);
static_assert(offsetof(branch_record32, from) == 0);
static_assert(offsetof(branch_record32, to) == 4);
static_assert(offsetof(branch_record32, flags) == 8);
static_assert(std::is_trivially_copyable_v<branch_record32>);

static_assert(sizeof(branch_record64) == 24 && alignof(branch_record64) == 8);
static_assert(offsetof(branch_record64, from) == 0);
static_assert(offsetof(branch_record64, to) == 8);
static_assert(offsetof(branch_record64, flags) == 16);
static_assert(std::is_trivially_copyable_v<branch_record64>);

}  // namespace trace_ring::inline v1::record
