// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// Branches among instructions, by bytes as an assembler writes them.

#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <vector>

#include <branch_trace/step/branch_instruction.hpp>

BOOST_AUTO_TEST_SUITE(branch_instructions)

namespace x86 = trace_ring::x86;
using branch_trace::branch_instruction;
using trace_ring::record::program_mode;
using x86::branch_kind;
using what = branch_instruction::what;

namespace {

branch_instruction decode(std::initializer_list<unsigned> bytes,
                          program_mode mode = program_mode::lp64, std::uint64_t at = 0x401000) {
    std::vector<std::byte> code;
    for (const unsigned byte : bytes) code.push_back(static_cast<std::byte>(byte));
    return branch_trace::decode_branch(code, at, mode);
}

constexpr auto wide = program_mode::lp64;
constexpr auto narrow = program_mode::ilp32;

}  // namespace

BOOST_AUTO_TEST_CASE(conditional_branches_know_their_target_and_their_length) {
    for (const auto mode : {wide, narrow}) {
        auto it = decode({0x74, 0x10}, mode);
        BOOST_TEST((it.is == what::may_branch && it.kind == branch_kind::conditional));
        BOOST_TEST((it.target == 0x401012 && it.length == 2 && it.condition == 4));
        it = decode({0x75, 0xFE}, mode);
        BOOST_TEST((it.target == 0x401000 && it.length == 2));
        it = decode({0x0F, 0x8F, 0x00, 0x01, 0x00, 0x00}, mode);
        BOOST_TEST((it.is == what::may_branch && it.target == 0x401106 && it.length == 6));
        it = decode({0x3E, 0x0F, 0x82, 0xF9, 0xFF, 0xFF, 0xFF}, mode);
        BOOST_TEST((it.target == 0x401000 && it.length == 7 && it.condition == 2));
        it = decode({0x67, 0xE3, 0x05}, mode);
        BOOST_TEST((it.is == what::may_branch && it.target == 0x401008 && it.count_is_short));
    }
    auto it = decode({0x66, 0x0F, 0x84, 0x10, 0x00}, narrow);
    BOOST_TEST((it.length == 5 && it.target == 0x1015));
    it = decode({0x66, 0x0F, 0x84, 0x10, 0x00, 0x00, 0x00}, wide);
    BOOST_TEST((it.length == 7 && it.target == 0x401017));
    BOOST_TEST(decode({0x74, 0x7F}, narrow, 0xFFFFFFF0).target == 0x71U);
    BOOST_TEST(decode({0x74, 0x80}, wide, 0x10).target == 0xFFFFFFFFFFFFFF92U);
}

BOOST_AUTO_TEST_CASE(each_kind_is_told_by_its_opcode_behind_any_prefix) {
    struct row {
        std::initializer_list<unsigned> bytes;
        what is;
        branch_kind kind;
    };
    const row rows[] = {
        {{0xE8, 0, 0, 0, 0}, what::does_branch, branch_kind::call},
        {{0x66, 0x66, 0x48, 0xE8, 0, 0, 0, 0}, what::does_branch, branch_kind::call},
        {{0xE9, 0, 0, 0, 0}, what::does_branch, branch_kind::jump},
        {{0xEB, 0}, what::does_branch, branch_kind::jump},
        {{0xF2, 0xC3}, what::does_branch, branch_kind::function_return},
        {{0xC2, 8, 0}, what::does_branch, branch_kind::function_return},
        {{0xCB}, what::does_branch, branch_kind::function_return},
        {{0xCF}, what::does_branch, branch_kind::interrupt_return},
        {{0xFF, 0xD0}, what::does_branch, branch_kind::indirect_call},
        {{0x3E, 0xFF, 0xE0}, what::does_branch, branch_kind::indirect_jump},
        {{0xFF, 0x25, 0, 0, 0, 0}, what::does_branch, branch_kind::indirect_jump},
        {{0xFF, 0x1D, 0, 0, 0, 0}, what::does_branch, branch_kind::indirect_call},
        {{0xFF, 0xC0}, what::no_branch, branch_kind::unknown},
        {{0xFF, 0x30}, what::no_branch, branch_kind::unknown},
        {{0xC7, 0xF8, 0, 0, 0, 0}, what::may_branch, branch_kind::other},
        {{0xC7, 0xC0, 1, 0, 0, 0}, what::no_branch, branch_kind::unknown},
        {{0xCD, 0x80}, what::enters_kernel, branch_kind::system_call},
        {{0x0F, 0x05}, what::enters_kernel, branch_kind::system_call},
        {{0x0F, 0x34}, what::enters_kernel, branch_kind::system_call},
        {{0xCD, 0x03}, what::raises, branch_kind::exception},
        {{0xCC}, what::raises, branch_kind::exception},
        {{0x0F, 0x1F, 0x40, 0x74}, what::no_branch, branch_kind::unknown},
        {{0xF3, 0xA4}, what::no_branch, branch_kind::unknown},
        {{0x90}, what::no_branch, branch_kind::unknown},
        {{0xC5, 0xF8, 0x77}, what::no_branch, branch_kind::unknown},
    };
    for (const auto& one : rows) {
        const auto it = decode(one.bytes);
        BOOST_TEST_CONTEXT("row " << &one - &rows[0]) {
            BOOST_TEST((it.is == one.is));
            BOOST_TEST((it.kind == one.kind));
        }
    }
}

BOOST_AUTO_TEST_CASE(what_is_a_prefix_in_one_mode_is_an_instruction_in_the_other) {
    BOOST_TEST((decode({0x48, 0xFF, 0xE0}, wide).kind == branch_kind::indirect_jump));
    BOOST_TEST((decode({0x48, 0xFF, 0xE0}, narrow).is == what::no_branch));
    BOOST_TEST((decode({0xEA, 0, 0, 0, 0, 0, 0}, narrow).kind == branch_kind::jump));
    BOOST_TEST((decode({0xEA, 0, 0, 0, 0, 0, 0}, wide).is == what::no_branch));
    BOOST_TEST(decode({0xEA, 0, 0, 0, 0, 0, 0}, narrow).changes_mode);
    BOOST_TEST((decode({0x9A, 0, 0, 0, 0, 0, 0}, narrow).kind == branch_kind::call));
}

BOOST_AUTO_TEST_CASE(a_cut_instruction_is_unreadable_and_never_read_beyond) {
    const std::initializer_list<std::initializer_list<unsigned>> cut = {
        {},           {0x74},       {0x0F}, {0x0F, 0x84, 1, 2, 3}, {0xFF}, {0x66, 0x67},
        {0xC7, 0xF8}, {0x48, 0x48}, {0xCD},
    };
    for (const auto& bytes : cut) BOOST_TEST((decode(bytes).is == what::unreadable));
    // Fifteen bytes at most.
    BOOST_TEST((decode({0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66,
                        0x66, 0x66, 0x66, 0x74, 0x00})
                    .is == what::unreadable));
    std::mt19937_64 random(1);
    for (int i = 0; i < 200'000; ++i) {
        std::vector<std::byte> code(random() % 16);  // its own size, for AddressSanitizer
        for (auto& byte : code) byte = static_cast<std::byte>(random());
        const auto mode = random() % 2 != 0 ? wide : narrow;
        const auto it = branch_trace::decode_branch(code, random(), mode);
        BOOST_REQUIRE(it.length <= code.size());
        if (it.is == what::may_branch) BOOST_REQUIRE(it.length >= 2U);
    }
}

BOOST_AUTO_TEST_CASE(conditions_hold_as_the_flags_say) {
    constexpr std::uint64_t carry = 1, parity = 4, zero = 0x40, sign = 0x80, overflow = 0x800;
    struct row {
        unsigned condition;
        std::uint64_t holds, fails;
    };
    const row rows[] = {
        {0, overflow, carry},
        {1, sign, overflow},
        {2, carry, zero},
        {3, zero, carry},
        {4, zero, carry},
        {5, carry, zero},
        {6, carry | sign, sign},
        {7, sign, zero},
        {8, sign, zero},
        {9, zero, sign},
        {0xA, parity, zero},
        {0xB, zero, parity},
        {0xC, sign, sign | overflow},
        {0xD, sign | overflow, overflow},
        {0xE, zero, 0},
        {0xF, sign | overflow, zero | sign | overflow},
    };
    for (const auto& one : rows) {
        const auto it = decode({0x70 | one.condition, 0});
        BOOST_TEST_CONTEXT("condition " << one.condition) {
            BOOST_TEST(branch_trace::condition_held(it, one.holds, 0, wide));
            BOOST_TEST(!branch_trace::condition_held(it, one.fails, 0, wide));
        }
    }
}

BOOST_AUTO_TEST_CASE(counts_are_as_wide_as_the_address_size_says) {
    constexpr std::uint64_t zero = 0x40;
    const auto loop = decode({0xE2, 0}), none = decode({0xE3, 0}), equal = decode({0xE1, 0}),
               unequal = decode({0xE0, 0}), less = decode({0x67, 0xE3, 0}),
               least = decode({0x67, 0xE3, 0}, narrow);
    BOOST_TEST((branch_trace::condition_held(loop, 0, 1, wide) &&
                !branch_trace::condition_held(loop, 0, 0, wide)));
    BOOST_TEST((branch_trace::condition_held(equal, zero, 1, wide) &&
                !branch_trace::condition_held(equal, 0, 1, wide) &&
                !branch_trace::condition_held(equal, zero, 0, wide)));
    BOOST_TEST((branch_trace::condition_held(unequal, 0, 1, wide) &&
                !branch_trace::condition_held(unequal, zero, 1, wide)));
    constexpr std::uint64_t high = 0x100000000;
    BOOST_TEST(!branch_trace::condition_held(none, 0, high, wide));
    BOOST_TEST(branch_trace::condition_held(none, 0, high, narrow));
    BOOST_TEST(branch_trace::condition_held(less, 0, high, wide));
    BOOST_TEST(branch_trace::condition_held(least, 0, 0x10000, narrow));
    BOOST_TEST(!branch_trace::condition_held(least, 0, 0x8000, narrow));
}

BOOST_AUTO_TEST_CASE(what_delays_a_trap_is_known_with_its_length_whatever_its_operand) {
    const auto length = [](std::initializer_list<unsigned> bytes, program_mode mode) {
        const auto it = decode(bytes, mode);
        BOOST_TEST((it.is == what::no_branch));
        return it.delays_trap ? int{it.length} : 0;
    };
    for (const auto mode : {wide, narrow}) {
        BOOST_TEST(length({0x8E, 0xD0}, mode) == 2);                          // mov ss, of eax,
        BOOST_TEST(length({0x66, 0x8E, 0xD1}, mode) == 3);                    // cx,
        BOOST_TEST(length({0x8E, 0x10}, mode) == 2);                          // [eax],
        BOOST_TEST(length({0x8E, 0x50, 1}, mode) == 3);                       // [eax+1],
        BOOST_TEST(length({0x8E, 0x90, 1, 2, 3, 4}, mode) == 6);              // [eax+...],
        BOOST_TEST(length({0x8E, 0x15, 1, 2, 3, 4}, mode) == 6);              // [...],
        BOOST_TEST(length({0x8E, 0x14, 0x24}, mode) == 3);                    // [esp],
        BOOST_TEST(length({0x8E, 0x54, 0x24, 1}, mode) == 4);                 // [esp+1],
        BOOST_TEST(length({0x8E, 0x94, 0x24, 1, 2, 3, 4}, mode) == 7);        // [esp+...],
        BOOST_TEST(length({0x8E, 0x14, 0x25, 1, 2, 3, 4}, mode) == 7);        // [...] by SIB,
        BOOST_TEST(length({0x36, 0x8E, 0x14, 0x0D, 1, 2, 3, 4}, mode) == 8);  // ss:[ecx+...]
        BOOST_TEST(length({0x8E, 0xD8}, mode) == 0);                          // mov ds
        BOOST_TEST(length({0x8C, 0xD0}, mode) == 0);                          // mov of ss
        BOOST_TEST((decode({0x8E, 0x90, 1, 2, 3}, mode).is == what::unreadable));
        BOOST_TEST((decode({0x8E, 0x14}, mode).is == what::unreadable));
        BOOST_TEST((decode({0x8E}, mode).is == what::unreadable));
    }
    BOOST_TEST(length({0x41, 0x8E, 0x50, 1}, wide) == 4);
    BOOST_TEST(length({0x67, 0x8E, 0x14, 0x24}, wide) == 4);
    BOOST_TEST(length({0x67, 0x8E, 0x14}, narrow) == 3);  // [si]
    BOOST_TEST(length({0x67, 0x8E, 0x16, 1, 2}, narrow) == 5);
    BOOST_TEST(length({0x67, 0x8E, 0x50, 1}, narrow) == 4);
    BOOST_TEST(length({0x67, 0x8E, 0x90, 1, 2}, narrow) == 5);
    BOOST_TEST(length({0x17}, narrow) == 1);  // pop ss
    BOOST_TEST(length({0x17}, wide) == 0);
}

BOOST_AUTO_TEST_SUITE_END()
