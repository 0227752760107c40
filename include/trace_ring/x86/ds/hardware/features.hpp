// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Finds out which features of the debug store a processor has, and names the one that is missing.
/// @code
/// trace_ring::x86::msr_device registers(0);
/// const auto have = trace_ring::x86::detect(trace_ring::x86::host_cpuid{}, registers,
///                                           trace_ring::x86::processor_mode::ia32e);
/// trace_ring::x86::require(have, {.pebs = true});  // throws ds_unavailable
/// @endcode
///
/// | feature                            | where                                            |
/// |------------------------------------|--------------------------------------------------|
/// | the maker                          | CPUID.0: "GenuineIntel"                          |
/// | DS                                 | CPUID.1:EDX[21]                                  |
/// | DTES64: 64-bit layout in any mode  | CPUID.1:ECX[2]                                   |
/// | DS-CPL: OFF_OS and OFF_USR         | CPUID.1:ECX[4]                                   |
/// | PDCM: IA32_PERF_CAPABILITIES       | CPUID.1:ECX[15]                                  |
/// | BTS, PEBS unavailable              | IA32_MISC_ENABLE bits 11 and 12                  |
/// | PEBS format and kind               | IA32_PERF_CAPABILITIES [11:8], 6, 7, 14          |
///
/// CPUID comes first, and a register is read only if CPUID says that it exists: an emulator without
/// DS may read bit 11 as 0.

#include <trace_ring/x86/enabled.hpp>

#include <cpuid.h>

#include <cerrno>
#include <concepts>
#include <cstdint>
#include <string>

#include <trace_ring/policy/storage/mapping.hpp>
#include <trace_ring/record/data_model.hpp>
#include <trace_ring/x86/ds/hardware/bts_setting.hpp>
#include <trace_ring/x86/ds/hardware/msr_access.hpp>

namespace trace_ring::inline v1::x86 {

/// What CPUID returns.
struct cpuid_value {
    std::uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;  ///< the register of this name
};

/// A source of CPUID: this processor, or one that a test simulates.
template <class C>
concept cpuid_source = requires(const C& c, std::uint32_t leaf) {
    { c.cpuid(leaf) }
    noexcept->std::same_as<cpuid_value>;
};

/// The processor that executes it. Any privilege level.
struct host_cpuid {
    /// Executes CPUID on this processor.
    [[nodiscard]] static cpuid_value cpuid(std::uint32_t leaf) noexcept {
        cpuid_value out;
        if (__get_cpuid_count(leaf, 0, &out.eax, &out.ebx, &out.ecx, &out.edx) == 0) return {};
        return out;
    }
};
static_assert(cpuid_source<host_cpuid>);

/// The mode in which the processor runs its kernel. It decides the layout if there is no DTES64. A
/// 32-bit program cannot find it out by itself.
enum class processor_mode : std::uint8_t { legacy, ia32e };

/// What a processor has.
struct ds_features {
    bool intel = false;                ///< the vendor is Intel
    bool ds = false;                   ///< the debug store
    bool readable = false;             ///< IA32_MISC_ENABLE could be read
    bool bts = false;                  ///< IA32_MISC_ENABLE does not say that it is unavailable
    bool pebs = false;                 ///< PEBS
    bool dtes64 = false;               ///< the area has the 64-bit layout
    bool cpl = false;                  ///< DS-CPL
    bool pdcm = false;                 ///< IA32_PERF_CAPABILITIES is there
    bool pebs_trap_like = false;       ///< records lie behind the instruction
    bool pebs_arch_registers = false;  ///< records have the architectural registers
    bool pebs_baseline = false;        ///< adaptive PEBS
    std::uint8_t pebs_format = 0;      ///< the format of PEBS records
    /// The layout of the management area.
    record::program_mode layout = record::program_mode::ilp32;
    msr_fault fault = msr_fault::none;  ///< why a register could not be read

    /// The places of DEBUGCTL's bits, with or without DS-CPL.
    [[nodiscard]] constexpr const debugctl_bits& control() const noexcept {
        return cpl ? ia32_debugctl : ia32_debugctl_without_cpl;
    }
};

/// Finds the features. If a register cannot be read, its features count as missing, and `fault`
/// says why.
template <cpuid_source Cpuid, msr_access Msr>
[[nodiscard]] ds_features detect(const Cpuid& source, Msr& registers,
                                 processor_mode mode) noexcept {
    ds_features out;
    const cpuid_value vendor = source.cpuid(0);
    // "Genu", "ineI", "ntel"
    out.intel = vendor.ebx == 0x756E6547 && vendor.edx == 0x49656E69 && vendor.ecx == 0x6C65746E;
    const cpuid_value one = vendor.eax >= 1 ? source.cpuid(1) : cpuid_value{};
    out.ds = out.intel && (one.edx >> 21 & 1U) != 0;
    if (!out.ds) return out;
    out.dtes64 = (one.ecx >> 2 & 1U) != 0;
    out.cpl = (one.ecx >> 4 & 1U) != 0;
    out.pdcm = (one.ecx >> 15 & 1U) != 0;
    if (out.dtes64 || mode == processor_mode::ia32e) out.layout = record::program_mode::lp64;
    const msr_value enabled = registers.read(msr::misc_enable);
    out.fault = enabled.fault;
    out.readable = enabled.fault == msr_fault::none;
    if (!out.readable) return out;
    out.bts = (enabled.value & misc_bts_unavailable) == 0;
    out.pebs = (enabled.value & misc_pebs_unavailable) == 0;
    if (!out.pdcm) return out;
    const msr_value capabilities = registers.read(msr::perf_capabilities);
    if (capabilities.fault != msr_fault::none) {
        out.fault = capabilities.fault;
        out.pebs = out.pdcm = false;
        return out;
    }
    out.pebs_format = static_cast<std::uint8_t>(pebs_format_of(capabilities.value));
    out.pebs_trap_like = (capabilities.value & capability_pebs_trap) != 0;
    out.pebs_arch_registers = (capabilities.value & capability_pebs_arch_registers) != 0;
    out.pebs_baseline = (capabilities.value & capability_pebs_baseline) != 0;
    return out;
}

/// The first thing that is missing.
enum class ds_missing : std::uint8_t {
    nothing,
    intel,
    ds,
    registers,
    bts,
    pebs,
    layout32,
    layout64,
    cpl,
};
/// The reason in words.
[[nodiscard]] constexpr const char* to_string(ds_missing what) noexcept {
    constexpr const char* names[]{
        "nothing is missing",  // no count: an enumerator
        "the processor is not Intel's, and has no debug store",
        "the processor has no debug store (CPUID.1:EDX bit 21)",
        "the registers that tell what is there cannot be read",
        "BTS is unavailable (IA32_MISC_ENABLE bit 11)",
        "PEBS is unavailable (IA32_MISC_ENABLE bit 12)",
        "the 32-bit layout is not in force (DTES64, or IA-32e mode)",
        "the 64-bit layout is not in force (neither DTES64 nor IA-32e mode)",
        "branches cannot be told apart by privilege level (no DS-CPL, CPUID.1:ECX bit 4)"};
    return names[static_cast<unsigned>(what)];
}

/// The features that a program needs.
struct ds_needs {
    record::program_mode layout = record::program_mode::lp64;  ///< the mode of the management area
    bool bts = true;                                           ///< branch records
    bool pebs = false;                                         ///< PEBS records
    bool cpl = false;                                          ///< selection by privilege level
};
/// What a processor lacks of `need`; none if nothing.
[[nodiscard]] constexpr ds_missing missing(const ds_features& have, const ds_needs& need) noexcept {
    if (!have.intel) return ds_missing::intel;
    if (!have.ds) return ds_missing::ds;
    if (!have.readable) return ds_missing::registers;
    if (need.bts && !have.bts) return ds_missing::bts;
    if (need.pebs && have.fault != msr_fault::none) return ds_missing::registers;
    if (need.pebs && !have.pebs) return ds_missing::pebs;
    if (need.layout != have.layout) {
        return need.layout == record::program_mode::lp64 ? ds_missing::layout64
                                                         : ds_missing::layout32;
    }
    if (need.cpl && !have.cpl) return ds_missing::cpl;
    return ds_missing::nothing;
}

/// A feature is missing: ENODEV; `why()` says which.
class ds_unavailable : public setup_error {
public:
    /// `fault`: what happened to the register that was accessed.
    explicit ds_unavailable(ds_missing why, msr_fault fault = msr_fault::none)
        : setup_error("debug store", text(why, fault), ENODEV), why_(why) {}

    /// What is missing.
    [[nodiscard]] ds_missing why() const noexcept { return why_; }

private:
    [[nodiscard]] static std::string text(ds_missing why, msr_fault fault) {
        std::string out = to_string(why);
        if (why == ds_missing::registers) out.append(": ").append(to_string(fault));
        return out;
    }

    ds_missing why_;
};

/// Throws ds_unavailable if a needed feature is missing.
inline void require(const ds_features& have, const ds_needs& need) {
    const ds_missing what = missing(have, need);
    if (what != ds_missing::nothing) throw ds_unavailable(what, have.fault);
}

}  // namespace trace_ring::inline v1::x86
