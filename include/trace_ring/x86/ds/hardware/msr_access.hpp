// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The model-specific registers of the debug store, and the concept *msr_access* for reading and
/// writing them.
///
/// | expression      | result      | meaning                                                      |
/// |-----------------|-------------|--------------------------------------------------------------|
/// | `m.read(r)`     | `msr_value` | register `r` of one logical processor, or why it could not   |
/// |                 |             | be read: noexcept                                            |
/// | `m.write(r, v)` | `msr_fault` | writes all 64 bits of it; returns why not: noexcept          |
///
/// Errors are values, so that the service routine and a kernel without exceptions can use it. Three
/// models: ring0_msr (the instructions), msr_device (Linux's /dev/cpu/N/msr), simulated_cpu. The
/// smallest valid model is two functions over one array. It is not weaker: if a refused write were
/// not reported, the processor would continue to store.
///
/// Nothing here needs a hosted implementation.

#include <trace_ring/x86/enabled.hpp>

#include <concepts>
#include <cstdint>

namespace trace_ring::inline v1::x86 {

/// Register numbers (Intel SDM volume 4).
namespace msr {
inline constexpr std::uint32_t misc_enable = 0x1A0;        ///< IA32_MISC_ENABLE
inline constexpr std::uint32_t debugctl = 0x1D9;           ///< IA32_DEBUGCTL
inline constexpr std::uint32_t perf_capabilities = 0x345;  ///< IA32_PERF_CAPABILITIES
inline constexpr std::uint32_t global_status = 0x38E;      ///< IA32_PERF_GLOBAL_STATUS
inline constexpr std::uint32_t global_ctrl = 0x38F;        ///< IA32_PERF_GLOBAL_CTRL
inline constexpr std::uint32_t global_ovf_ctrl = 0x390;    ///< IA32_PERF_GLOBAL_OVF_CTRL
inline constexpr std::uint32_t pebs_enable = 0x3F1;        ///< IA32_PEBS_ENABLE
inline constexpr std::uint32_t pebs_data_cfg = 0x3F2;      ///< MSR_PEBS_DATA_CFG
inline constexpr std::uint32_t ds_area = 0x600;            ///< IA32_DS_AREA
inline constexpr std::uint32_t lvt_pmi = 0x834;            ///< x2APIC; else memory, at FEE00340
}  // namespace msr

// IA32_MISC_ENABLE: set if the facility is missing.
/// IA32_MISC_ENABLE: no branch trace store.
inline constexpr std::uint64_t misc_bts_unavailable = 1U << 11;
inline constexpr std::uint64_t misc_pebs_unavailable = 1U << 12;  ///< IA32_MISC_ENABLE: no PEBS

// IA32_PERF_CAPABILITIES.
/// PEBS records behind the instruction.
inline constexpr std::uint64_t capability_pebs_trap = 1U << 6;
/// PEBS has the architectural registers.
inline constexpr std::uint64_t capability_pebs_arch_registers = 1U << 7;
inline constexpr std::uint64_t capability_pebs_baseline = 1U << 14;  ///< adaptive PEBS
/// The format of PEBS records.
[[nodiscard]] constexpr unsigned pebs_format_of(std::uint64_t capabilities) noexcept {
    return static_cast<unsigned>(capabilities >> 8) & 0xFU;
}

/// IA32_PERF_GLOBAL_STATUS, and the same bits in IA32_PERF_GLOBAL_OVF_CTRL: the counters that have
/// overflowed, general ones from bit 0, fixed ones from bit 32; and the overflow of a DS buffer.
inline constexpr std::uint64_t status_counters = 0x0000'FFFF'FFFF'FFFF;
/// IA32_PERF_GLOBAL_STATUS: the PEBS buffer has overflowed.
inline constexpr std::uint64_t status_ds_overflow = std::uint64_t{1} << 62;

/// The mask in the interrupt's entry of the local APIC. The APIC sets it when it delivers one; only
/// software clears it.
inline constexpr std::uint32_t lvt_mask = 1U << 16;

/// Why a register could not be read or written.
enum class msr_fault : std::uint8_t {
    none,
    general_protection,  ///< #GP: no such register, a reserved bit, a non-canonical address
    not_permitted,       ///< the system does not allow it to this program
    no_processor,        ///< the processor is offline, or removed
    device,              ///< the device failed for another reason
};
/// The fault in words.
[[nodiscard]] constexpr const char* to_string(msr_fault fault) noexcept {
    constexpr const char* names[]{
        "no fault", "general protection (no such register, or no such value)",
        "not permitted by the system", "the processor is not there", "the device failed"};
    return names[static_cast<unsigned>(fault)];
}

/// The result of a read.
struct msr_value {
    std::uint64_t value = 0;            ///< the value, if there is no fault
    msr_fault fault = msr_fault::none;  ///< none if the register was read
};

template <class M>
concept msr_access = requires(M& m, std::uint32_t number, std::uint64_t value) {
    { m.read(number) }
    noexcept->std::same_as<msr_value>;
    { m.write(number, value) }
    noexcept->std::same_as<msr_fault>;
};

}  // namespace trace_ring::inline v1::x86
