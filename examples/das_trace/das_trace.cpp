// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// A miniature System/370 host: it executes a guest's program, whose PROGRAM CALL, PROGRAM TRANSFER
// and SET SECONDARY ASN are traced into a DAS trace table in the guest's storage, and prints the
// table from the oldest entry to the newest, as an emulator's debugger would.

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>

#include <trace_ring/das/table.hpp>

#include "cpu_storage.hpp"
#include "exceptions.hpp"
#include "guest.hpp"
#include "interruption.hpp"
#include "options.hpp"
#include "processor.hpp"
#include "traced_entry.hpp"

namespace das_example {
namespace {

void print(std::uint32_t address, const record::das_entry& entry) {
    const auto it = traced_entry::from(entry);
    const char* const name = mnemonic_of(it.operation);
    std::printf("%06X  %6u  %-12s  cpu %02X  %08X\n", static_cast<unsigned>(address),
                static_cast<unsigned>(it.number), name == nullptr ? "(never used)" : name,
                std::to_integer<unsigned>(it.processor), static_cast<unsigned>(it.operand));
}

std::string described(const interruption& met) {
    char text[80];
    std::snprintf(text, sizeof text, "interruption code %04X (%s) at %06X",
                  static_cast<unsigned>(met.code), name_of(met.code),
                  static_cast<unsigned>(met.address));
    return text;
}

// The mnemonic of an operation code that a situation has.
const char* name_of_instruction(std::uint16_t operation) {
    const char* const name = mnemonic_of(operation);
    return name != nullptr ? name : operation == 0x50 ? "ST" : "(other)";
}

int show_exceptions() {
    int status = 0;
    for (const auto& each : situations()) {
        const auto it = meet(each);
        const bool unchanged = it.met && it.before == it.after && it.registers_unchanged;
        std::printf("%-4s  %-40s  %04X %-19s  %06X  %s\n", name_of_instruction(each.operation),
                    each.name, static_cast<unsigned>(it.met.code), name_of(it.met.code),
                    static_cast<unsigned>(it.met.address),
                    unchanged ? "nothing changed" : "CHANGED");
        if (!unchanged) status = 1;
    }
    return status;
}

// False, and a message, if the file cannot be written.
bool write_image(const std::string& path, std::span<const std::byte> bytes) {
    std::FILE* const file = std::fopen(path.c_str(), "wb");
    bool done = file != nullptr && std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
    int error = errno;
    if (file != nullptr && std::fclose(file) != 0 && done) {
        done = false;
        error = errno;
    }
    if (!done) std::fprintf(stderr, "das_trace: %s: %s\n", path.c_str(), std::strerror(error));
    return done;
}

int run(const options& wanted) {
    // Three of the traced instructions in each loop.
    guest machine(wanted.entries, wanted.instructions / 3 + 1, wanted.gate_open);
    const trace_ring::guest_region segment{guest::first, 32 * wanted.entries,
                                           trace_ring::guest_region::kind::segment_protected};
    cpu_storage storage(machine.bytes(), std::span{&segment, wanted.is_protected ? 1U : 0U}, 0);
    processor<cpu_storage> cpu(storage, guest::program);

    int status = 0;
    while (status == 0 && cpu.executed() < wanted.instructions && !cpu.ended()) {
        const auto operation = cpu.next_operation();
        if (const auto met = cpu.step()) {
            std::printf("%s suppressed: %s\n", name_of_instruction(operation),
                        described(met).c_str());
            status = 1;
        }
    }
    if (status == 0) {
        std::printf("%u executed, %u traced, table of %u\n", static_cast<unsigned>(cpu.executed()),
                    static_cast<unsigned>(cpu.traced()), static_cast<unsigned>(wanted.entries));
        const auto end = das::walk(storage, print);
        if (cpu.traced() != 0) std::printf("newest: %06X\n", static_cast<unsigned>(end.address));
        if (end.failed()) status = 1;
    }
    if (!wanted.image.empty() && !write_image(wanted.image, machine.bytes())) status = 1;
    return status;
}

}  // namespace
}  // namespace das_example

int main(int argc, char** argv) {
    das_example::options wanted;
    int status = 0;
    if (!das_example::parse(std::span{argv, static_cast<std::size_t>(argc)}.subspan(1), wanted,
                            status))
        return status;
    return wanted.exceptions ? das_example::show_exceptions() : das_example::run(wanted);
}
