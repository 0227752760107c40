// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "exceptions.hpp"

#include <array>

namespace das_example {

namespace {

using trace_ring::guest_region;
using refuses = guest_region::kind;

constexpr std::uint32_t entries = 8;
constexpr std::uint16_t store_operation = 0x50;

// A word of the header.
constexpr std::uint32_t current_word = guest::header + das::current_offset,
                        first_word = guest::header + das::first_offset,
                        last_word = guest::header + das::last_offset;

template <std::uint32_t First, std::uint32_t Bytes, refuses What>
void refuse(scene& at) {
    at.regions.push_back({First, Bytes, What});
}
void odd_designation(scene& at) {
    at.machine.put(das::designation_location, at.machine.get(das::designation_location) | 4);
}
void askew_after_wrap(scene& at) {
    at.machine.put(current_word, guest::first + 32 * (entries - 1));
    at.machine.put(first_word, guest::first + 16);
}
void entry_beyond_storage(scene& at) {
    at.machine.put(current_word, guest::bytes_of_storage - 32);
    at.machine.put(last_word, guest::bytes_of_storage + 32);
}
void other_leaves_boundary(scene& at) {
    at.storage.others_current = guest::first + 8;
}
void other_leaves_refusal(scene& at) {
    at.regions.push_back({guest::first + 32 * (entries - 1), 32, refuses::segment_protected});
    at.storage.others_current = guest::first + 32 * (entries - 2);
}
void no_spaces(scene& at) {
    at.cpu.dual_address_spaces = false;
}
// With a base register: a number that is larger than the table of services.
void large_number(scene& at) {
    at.machine.put(guest::program + 0x08, 0xB218CFFF);
}
void large_address(scene& at) {
    at.cpu.general[14] |= 0x01000000;
}
void large_space(scene& at) {
    at.cpu.general[2] = 0x0000FFFF;
}
void odd_instruction(scene& at) {
    at.cpu.branch(at.cpu.address() + 1);
}
void beyond_storage(scene& at) {
    at.cpu.branch(guest::bytes_of_storage);
}
void unknown_operation(scene& at) {
    at.machine.put(guest::program + 0x08, 0xB2FF0000);
}
void unaligned_store(scene& at) {
    at.machine.put(guest::program + 0x20, 0x50100202);
}

// The trace's exceptions, of one of the three instructions.
template <std::uint16_t Operation>
constexpr std::array<situation, 10> of_trace{{
    {"word 84 on a page that is not there", Operation, refuse<84, 4, refuses::no_page>},
    {"bits 29-31 of word 84", Operation, odd_designation},
    {"header's first doubleword protected", Operation,
     refuse<current_word, 8, refuses::segment_protected>},
    {"header's first doubleword not there", Operation, refuse<first_word, 4, refuses::no_segment>},
    {"header's third word not there", Operation, refuse<last_word, 4, refuses::no_page>},
    {"new entry not on 32 bytes", Operation, askew_after_wrap},
    {"new entry protected", Operation,
     refuse<guest::first, 32 * entries, refuses::segment_protected>},
    {"new entry beyond storage", Operation, entry_beyond_storage},
    {"at the swap: entry not on 32 bytes", Operation, other_leaves_boundary},
    {"at the swap: entry protected", Operation, other_leaves_refusal},
}};

constexpr situation of_instructions[] = {
    {"dual address spaces off", program_call, no_spaces},
    {"dual address spaces off", program_transfer, no_spaces},
    {"dual address spaces off", set_secondary_asn, no_spaces},
    {"the service's word beyond storage", program_call, large_number},
    {"the services' page not there", program_call,
     refuse<guest::services, 0x800, refuses::no_page>},
    {"the return address of more than 24 bits", program_transfer, large_address},
    {"the space's word beyond storage", set_secondary_asn, large_space},
    {"the spaces' segment not there", set_secondary_asn,
     refuse<guest::spaces, 0x800, refuses::no_segment>},
    {"the identity byte's page not there", program_call,
     refuse<das::cpu_identity_location, 1, refuses::no_page>},
    {"the operand has another key", store_operation, refuse<0x200, 4, refuses::key_protected>},
    {"the operand not on a word", store_operation, unaligned_store},
    {"an odd instruction address", program_transfer, odd_instruction},
    {"an instruction beyond storage", program_transfer, beyond_storage},
    {"an unknown operation code", program_call, unknown_operation},
};

std::vector<std::byte> copy_of(guest& machine) {
    const auto bytes = machine.bytes();
    return {bytes.begin(), bytes.end()};
}

}  // namespace

std::span<const situation> situations() {
    static const auto all = [] {
        std::vector<situation> out;
        // One by one: of an insertion, g++ 12 warns at -O3 that it overflows, which it does not.
        const auto add = [&out](const auto& some) {
            for (const situation& each : some) out.push_back(each);
        };
        add(of_trace<program_call>);
        add(of_trace<program_transfer>);
        add(of_trace<set_secondary_asn>);
        add(of_instructions);
        return out;
    }();
    return all;
}

outcome meet(const situation& which) {
    guest machine(entries, 100, true);
    std::vector<guest_region> regions;
    interfered_storage storage(machine.bytes(), regions, 0);
    processor<interfered_storage> cpu(storage, guest::program);
    while (cpu.executed() < 4 || cpu.next_operation() != which.operation)
        if (cpu.step()) return {};

    scene at{machine, regions, storage, cpu};
    which.arrange(at);
    storage.set_regions(regions);

    outcome out;
    out.before = copy_of(machine);
    if (storage.others_current != 0)
        record::store_big(std::span{out.before}, current_word, storage.others_current);
    const auto general = cpu.general;
    const auto address = cpu.address();
    out.met = cpu.step();
    out.after = copy_of(machine);
    out.registers_unchanged = cpu.general == general && cpu.address() == address;
    return out;
}

}  // namespace das_example
