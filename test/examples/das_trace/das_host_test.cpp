// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// The miniature System/370 of das_trace: its program runs, an instruction that meets an exception
/// changes nothing, and two processors trace into one table.

#include <array>
#include <barrier>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <das_trace/cpu_storage.hpp>
#include <das_trace/exceptions.hpp>
#include <das_trace/guest.hpp>
#include <das_trace/processor.hpp>
#include <das_trace/traced_entry.hpp>

#include "proof.hpp"

BOOST_AUTO_TEST_SUITE(das_host)

using namespace das_example;
using code = interruption_code;

namespace {

// The instruction of a loop by its number from 1 on: PC calls the service, whose PT returns.
traced_entry expected_entry(std::uint32_t number, std::byte processor) {
    switch (number % 3) {
        case 1:
            return {number, 0xB218, processor, 1};
        case 2:
            return {number, 0xB228, processor, 0x0000A00C};
        default:
            return {number, 0xB225, processor, 7};
    }
}

record::das_entry entry_at(guest& machine, std::uint32_t address) {
    record::das_entry entry;
    for (std::uint32_t i = 0; i < 32; ++i) entry.payload[i] = machine.bytes()[address + i];
    return entry;
}

struct expectation {
    const char* instruction;
    const char* name;
    interruption met;
};

// clang-format off
// Of the trace, for each of the three instructions; addresses of entries are of the instruction.
const expectation of_trace_expected[] = {
    {"*", "word 84 on a page that is not there", {code::page_translation, 0x000054}},
    {"*", "bits 29-31 of word 84",               {code::specification, 0x000054}},
    {"*", "header's first doubleword protected", {code::protection, 0x001000}},
    {"*", "header's first doubleword not there", {code::segment_translation, 0x001000}},
    {"*", "header's third word not there",       {code::page_translation, 0x001008}},
    {"*", "new entry not on 32 bytes",           {code::specification, 0x002010}},
    {"*", "new entry beyond storage",            {code::addressing, 0x010000}},
    {"*", "at the swap: entry not on 32 bytes",  {code::specification, 0x002028}},
    {"*", "at the swap: entry protected",        {code::protection, 0x0020E0}},
};
// The four that ran before were PC, PT, SSAR, PC, so the next three are PT, SSAR and PC.
const expectation others_expected[] = {
    {"PT",   "new entry protected",                     {code::protection, 0x002080}},
    {"SSAR", "new entry protected",                     {code::protection, 0x0020A0}},
    {"PC",   "new entry protected",                     {code::protection, 0x0020C0}},
    {"PC",   "dual address spaces off",                 {code::special_operation, 0x00A008}},
    {"PT",   "dual address spaces off",                 {code::special_operation, 0x00A024}},
    {"SSAR", "dual address spaces off",                 {code::special_operation, 0x00A00C}},
    {"PC",   "the service's word beyond storage",       {code::addressing, 0x00B000 + 4 * 0xAFFF}},
    {"PC",   "the services' page not there",            {code::page_translation, 0x00B004}},
    {"PT",   "the return address of more than 24 bits", {code::specification, 0x00A00C}},
    {"SSAR", "the space's word beyond storage",         {code::addressing, 0x00B800 + 4 * 0xFFFF}},
    {"SSAR", "the spaces' segment not there",           {code::segment_translation, 0x00B81C}},
    {"PC",   "the identity byte's page not there",      {code::page_translation, 795}},
    {"ST",   "the operand has another key",             {code::protection, 0x000200}},
    {"ST",   "the operand not on a word",               {code::specification, 0x000202}},
    {"PT",   "an odd instruction address",              {code::specification, 0x00A025}},
    {"PT",   "an instruction beyond storage",           {code::addressing, 0x010000}},
    {"PC",   "an unknown operation code",               {code::operation, 0x00A008}},
};
// clang-format on

std::string name_of_kind(const situation& which) {
    const char* const name = mnemonic_of(which.operation);
    return name != nullptr ? name : "ST";
}

}  // namespace

BOOST_AUTO_TEST_CASE(
    the_program_calls_its_service_until_its_count_is_zero_and_each_call_is_traced) {
    constexpr std::uint32_t loops = 200;
    guest machine(3 * loops, loops, true);
    cpu_storage storage(machine.bytes(), {}, 0);
    processor<cpu_storage> cpu(storage, guest::program);
    for (unsigned steps = 0; !cpu.ended() && steps < 10'000; ++steps)
        BOOST_TEST_REQUIRE(!cpu.step());
    BOOST_TEST(cpu.ended());
    BOOST_TEST(cpu.executed() == 3 * loops);
    BOOST_TEST(cpu.traced() == 3 * loops);
    BOOST_TEST(machine.get(0x200) == 1U);  // the service stores the count, which ends at 1
    BOOST_TEST(machine.get(guest::header) == guest::first + 32 * (3 * loops - 1));
    for (std::uint32_t n = 1; n <= 3 * loops; ++n) {
        BOOST_TEST_REQUIRE((entry_at(machine, guest::first + 32 * (n - 1)) ==
                            expected_entry(n, std::byte{0xC1}).pack()));
    }
}

BOOST_AUTO_TEST_CASE(with_the_gate_closed_the_program_runs_and_storage_has_no_entry) {
    guest machine(4, 5, false);
    const std::vector<std::byte> before(machine.bytes().begin(), machine.bytes().end());
    cpu_storage storage(machine.bytes(), {}, 0);
    processor<cpu_storage> cpu(storage, guest::program);
    while (!cpu.ended()) BOOST_TEST_REQUIRE(!cpu.step());
    BOOST_TEST(cpu.executed() == 15U);
    BOOST_TEST(cpu.traced() == 0U);
    machine.put(0x200, 0);  // by the service
    BOOST_TEST(std::vector<std::byte>(machine.bytes().begin(), machine.bytes().end()) == before);
}

BOOST_AUTO_TEST_CASE(each_exception_leaves_header_table_and_all_else_byte_by_byte_as_it_was) {
    std::map<std::pair<std::string, std::string>, interruption> expected;
    for (const auto& each : of_trace_expected)
        for (const char* const instruction : {"PC", "PT", "SSAR"})
            expected[{instruction, each.name}] = each.met;
    for (const auto& each : others_expected) expected[{each.instruction, each.name}] = each.met;

    std::set<std::pair<std::string, std::string>> seen;
    for (const auto& each : situations()) {
        const std::pair<std::string, std::string> key{name_of_kind(each), each.name};
        BOOST_TEST_CONTEXT(key.first << ": " << key.second) {
            BOOST_TEST_REQUIRE(expected.count(key) == 1U);
            const auto it = meet(each);
            BOOST_TEST(static_cast<int>(it.met.code) == static_cast<int>(expected[key].code));
            BOOST_TEST(it.met.address == expected[key].address);
            BOOST_TEST(it.registers_unchanged);
            BOOST_TEST_REQUIRE(it.before.size() == guest::bytes_of_storage);
            BOOST_TEST_REQUIRE(it.after.size() == guest::bytes_of_storage);
            std::size_t different = 0;
            for (std::size_t i = 0; i < it.before.size(); ++i)
                different += it.before[i] != it.after[i] ? 1U : 0U;
            BOOST_TEST(different == 0U);
            // There was something to lose: four entries.
            for (std::uint32_t n = 0; n < 4; ++n)
                BOOST_TEST((it.before[guest::first + 32 * n + 3] == static_cast<std::byte>(n + 1)));
        }
        seen.insert(key);
    }
    BOOST_TEST(seen.size() == expected.size());
}

BOOST_AUTO_TEST_CASE(an_exception_that_is_put_right_lets_the_same_instruction_complete) {
    guest machine(4, 5, true);
    const trace_ring::guest_region table{guest::first, 128,
                                         trace_ring::guest_region::kind::segment_protected};
    cpu_storage storage(machine.bytes(), {&table, 1}, 0);
    processor<cpu_storage> cpu(storage, guest::program);
    interruption met;
    while (!met) met = cpu.step();
    BOOST_TEST((met == interruption{code::protection, guest::first}));
    BOOST_TEST(cpu.address() == 0xA008U);
    BOOST_TEST((cpu.step() == met));
    storage.set_regions({});
    while (!cpu.ended()) BOOST_TEST_REQUIRE(!cpu.step());
    BOOST_TEST(cpu.traced() == 15U);
}

BOOST_AUTO_TEST_CASE(each_processor_has_a_first_block_of_its_own_and_a_table_in_common) {
    guest machine(4, 1, true);
    machine.prepare_processor(1);
    cpu_storage first(machine.bytes(), {}, guest::prefix_of(0));
    cpu_storage second(machine.bytes(), {}, guest::prefix_of(1));
    BOOST_TEST(first.fetch(792) == 0x000000C1U);
    BOOST_TEST(second.fetch(792) == 0x000000C2U);
    BOOST_TEST(second.fetch(guest::prefix_of(1) + 792) == 0x000000C1U);  // they are exchanged
    BOOST_TEST(first.fetch(84) == second.fetch(84));
    BOOST_TEST(first.fetch(guest::program) == second.fetch(guest::program));
}

namespace {

// Meets the other processor between the tests and the swap, once for each time that `meet` is set:
// both have then fetched current, and one of them has to take it again.
struct meeting_storage : cpu_storage {
    using cpu_storage::cpu_storage;
    std::barrier<>* meet = nullptr;
    std::uint32_t failed = 0;

    bool swap(std::uint32_t address, std::uint32_t& expected, std::uint32_t value) {
        if (auto* const other = std::exchange(meet, nullptr)) other->arrive_and_wait();
        const bool done = cpu_storage::swap(address, expected, value);
        failed += done ? 0 : 1;
        return done;
    }
};

struct run_of_two {
    std::array<std::uint32_t, 2> executed{}, traced{}, failed{};
    bool interrupted = false;
};

// Two processors in separate threads execute `loops` loops each; they meet at the swaps of the
// first `met` traced instructions.
run_of_two run_two(guest& machine, std::uint32_t met) {
    run_of_two out;
    machine.prepare_processor(1);
    std::barrier<> meet{2};
    std::array<std::thread, 2> threads;
    std::array<bool, 2> interrupted{};
    for (unsigned number = 0; number < 2; ++number)
        threads[number] = std::thread([&, number] {
            meeting_storage storage(machine.bytes(), {}, guest::prefix_of(number));
            processor<meeting_storage> cpu(storage, guest::program);
            while (!cpu.ended() && !interrupted[number]) {
                if (cpu.executed() < met && storage.meet == nullptr &&
                    mnemonic_of(cpu.next_operation()) != nullptr)
                    storage.meet = &meet;
                interrupted[number] = static_cast<bool>(cpu.step());
            }
            out.executed[number] = cpu.executed();
            out.traced[number] = cpu.traced();
            out.failed[number] = storage.failed;
        });
    for (auto& thread : threads) thread.join();
    out.interrupted = interrupted[0] || interrupted[1];
    return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(two_processors_in_one_table_leave_an_entry_of_each_traced_instruction) {
    constexpr std::uint32_t loops = 160, each = 3 * loops, met = 120;
    guest machine(2 * each, loops, true);
    const auto run = run_two(machine, met);
    BOOST_TEST(!run.interrupted);
    std::array<std::uint32_t, 2> next{1, 1};
    for (std::uint32_t n = 0; n < 2 * each; ++n) {
        const auto entry = entry_at(machine, guest::first + 32 * n);
        const auto it = traced_entry::from(entry);
        const auto number = std::to_integer<unsigned>(it.processor) - 0xC1;
        BOOST_TEST_REQUIRE(number < 2U);
        // Of a processor, entries come in the order in which it executed.
        BOOST_TEST_REQUIRE((entry == expected_entry(next[number]++, it.processor).pack()));
    }
    for (unsigned number = 0; number < 2; ++number) {
        BOOST_TEST(run.executed[number] == each);
        BOOST_TEST(run.traced[number] == each);
        BOOST_TEST(next[number] == each + 1);
    }
    BOOST_TEST(machine.get(guest::header) == guest::first + 32 * (2 * each - 1));
    BOOST_TEST(run.failed[0] + run.failed[1] >= met);
}

BOOST_AUTO_TEST_CASE(two_processors_in_a_small_table_advance_current_once_for_each_instruction) {
    const std::uint32_t loops = trace_ring_test::repeats(5000);
    constexpr std::uint32_t entries = 7;
    guest machine(entries, loops, true);
    const auto run = run_two(machine, 300);
    BOOST_TEST(!run.interrupted);
    const std::uint32_t all = run.traced[0] + run.traced[1];
    BOOST_TEST(all == 6 * loops);
    BOOST_TEST(machine.get(guest::header) == guest::first + 32 * ((all - 1) % entries));
}

BOOST_AUTO_TEST_SUITE_END()
