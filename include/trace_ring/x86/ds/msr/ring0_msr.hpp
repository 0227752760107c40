// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A processor's registers by RDMSR and WRMSR, for a kernel or a hypervisor. It needs no hosted
/// implementation, exceptions or run-time type information.

#include <trace_ring/x86/enabled.hpp>

#include <cstdint>

#include <trace_ring/x86/ds/hardware/msr_access.hpp>

namespace trace_ring::inline v1::x86 {

/// The registers of the logical processor that executes it. The code must be at CPL 0 and stay on
/// that processor. A missing register, or a value that it does not take, raises #GP: the caller
/// must prevent that, by features.hpp and the rules of branch_store, or catch it.
struct ring0_msr {
    /// RDMSR: only in the kernel.
    [[nodiscard]] msr_value read(std::uint32_t number) const noexcept {
        std::uint32_t low, high;
        asm volatile("rdmsr" : "=a"(low), "=d"(high) : "c"(number) : "memory");
        return {std::uint64_t{high} << 32 | low, msr_fault::none};
    }
    /// WRMSR serializes, and the compiler moves no access across it. So the processor's debug store
    /// sees earlier stores of the program, and the program's later loads see the debug store's.
    [[nodiscard]] msr_fault write(std::uint32_t number, std::uint64_t value) const noexcept {
        const auto low = static_cast<std::uint32_t>(value);
        const auto high = static_cast<std::uint32_t>(value >> 32);
        asm volatile("wrmsr" : : "c"(number), "a"(low), "d"(high) : "memory");
        return msr_fault::none;
    }
};
static_assert(msr_access<ring0_msr>);

}  // namespace trace_ring::inline v1::x86
