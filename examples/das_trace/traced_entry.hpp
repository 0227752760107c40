// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What this host puts into the 32 bytes of an entry. The layout is its own: this project does not
/// know the machine's layouts for PROGRAM CALL, PROGRAM TRANSFER and SET SECONDARY ASN.

#include <cstddef>
#include <cstdint>

#include <trace_ring/das/entry.hpp>
#include <trace_ring/record/data_model.hpp>

namespace das_example {

/// Operation codes of the traced instructions.
inline constexpr std::uint16_t program_call = 0xB218, program_transfer = 0xB228,
                               set_secondary_asn = 0xB225;

/// The mnemonic of a traced instruction; null if `operation` is none.
[[nodiscard]] constexpr const char* mnemonic_of(std::uint16_t operation) noexcept {
    switch (operation) {
        case program_call:
            return "PC";
        case program_transfer:
            return "PT";
        case set_secondary_asn:
            return "SSAR";
        default:
            return nullptr;
    }
}

/// An entry's contents, in its first 12 bytes; the others are zero.
struct traced_entry {
    std::uint32_t number = 0;  ///< of the instruction among those of its processor, from 1
    std::uint16_t operation = 0;
    std::byte processor{};      ///< its identity, from location 795
    std::uint32_t operand = 0;  ///< PC: its number; PT: the address; SSAR: the address space

    [[nodiscard]] trace_ring::record::das_entry pack() const noexcept {
        trace_ring::record::das_entry entry;
        trace_ring::record::store_big(entry.payload, 0, number);
        trace_ring::record::store_big(entry.payload, 4, operation);
        entry.payload[6] = processor;
        trace_ring::record::store_big(entry.payload, 8, operand);
        return entry;
    }
    [[nodiscard]] static traced_entry from(const trace_ring::record::das_entry& entry) noexcept {
        return {trace_ring::record::load_big<std::uint32_t>(entry.payload),
                trace_ring::record::load_big<std::uint16_t>(entry.payload, 4), entry.payload[6],
                trace_ring::record::load_big<std::uint32_t>(entry.payload, 8)};
    }
};

}  // namespace das_example
