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
/// if (result.failed()) interrupt(result.exception);
/// @endcode
/// designation.hpp draws the table in storage; prepared_trace.hpp lists the exceptions. Each of
/// them leaves the table as it was. A host whose instructions meet exceptions after the tests of
/// the trace uses `prepare` and `commit` instead, of which `trace` is made.
///
/// A reader may see a half-filled entry: there is no sequence number and no commit flag, so while
/// other processors trace, the entries at current and shortly before it may be incomplete.

#include <cstdint>

#include <trace_ring/das/controls.hpp>
#include <trace_ring/das/designation.hpp>
#include <trace_ring/das/entry.hpp>
#include <trace_ring/das/guest_storage.hpp>
#include <trace_ring/das/prepared_trace.hpp>
#include <trace_ring/das/table_entries.hpp>
#include <trace_ring/record/data_model.hpp>

namespace trace_ring::inline v1::das {

/// Traces one instruction: makes `entry` the newest of the guest's table, if the gate is open.
/// Prepares and commits, with nothing between them.
///
/// Any number of the guest's processors may trace simultaneously, each with its own Storage or a
/// shared one. Lock-free if `swap` is: a failed swap means that another processor traced. Throws
/// only what Storage throws, before anything is stored.
template <class Bounds = fetch_bounds_once, guest_storage Storage>
trace_result trace(Storage& storage, const record::das_entry& entry) {
    return commit<Bounds>(storage, prepare(storage), entry);
}

/// Walks the table from the oldest entry to the newest, by the current controls, and calls
/// `visit(std::uint32_t address, const record::das_entry&)` for each.
///
/// The table does not distinguish unused entries from used ones; a visitor may know by their
/// content. If current is outside of the entries that the bounds make (as before the first use),
/// the walk is one pass from the first entry to the last. Returns the last entry visited, or the
/// exception that ended the walk. Ignores the gate. For a table at rest: an entry that is being
/// filled is read in its current state. Linear in the entries, of which there are 2^27 at most.
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

    const table_entries entries(
        {storage.fetch(header), storage.fetch(header + first_offset), storage.fetch(last_word)});
    auto result = trace_result::closed();
    for (std::uint32_t number = 0; number < entries.count(); ++number) {
        const auto control = entries.control(number);
        if (!claim::on_entry_boundary(control))
            return trace_result::failed(program_exception::specification, control & address_mask);
        const auto address = claim::entry_address(control);
        if (const auto met = storage.test(address, claim::das_entry_bytes, unprotected);
            met != none)
            return trace_result::failed(met, address);
        record::das_entry entry;
        for (std::uint32_t i = 0; i < claim::das_entry_bytes; i += 4)
            record::store_big(entry.payload, i, storage.fetch(address + i));
        visit(address, entry);
        result = trace_result::at(address);
    }
    return result;
}

}  // namespace trace_ring::inline v1::das
