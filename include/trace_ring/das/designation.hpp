// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Where a System/370 DAS trace table lies in a guest's storage: the trace-table designation in the
/// word at location 84, and the three words of the trace-table-entry header that it designates.
/// Source: System/370 Principles of Operation, GA22-7000-10, "Trace-Table Designation".
/// @code
///  word 84      +-+-------+---------------------------+-----+
///               |G|ignored|   header origin           |0 0 0|   G: the gate
///               +-+-------+---------------------------+-----+
///                0 1      8                           29   31
///  header +0    current-entry control   the entry last used
///         +4    first-entry control
///         +8    last-entry control      one past the last entry
/// @endcode

#include <cstdint>

namespace trace_ring::inline v1::das {

/// Logical address of the trace-table designation.
inline constexpr std::uint32_t designation_location = 84;
/// Logical address of the CPU identity byte, which is part of a machine's entries.
inline constexpr std::uint32_t cpu_identity_location = 795;

/// Logical addresses have 24 bits: a carry beyond them is dropped.
inline constexpr std::uint32_t address_mask = 0x00FFFFFF;

// Offsets in the trace-table-entry header.
inline constexpr std::uint32_t current_offset = 0;  ///< of the current-entry control
inline constexpr std::uint32_t first_offset = 4;    ///< of the first-entry control
inline constexpr std::uint32_t last_offset = 8;     ///< of the last-entry control

/// The trace-table designation, the word at location 84.
struct designation {
    std::uint32_t word = 0;  ///< the word at location 84

    /// Bit 0, the DAS-trace control: tracing is on.
    [[nodiscard]] constexpr bool gate_open() const noexcept { return word >> 31 != 0; }
    /// Bits 29-31 are zero. Tested only if the gate is open.
    [[nodiscard]] constexpr bool well_formed() const noexcept { return (word & 7U) == 0; }
    /// Bits 8-28 with three zeros appended: the header's address. Bits 1-7 are ignored.
    [[nodiscard]] constexpr std::uint32_t header() const noexcept { return word & 0x00FFFFF8U; }
};

}  // namespace trace_ring::inline v1::das
