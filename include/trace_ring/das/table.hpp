// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// System/370 DAS tracing into a guest's storage, exactly as the machine does it when PROGRAM CALL,
/// PROGRAM TRANSFER and SET SECONDARY ASN are traced. For emulators: this header needs no ring, no
/// atomics and no run-time support. Source: System/370 Principles of Operation, GA22-7000-10, "DAS
/// Tracing".
/// @code
/// const auto result = trace_ring::das::trace(storage, entry);  // storage: a guest_storage
/// if (result.what == trace_ring::trace_result::outcome::exception) interrupt(result.exception);
/// @endcode
/// The table as it lies in storage:
/// @code
///  word 84      +-+-------+---------------------------+-----+
///               |G|ignored|   header origin           |0 0 0|   G: the gate
///               +-+-------+---------------------------+-----+
///                0 1      8                           29   31
///  header +0    current-entry control   the entry last used
///         +4    first-entry control
///         +8    last-entry control      one past the last entry
/// @endcode
/// Exceptions by priority; each of them leaves the current-entry control as it was:
/// | | met at | kind |
/// |---|---|---|
/// | 1   | word 84, access, protection excepted               | access |
/// | 2   | bits 29-31 of word 84, with the gate open          | specification |
/// | 3.A | the header's first doubleword, with protection     | access |
/// | 3.B | the header's third word, without protection        | access |
/// | 4   | bits 27-31 of the new current-entry control        | specification |
/// | 5   | the entry, with protection                         | access |
/// 3.A is tested before 3.B here.
///
/// A reader may see a half-filled entry: there is no sequence number and no commit flag, so while
/// other processors trace, the entries at current and shortly before it may be incomplete.

#include <cstddef>
#include <cstdint>
#include <span>

#include <trace_ring/das/controls.hpp>
#include <trace_ring/das/entry.hpp>
#include <trace_ring/das/guest_storage.hpp>
#include <trace_ring/record/data_model.hpp>

namespace trace_ring::inline v1::das {

/// Logical address of the trace-table designation.
inline constexpr std::uint32_t designation_location = 84;
/// Logical address of the CPU identity byte, which is part of a machine's entries.
inline constexpr std::uint32_t cpu_identity_location = 795;

/// Logical addresses have 24 bits: a carry beyond them is dropped.
inline constexpr std::uint32_t address_mask = 0x00FFFFFF;

/// Offsets in the trace-table-entry header.
inline constexpr std::uint32_t current_offset = 0, first_offset = 4, last_offset = 8;

/// The trace-table designation, the word at location 84.
struct designation {
    std::uint32_t word = 0;

    /// Bit 0, the DAS-trace control: tracing is on.
    [[nodiscard]] constexpr bool gate_open() const noexcept { return word >> 31 != 0; }
    /// Bits 29-31 are zero. Tested only if the gate is open.
    [[nodiscard]] constexpr bool well_formed() const noexcept { return (word & 7U) == 0; }
    /// Bits 8-28 with three zeros appended: the header's address. Bits 1-7 are ignored.
    [[nodiscard]] constexpr std::uint32_t header() const noexcept { return word & 0x00FFFFF8U; }
};

/// Whether first and last are fetched again if another processor changed current first. The manual
/// does not say: the machine fetches them without regard to the interlock. So it is a choice, which
/// makes a difference only if a program changes the bounds at that moment.
struct fetch_bounds_once {
    static constexpr bool again = false;
};
struct fetch_bounds_on_each_try {
    static constexpr bool again = true;
};

/// Traces one instruction: makes `entry` the newest of the guest's table, if the gate is open.
///
/// Any number of the guest's processors may trace at once, each with a Storage of its own or a
/// shared one. Lock-free if `swap` is: a failed swap means that another processor traced. Throws
/// only what Storage throws, before anything is stored.
template <class Bounds = fetch_bounds_once, guest_storage Storage>
trace_result trace(Storage& storage, const record::das_entry& entry) {
    using enum guest_access;
    const auto none = program_exception::none;

    storage.serialize();
    if (const auto met = storage.test(designation_location, 4, unprotected); met != none)
        return trace_result::failed(met, designation_location);
    const designation table{storage.fetch(designation_location)};
    if (!table.gate_open()) return trace_result::closed();
    if (!table.well_formed())
        return trace_result::failed(program_exception::specification, designation_location);

    const auto header = table.header();
    const auto first_word = (header + first_offset) & address_mask;
    const auto last_word = (header + last_offset) & address_mask;
    if (const auto met = storage.test(header, 8, protected_store); met != none)
        return trace_result::failed(met, header);
    if (const auto met = storage.test(last_word, 4, unprotected); met != none)
        return trace_result::failed(met, last_word);

    claim::controls<std::uint32_t> controls{storage.fetch(header), storage.fetch(first_word),
                                            storage.fetch(last_word)};
    for (;;) {
        const auto next = claim::das_rule::advance(controls, claim::das_entry_bytes);
        if (!claim::on_entry_boundary(next.entry))
            return trace_result::failed(program_exception::specification,
                                        next.entry & address_mask);
        const auto address = claim::entry_address(next.entry);
        if (const auto met = storage.test(address, claim::das_entry_bytes, protected_store);
            met != none)
            return trace_result::failed(met, address);
        if (storage.swap(header, controls.current, next.current)) {
            storage.store(address, std::span<const std::byte>{entry.payload});
            storage.serialize();
            return trace_result::at(address);
        }
        if constexpr (Bounds::again) {
            controls.first = storage.fetch(first_word);
            controls.last = storage.fetch(last_word);
        }
    }
}

/// Walks the table from the oldest entry to the newest, by the controls as they are now, and calls
/// `visit(std::uint32_t address, const record::das_entry&)` for each.
///
/// The table does not tell unused entries from used ones; a visitor may know by their content. If
/// current lies outside the cycle that the bounds make (as before the first use), the walk is one
/// pass from the first entry to the last. Returns the last entry visited, or the exception that
/// ended the walk. Ignores the gate. For a table at rest: an entry that is being filled is read as
/// it is.
template <guest_storage Storage, class Visit>
trace_result walk(Storage& storage, Visit&& visit) {
    using enum guest_access;
    const auto none = program_exception::none;

    if (const auto met = storage.test(designation_location, 4, unprotected); met != none)
        return trace_result::failed(met, designation_location);
    const designation table{storage.fetch(designation_location)};
    const auto header = table.header();
    const auto last_word = (header + last_offset) & address_mask;
    if (const auto met = storage.test(header, 8, unprotected); met != none)
        return trace_result::failed(met, header);
    if (const auto met = storage.test(last_word, 4, unprotected); met != none)
        return trace_result::failed(met, last_word);

    claim::controls<std::uint32_t> at{storage.fetch(header), storage.fetch(header + first_offset),
                                      storage.fetch(last_word)};
    const auto newest = at.current;
    for (unsigned wraps = 0;;) {
        const auto next = claim::das_rule::advance(at, claim::das_entry_bytes).current;
        // The first entry for the second time: the walk has been once around.
        if (next == at.first && ++wraps == 2)
            return trace_result::at(claim::entry_address(at.current));
        if (!claim::on_entry_boundary(next))
            return trace_result::failed(program_exception::specification, next & address_mask);
        const auto address = claim::entry_address(next);
        if (const auto met = storage.test(address, claim::das_entry_bytes, unprotected);
            met != none)
            return trace_result::failed(met, address);
        record::das_entry entry;
        for (std::uint32_t i = 0; i < claim::das_entry_bytes; i += 4)
            record::store_big(entry.payload, i, storage.fetch(address + i));
        visit(address, entry);
        if (next == newest) return trace_result::at(address);
        at.current = next;
    }
}

}  // namespace trace_ring::inline v1::das
