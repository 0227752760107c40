// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The options of a debug store.
/// @code
///   x86::branch_store<record::lp64, x86::msr_device> store(registers, have, {.records = 4096});
/// @endcode

#include <trace_ring/x86/enabled.hpp>

#include <cstdint>
#include <optional>
#include <span>

#include <trace_ring/x86/ds/hardware/bts_setting.hpp>
#include <trace_ring/x86/ds/hardware/ds_layout.hpp>
#include <trace_ring/x86/loss_meter.hpp>

namespace trace_ring::inline v1::x86 {

/// Where the absolute maximum lies: the SDM says "a multiple of the record size plus one", Linux
/// uses an exact multiple. So a reader must not test whether the index equals it.
enum class bts_maximum : std::uint8_t { multiple, multiple_plus_one };

/// The value to which a counter is reset after each of its PEBS records.
struct pebs_reset {
    pebs_counter counter;
    std::uint64_t value = 0;
};

struct branch_store_options {
    bts_setting setting{bts_mode::interrupt, bts_levels::all};
    std::uint64_t records = 4096;  ///< of the branch buffer; 0: there is none
    /// Records at which the interrupt comes; 0: three quarters of the buffer. It must be 0 for a
    /// circular buffer, whose threshold is above its maximum.
    std::uint64_t threshold = 0;
    bts_maximum maximum = bts_maximum::multiple;

    std::uint64_t pebs_records = 0;        ///< of the PEBS buffer; 0: there is none
    std::uint64_t pebs_threshold = 0;      ///< as above
    std::uint64_t pebs_enable = 0;         ///< counters, as bits to set in IA32_PEBS_ENABLE
    std::uint32_t pebs_groups = 0;         ///< MSR_PEBS_DATA_CFG, from format 4 on
    std::span<const pebs_reset> resets{};  ///< read when the store is made

    /// IA32_PERF_GLOBAL_CTRL is set to this after PEBS was a cause; empty: it is not changed.
    std::optional<std::uint64_t> counters{};
    bool global_status = true;  ///< the processor has IA32_PERF_GLOBAL_STATUS, _CTRL, _OVF_CTRL
    /// The APIC's mapped entry for the interrupt; nullptr: it is MSR 834 of x2APIC.
    volatile std::uint32_t* lvt = nullptr;
    /// The bits of another control register; empty: IA32_DEBUGCTL with the features that were
    /// found.
    std::optional<debugctl_bits> control{};
    /// The processor's linear address of the storage, a multiple of 64; 0: the same as this
    /// program's.
    std::uint64_t linear = 0;
    /// Times the services, for the advice on a loss. It is read at `start`, `stop` and `restore`.
    meter_clock clock{};
};

}  // namespace trace_ring::inline v1::x86
