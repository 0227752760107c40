// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// How a debug store is to be set up.

#include <trace_ring/x86/enabled.hpp>

#include <cstdint>
#include <optional>
#include <span>

#include <trace_ring/x86/ds/hardware/bts_setting.hpp>
#include <trace_ring/x86/ds/hardware/ds_layout.hpp>

namespace trace_ring::inline v1::x86 {

/// Where the absolute maximum lies: the SDM's words are "a multiple of the record size plus one",
/// Linux takes an exact multiple. No reader may ask whether the index equals it.
enum class bts_maximum : std::uint8_t { multiple, multiple_plus_one };

/// What a counter is set to after each of its PEBS records.
struct pebs_reset {
    pebs_counter counter;
    std::uint64_t value = 0;
};

struct branch_store_options {
    bts_setting setting{bts_mode::interrupt, bts_levels::all};
    std::uint64_t records = 4096;  ///< of the branch buffer; 0: there is none
    /// Records at which the interrupt comes; 0: three quarters. Of a circular buffer it must be 0:
    /// its threshold lies above its maximum.
    std::uint64_t threshold = 0;
    bts_maximum maximum = bts_maximum::multiple;

    std::uint64_t pebs_records = 0;        ///< of the PEBS buffer; 0: there is none
    std::uint64_t pebs_threshold = 0;      ///< as above
    std::uint64_t pebs_enable = 0;         ///< bits that IA32_PEBS_ENABLE gets: the counters
    std::uint32_t pebs_groups = 0;         ///< MSR_PEBS_DATA_CFG, from format 4 on
    std::span<const pebs_reset> resets{};  ///< read when the store is made

    /// What IA32_PERF_GLOBAL_CTRL is set to after PEBS was a cause; empty: nothing is done.
    std::optional<std::uint64_t> counters{};
    bool global_status = true;  ///< the processor has IA32_PERF_GLOBAL_STATUS, _CTRL, _OVF_CTRL
    /// The APIC's entry for the interrupt, where it is mapped; nullptr: it is MSR 834, of x2APIC.
    volatile std::uint32_t* lvt = nullptr;
    /// Another control register than IA32_DEBUGCTL as the features have it.
    std::optional<debugctl_bits> control{};
    /// The linear address at which the processor sees the storage, a multiple of 64; 0: the address
    /// at which this program has it.
    std::uint64_t linear = 0;
};

}  // namespace trace_ring::inline v1::x86
