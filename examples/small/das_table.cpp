// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// An emulator that traces as System/370 does: PROGRAM TRANSFER makes an entry in a table in the
/// guest's own storage. The guest turns tracing on by a bit of its storage.
///   das_table

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include <trace_ring/das/guest_memory.hpp>
#include <trace_ring/das/table.hpp>

namespace {

namespace das = trace_ring::das;
namespace record = trace_ring::record;
using trace_ring::program_exception;

// The emulated machine: 16 KiB of storage, all big-endian, and an instruction address.
struct machine {
    alignas(8) std::array<std::byte, 0x4000> storage{};
    std::uint32_t instruction = 0x100;

    void store(std::uint32_t address, std::uint32_t word) {
        record::store_big(storage, address, word);
    }

    // The instruction that is traced. If the entry cannot be stored, the guest gets a program
    // interruption, and the instruction is suppressed.
    program_exception program_transfer(std::uint32_t to) {
        trace_ring::guest_memory guest(storage);
        record::das_entry entry;  // its 32 bytes are the emulator's to lay out
        record::store_big(entry.payload, 0, instruction);
        record::store_big(entry.payload, 4, to);
        if (const auto traced = das::trace(guest, entry); traced.failed()) return traced.exception;
        instruction = to;
        return program_exception::none;
    }
};

}  // namespace

int main() {
    machine cpu;
    cpu.store(0x1000, 0x1FE0);  // current entry: one before the first
    cpu.store(0x1004, 0x2000);  // first entry
    cpu.store(0x1008, 0x2080);  // one past the last entry: there are four

    cpu.program_transfer(0x200);  // not traced
    cpu.store(84, 0x8000'1000);   // the designation: tracing is on, the controls are at X'1000'
    for (std::uint32_t to = 0x300; to <= 0x700; to += 0x100) {
        if (cpu.program_transfer(to) != program_exception::none) return 1;
    }

    trace_ring::guest_memory guest(cpu.storage);
    das::walk(guest, [](std::uint32_t address, const record::das_entry& entry) {
        const auto from = record::load_big<std::uint32_t>(entry.payload);
        const auto to = record::load_big<std::uint32_t>(entry.payload, 4);
        std::printf("%04X: %03X -> %03X\n", static_cast<unsigned>(address),
                    static_cast<unsigned>(from), static_cast<unsigned>(to));
    });

    // A table outside the guest's storage: an addressing exception, and nothing has changed.
    cpu.store(84, 0x8000'4000);
    const auto exception = cpu.program_transfer(0x800);
    std::printf("exception %04X at %03X\n", static_cast<unsigned>(exception),
                static_cast<unsigned>(cpu.instruction));
}
