// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Where the kernel has its return probes: the address that a function returns to, on the stack,
/// while the kernel awaits its return.
/// @code
///   if (is_return_probe(address)) show("a return that the kernel awaits");
/// @endcode
/// Source: the kernel's kernel/events/uprobes.c, xol_add_vma: the last page of a process of 64
/// bits, if it is free.

#include <cstdint>

namespace trace_clauses {

inline constexpr std::uint64_t return_probes = 0x7FFFFFFFE000;

[[nodiscard]] constexpr bool is_return_probe(std::uint64_t address) noexcept {
    return address >> 12 == return_probes >> 12;
}

}  // namespace trace_clauses
