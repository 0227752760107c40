// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// DAS tracing of one instruction in two steps, for hosts that execute it. The machine updates the
/// table only when the instruction can no longer meet an exception, and PROGRAM CALL, PROGRAM
/// TRANSFER and SET SECONDARY ASN meet exceptions for other reasons than their trace:
/// @code
///   prepare   makes every test of the trace; stores nothing
///     ...     the host makes the instruction's own tests, and leaves the guest unchanged
///   commit    swaps current and stores the entry, or reports an exception and stores nothing
///     ...     the host completes the instruction, which no longer meets an exception
/// @endcode
/// @code
/// const auto prepared = das::prepare(storage);
/// if (prepared.failed()) return interrupt(prepared.expected());
/// if (const auto met = own_tests()) return interrupt(met);
/// const auto done = das::commit(storage, prepared, entry);
/// if (done.failed()) return interrupt(done);
/// complete_the_instruction();
/// @endcode
/// Every exception, before `commit` or in it, suppresses the instruction, and the header and the
/// entries are as they were. Between the two steps the host may return, throw or longjmp: a
/// prepared trace holds nothing that has to be released.
///
/// Exceptions by priority. `prepare` reports the first one that applies:
/// | | met at | kind |
/// |---|---|---|
/// | 1   | word 84, access, protection excepted               | access |
/// | 2   | bits 29-31 of word 84, with the gate open          | specification |
/// | 3.A | the header's first doubleword, with protection     | access |
/// | 3.B | the header's third word, without protection        | access |
/// | 4   | bits 27-31 of the new current-entry control        | specification |
/// | 5   | the entry, with protection                         | access |
/// 3.A is tested before 3.B here. This list does not rank them among the instruction's own
/// exceptions. `prepare` changes nothing, so the host calls it wherever its own list has them.
///
/// `commit` can meet 4 and 5 alone, and only if another processor changed current since `prepare`:
/// it then repeats the steps from the addition with the changed value, and so may arrive at an
/// entry that is on no 32-byte boundary or refuses access. It does not look at word 84 again.
///
/// Source: System/370 Principles of Operation, GA22-7000-10, "DAS Tracing".

#include <cstddef>
#include <cstdint>
#include <span>

#include <trace_ring/das/controls.hpp>
#include <trace_ring/das/designation.hpp>
#include <trace_ring/das/entry.hpp>
#include <trace_ring/das/guest_storage.hpp>

namespace trace_ring::inline v1::das {

/// Whether first and last are fetched again if another processor changed current first. The manual
/// does not say: the machine fetches them without regard to the interlock. So it is a choice, which
/// makes a difference only if a program changes the bounds at that moment.
struct fetch_bounds_once {
    static constexpr bool again = false;  ///< the bounds are fetched once
};
/// Fetches the bounds again after each failed compare-and-swap.
struct fetch_bounds_on_each_try {
    static constexpr bool again = true;  ///< the bounds are fetched on each try
};

class prepared_trace;
template <class Bounds = fetch_bounds_once, guest_storage Storage>
trace_result commit(Storage& storage, const prepared_trace& prepared,
                    const record::das_entry& entry);

/// The trace of one instruction, after its tests and before its stores: what `prepare` found. A
/// value that may be copied, and dropped.
class prepared_trace {
public:
    /// The result of a `commit` if no other processor changes current before: the entry's address,
    /// a closed gate, or the exception that `prepare` met.
    [[nodiscard]] constexpr const trace_result& expected() const noexcept { return expected_; }
    /// `prepare` met an exception: the instruction is to be suppressed.
    [[nodiscard]] constexpr bool failed() const noexcept { return expected_.failed(); }

private:
    template <guest_storage Storage>
    friend prepared_trace prepare(Storage& storage);
    template <class Bounds, guest_storage Storage>
    friend trace_result commit(Storage& storage, const prepared_trace& prepared,
                               const record::das_entry& entry);

    using controls = claim::controls<std::uint32_t>;

    constexpr explicit prepared_trace(trace_result expected) noexcept : expected_(expected) {}

    [[nodiscard]] constexpr std::uint32_t at(std::uint32_t offset) const noexcept {
        return (header_ + offset) & address_mask;
    }

    /// Steps 4 to 7: computes the new current-entry control from `controls_`, and tests its entry.
    template <guest_storage Storage>
    void advance(Storage& storage) {
        next_ = claim::das_rule::advance(controls_, claim::das_entry_bytes).current;
        if (!claim::on_entry_boundary(next_)) {
            expected_ =
                trace_result::failed(program_exception::specification, next_ & address_mask);
            return;
        }
        const auto address = claim::entry_address(next_);
        const auto met =
            storage.test(address, claim::das_entry_bytes, guest_access::protected_store);
        expected_ = met == program_exception::none ? trace_result::at(address)
                                                   : trace_result::failed(met, address);
    }

    trace_result expected_;
    std::uint32_t header_ = 0;  // logical address
    controls controls_{};
    std::uint32_t next_ = 0;  // the new current-entry control
};

/// Serializes, and makes all tests of the trace of one instruction, by the present state of the
/// table. Stores nothing. Throws only what Storage throws. As thread-safe as Storage. Constant
/// time.
///
/// Addresses are those of the address space that is current when the instruction begins, up to and
/// including `commit`: an instruction that changes the space does so afterwards.
template <guest_storage Storage>
[[nodiscard]] prepared_trace prepare(Storage& storage) {
    using enum guest_access;
    const auto none = program_exception::none;
    const auto failed = [](program_exception met, std::uint32_t address) {
        return prepared_trace(trace_result::failed(met, address));
    };

    storage.serialize();
    if (const auto met = storage.test(designation_location, 4, unprotected); met != none)
        return failed(met, designation_location);
    const designation table{storage.fetch(designation_location)};
    if (!table.gate_open()) return prepared_trace(trace_result::closed());
    if (!table.well_formed()) return failed(program_exception::specification, designation_location);

    prepared_trace out(trace_result::closed());
    out.header_ = table.header();
    if (const auto met = storage.test(out.header_, 8, protected_store); met != none)
        return failed(met, out.header_);
    if (const auto met = storage.test(out.at(last_offset), 4, unprotected); met != none)
        return failed(met, out.at(last_offset));
    out.controls_ = {storage.fetch(out.header_), storage.fetch(out.at(first_offset)),
                     storage.fetch(out.at(last_offset))};
    out.advance(storage);
    return out;
}

/// Makes `entry` the newest of the guest's table: swaps current, stores the entry, serializes. If
/// the swap fails, another processor has traced: the changed current is taken and its entry tested,
/// until a swap succeeds or a test meets an exception.
///
/// The result is `traced`, with the entry's address, which may differ from the expected one; or
/// `gate_closed`; or an exception, and then nothing has been stored. If the
/// prepared trace has failed, its exception is returned again, so a host that makes no other tests
/// need not look at it.
///
/// Commit a prepared trace once: a second `commit` would trace again. Until then the host must keep
/// the guest's other processors from changing the mapping and the protection of the tested bytes.
/// Lock-free if `swap` is. Throws only what Storage throws, before anything is stored.
template <class Bounds, guest_storage Storage>
trace_result commit(Storage& storage, const prepared_trace& prepared,
                    const record::das_entry& entry) {
    auto now = prepared;
    while (now.expected_.traced()) {
        if (storage.swap(now.header_, now.controls_.current, now.next_)) {
            storage.store(now.expected_.address, std::span<const std::byte>{entry.payload});
            storage.serialize();
            break;
        }
        if constexpr (Bounds::again) {
            now.controls_.first = storage.fetch(now.at(first_offset));
            now.controls_.last = storage.fetch(now.at(last_offset));
        }
        now.advance(storage);
    }
    return now.expected_;
}

}  // namespace trace_ring::inline v1::das
