// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A processor of the miniature System/370: fetches instructions from guest storage, decodes and
/// executes them. It shows where an emulator calls `das::prepare` and `das::commit`.
///
/// What it simplifies:
/// - It has the ten instructions of `step`, 24-bit addresses and no condition code. Any other
///   operation code is an operation exception. L and ST require a word boundary, as on System/360.
/// - PC, PT and SSAR do here what the trace needs, and no more. There are no linkage, entry and
///   authority tables, no ASN translation, no key mask, no states, and registers 3 and 4 stay as
///   they are. PC finds a service, and SSAR an address space, in one table of words each, at
///   addresses that the host chose. PT requires that bits 0-7 of its address are zero.
/// - One flag, `dual_address_spaces`, takes the place of all conditions under which these
///   instructions are a special-operation exception.
/// - The trace's exceptions have priority over the others of PC, PT and SSAR.
/// - An exception leaves the instruction address at the suppressed instruction.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <trace_ring/das/prepared_trace.hpp>
#include <trace_ring/record/data_model.hpp>

#include "guest.hpp"
#include "interruption.hpp"
#include "traced_entry.hpp"

namespace das_example {

/// `Storage` is cpu_storage or a type that has its functions. Each of the guest's processors may
/// run in another thread, with its own Storage over the same bytes.
template <trace_ring::guest_storage Storage>
class processor {
public:
    /// Begins at `start`, with that address in register 12. `storage` must outlive it.
    processor(Storage& storage, std::uint32_t start) noexcept
        : storage_(storage), address_(start & das::address_mask) {
        general[12] = start;
    }

    std::array<std::uint32_t, 16> general{};  ///< the general registers
    bool dual_address_spaces = true;

    [[nodiscard]] std::uint32_t address() const noexcept { return address_; }
    void branch(std::uint32_t to) noexcept { address_ = to & das::address_mask; }
    /// SVC was executed: the program has ended.
    [[nodiscard]] bool ended() const noexcept { return ended_; }
    /// Of PC, PT and SSAR, how many were completed, and how many of them were traced.
    [[nodiscard]] std::uint32_t executed() const noexcept { return executed_; }
    [[nodiscard]] std::uint32_t traced() const noexcept { return traced_; }

    /// The operation code at the instruction address: its first byte, or the first two if that is
    /// X'B2'. 0 if it cannot be fetched.
    [[nodiscard]] std::uint16_t next_operation() {
        std::uint32_t half = 0;
        if (fetch_half(address_, half)) return 0;
        return static_cast<std::uint16_t>(half >> 8 == 0xB2 ? half : half >> 8);
    }

    /// Executes an instruction. If it meets an exception, the guest is unchanged: registers,
    /// storage and the instruction address.
    interruption step() {
        std::uint32_t first = 0, second = 0;
        if (const auto met = fetch_half(address_, first)) return met;
        const auto operation = first >> 8;
        const auto r1 = first >> 4 & 15U, r2 = first & 15U;
        const std::uint32_t bytes = operation < 0x40 ? 2 : 4;
        if (bytes == 4) {
            if (const auto met = fetch_half(address_ + 2, second)) return met;
        }
        const auto next = address_ + bytes;
        // Of RX instructions, register r2 is the index; in S instructions the base is all there is.
        const auto base = (second >> 12 == 0 ? 0 : general[second >> 12]) + (second & 0xFFFU);
        const auto operand = (base + (r2 == 0 ? 0 : general[r2])) & das::address_mask;
        switch (operation) {
            case 0x07:  // BCR: of the masks, 15 and 0
                if (r1 != 0 && r1 != 15) return {interruption_code::operation, address_};
                branch(r1 == 15 && r2 != 0 ? general[r2] : next);
                return {};
            case 0x0A:  // SVC
                ended_ = true;
                branch(next);
                return {};
            case 0x18:  // LR
                general[r1] = general[r2];
                break;
            case 0x41:  // LA
                general[r1] = operand;
                break;
            case 0x46:  // BCT
                branch(--general[r1] != 0 ? operand : next);
                return {};
            case 0x50:  // ST
                if (const auto met = store(operand, general[r1])) return met;
                break;
            case 0x58:  // L
                if (const auto met = load(operand, general[r1])) return met;
                break;
            case 0xB2:
                return step_dual(static_cast<std::uint16_t>(first), base & das::address_mask,
                                 second >> 4 & 15U, second & 15U, next);
            default:
                return {interruption_code::operation, address_};
        }
        branch(next);
        return {};
    }

private:
    /// PC, PT and SSAR, which are traced.
    interruption step_dual(std::uint16_t operation, std::uint32_t operand, std::uint32_t r1,
                           std::uint32_t r2, std::uint32_t next) {
        std::uint32_t word = 0;
        switch (operation) {
            case program_call:
                operand &= 0x000FFFFF;
                return traced(
                    operation, operand, [&] { return load(guest::services + 4 * operand, word); },
                    [&] {
                        general[14] = next;
                        branch(word);
                    });
            case program_transfer:
                return traced(
                    operation, general[r2],
                    [&] {
                        return general[r2] >> 24 == 0
                                   ? interruption{}
                                   : interruption{interruption_code::specification,
                                                  general[r2] & das::address_mask};
                    },
                    [&] { branch(general[r2]); });
            case set_secondary_asn:
                operand = general[r1] & 0xFFFFU;
                return traced(
                    operation, operand, [&] { return load(guest::spaces + 4 * operand, word); },
                    [&] {
                        secondary_space_ = word;
                        branch(next);
                    });
            default:
                return {interruption_code::operation, address_};
        }
    }

    /// Executes a traced instruction. `own_tests` returns the exception that the instruction meets
    /// for other reasons than its trace, and leaves the guest unchanged; `complete` changes the
    /// guest, and meets no exception.
    template <class Tests, class Complete>
    interruption traced(std::uint16_t operation, std::uint32_t operand, const Tests& own_tests,
                        const Complete& complete) {
        // All tests of the trace, which store nothing.
        const auto prepared = das::prepare(storage_);
        if (prepared.failed()) return interruption::of(prepared.expected());

        // All other tests of the instruction. If one of them fails, the prepared trace is dropped.
        if (!dual_address_spaces) return {interruption_code::special_operation, address_};
        if (const auto met = own_tests()) return met;
        traced_entry entry{executed_ + 1, operation, {}, operand};
        if (const auto met = fetch_identity(entry.processor)) return met;

        // The table is changed, or another processor was faster and left an entry that cannot be
        // used: then the instruction is suppressed as before.
        const auto done = das::commit(storage_, prepared, entry.pack());
        if (done.failed()) return interruption::of(done);

        // From here on nothing fails.
        complete();
        ++executed_;
        traced_ += done.traced() ? 1 : 0;
        return {};
    }

    interruption fetch_identity(std::byte& into) {
        constexpr auto at = das::cpu_identity_location;
        if (const auto met = tested(at, 1)) return met;
        into = static_cast<std::byte>(storage_.fetch(at & ~3U) >> (24 - at % 4 * 8) & 0xFFU);
        return {};
    }
    interruption fetch_half(std::uint32_t address, std::uint32_t& into) {
        address &= das::address_mask;
        if (address % 2 != 0) return {interruption_code::specification, address};
        if (const auto met = tested(address, 2)) return met;
        into = storage_.fetch(address & ~3U) >> (address % 4 == 0 ? 16 : 0) & 0xFFFFU;
        return {};
    }
    interruption load(std::uint32_t address, std::uint32_t& into) {
        address &= das::address_mask;
        if (address % 4 != 0) return {interruption_code::specification, address};
        if (const auto met = tested(address, 4)) return met;
        into = storage_.fetch(address);
        return {};
    }
    interruption store(std::uint32_t address, std::uint32_t word) {
        if (address % 4 != 0) return {interruption_code::specification, address};
        const auto met = storage_.test_program_store(address, 4);
        if (met != trace_ring::program_exception::none) return interruption::of(met, address);
        std::array<std::byte, 4> bytes{};
        record::store_big(bytes, 0, word);
        storage_.store(address, bytes);
        return {};
    }
    interruption tested(std::uint32_t address, std::uint32_t bytes) {
        return interruption::of(
            storage_.test(address, bytes, trace_ring::guest_access::unprotected), address);
    }

    Storage& storage_;
    std::uint32_t address_;
    std::uint32_t secondary_space_ = 0;
    std::uint32_t executed_ = 0, traced_ = 0;
    bool ended_ = false;
};

}  // namespace das_example
