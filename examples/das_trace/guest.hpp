// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A guest of the miniature System/370: 64 KiB of storage with a DAS trace table, a program that
/// calls a service, and the tables by which this host finds services and address spaces.
/// @code
///   000000  first block of processor 0: word 84, and byte 795, its identity
///   001000  trace-table-entry header     002000  the trace table
///   00A000  the program                  00B000  services, 00B800  spaces
///   00C000  first block of processor 1, and 00D000 of the next
/// @endcode

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <trace_ring/das/table.hpp>
#include <trace_ring/record/data_model.hpp>

namespace das_example {

namespace das = trace_ring::das;
namespace record = trace_ring::record;

class guest {
public:
    static constexpr std::uint32_t bytes_of_storage = 64 * 1024;
    static constexpr std::uint32_t header = 0x1000, first = 0x2000;
    static constexpr std::uint32_t most_entries = 1000;
    static constexpr std::uint32_t program = 0xA000, services = 0xB000, spaces = 0xB800;
    /// A service, and a space, by which the program calls.
    static constexpr std::uint32_t service_number = 1, space_number = 7;

    /// The control program's part: gate and header, the three control words, the program that runs
    /// its loop `loops` times, and its tables.
    guest(std::uint32_t entries, std::uint32_t loops, bool gate_open)
        : words_(bytes_of_storage / 8), designation_((gate_open ? 0x80000000 : 0) | header) {
        put(header + das::current_offset, first - 32);  // so the first entry is used first
        put(header + das::first_offset, first);
        put(header + das::last_offset, first + 32 * entries);
        put_program(loops);
        put(services + 4 * service_number, service);
        put(spaces + 4 * space_number, 0x000D0000);
        prepare_processor(0);
    }

    /// The prefix of a processor.
    [[nodiscard]] static constexpr std::uint32_t prefix_of(unsigned processor) noexcept {
        return processor == 0 ? 0 : 0xC000 + (processor - 1) * 0x1000;
    }
    /// Puts word 84 and the identity byte, X'C1' and so on, into a processor's first block.
    void prepare_processor(unsigned processor) {
        const auto prefix = prefix_of(processor);
        put(prefix + das::designation_location, designation_);
        bytes()[prefix + das::cpu_identity_location] = static_cast<std::byte>(0xC1 + processor);
    }

    [[nodiscard]] std::span<std::byte> bytes() noexcept {
        return std::as_writable_bytes(std::span{words_});
    }
    void put(std::uint32_t address, std::uint32_t word) {
        record::store_big(bytes(), address, word);
    }
    [[nodiscard]] std::uint32_t get(std::uint32_t address) noexcept {
        return record::load_big<std::uint32_t>(bytes(), address);
    }

private:
    static constexpr std::uint32_t service = program + 0x20;

    void put_program(std::uint32_t loops) {
        // Register 12 has the program's address.
        put(program + 0x00, 0x5810C018);  //       L     1,COUNT
        put(program + 0x04, 0x41200007);  //       LA    2,7        the address space
        put(program + 0x08, 0xB2180001);  // LOOP  PC    1          the service, which returns here
        put(program + 0x0C, 0xB2250020);  //       SSAR  2
        put(program + 0x10, 0x4610C008);  //       BCT   1,LOOP
        put(program + 0x14, 0x0A000000);  //       SVC   0          the end
        put(program + 0x18, loops);       // COUNT DC    F'loops'
        put(program + 0x20, 0x50100200);  //       ST    1,512      in the processor's first block
        put(program + 0x24, 0xB228003E);  //       PT    3,14       back to the program
    }

    std::vector<std::uint64_t> words_;  // so that storage begins on a doubleword boundary
    std::uint32_t designation_;
};

}  // namespace das_example
