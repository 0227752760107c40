// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// CP's own trace table (VM/370, VM/SP) in a guest's storage: a relative of the DAS table with the
/// other advance rule. Software writes it, so there is no gate and no exception for a misaligned
/// entry, and it wraps only on equality.
/// @code
///   X'0C'  TRACSTRT   the first entry
///   X'10'  TRACEND    the byte after the last entry
///   X'14'  TRACCURR   the next entry to be used
/// @endcode

#include <cstdint>
#include <span>

#include <trace_ring/cptrap/cp_entry.hpp>
#include <trace_ring/das/controls.hpp>
#include <trace_ring/das/guest_storage.hpp>

namespace trace_ring::inline v1::cp {

inline constexpr std::uint32_t start_location = 0x0C;    ///< of the word TRACSTRT
inline constexpr std::uint32_t end_location = 0x10;      ///< of the word TRACEND
inline constexpr std::uint32_t current_location = 0x14;  ///< of the word TRACCURR
inline constexpr std::uint32_t entry_bytes = 16;         ///< the size of an entry

/// Advances TRACCURR by an interlocked update and stores `entry` where it pointed, so both
/// processors of a guest may do so simultaneously. An entry's address is the low 24 bits of
/// TRACCURR, as on the machine. Protection is not tested, because CP runs with key zero. If TRACEND
/// is not a multiple of 16 past TRACSTRT, the table never wraps and continues through storage, as
/// the original does.
template <guest_storage Storage>
trace_result trace(Storage& storage, const record::cp_entry& entry) {
    if (const auto met = storage.test(start_location, 12, guest_access::unprotected);
        met != program_exception::none)
        return trace_result::failed(met, start_location);
    claim::controls<std::uint32_t> controls{storage.fetch(current_location),
                                            storage.fetch(start_location),
                                            storage.fetch(end_location)};
    for (;;) {
        const auto next = claim::cp_rule::advance(controls, entry_bytes);
        const auto address = next.entry & 0x00FFFFFFU;
        if (const auto met = storage.test(address, entry_bytes, guest_access::unprotected);
            met != program_exception::none)
            return trace_result::failed(met, address);
        if (storage.swap(current_location, controls.current, next.current)) {
            const auto bytes = std::as_bytes(std::span{&entry, 1});
            storage.store(address, bytes);
            return trace_result::at(address);
        }
    }
}

}  // namespace trace_ring::inline v1::cp
