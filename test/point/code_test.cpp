// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// Byte code: what the checker refuses, what each operation does, and that nothing which the checker
// accepts can do more than the plainest interpreter does.

#include <boost/test/unit_test.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <trace_ring/point/machine/check.hpp>
#include <trace_ring/point/machine/run.hpp>
#include <trace_ring/record/field.hpp>

#include <point/naive.hpp>
#include <point/naive_records.hpp>
#include <point/random_code.hpp>
#include <proof.hpp>

BOOST_AUTO_TEST_SUITE(byte_code)

namespace point = trace_ring::point;
using point::instruction;
using point::op;
using test::fake_firing;

namespace {

std::string refused(const std::vector<instruction>& code, const point::purpose& as) {
    const auto why = point::find_fault(code, as);
    return why ? std::to_string(why->at) + ": " + why->what : "";
}

constexpr auto u8 = static_cast<std::uint8_t>(point::width::u8);
constexpr auto u32 = static_cast<std::uint8_t>(point::width::u32);
constexpr auto u64 = static_cast<std::uint8_t>(point::width::u64);
constexpr auto s32 = static_cast<std::uint8_t>(point::width::s32);
constexpr std::uint64_t lowest = std::uint64_t{1} << 63;
constexpr std::uint64_t minus_one = ~std::uint64_t{0};

/// A constant of 64 bits.
void append(std::vector<instruction>& to, std::uint64_t value) {
    to.push_back({op::constant, 0, 0, static_cast<std::int32_t>(value)});
    to.push_back({op::constant_high, 0, 0, static_cast<std::int32_t>(value >> 32)});
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_checker_refuses_and_names_the_instruction) {
    const point::purpose predicate{0, true};
    const point::purpose action{16, false};
    const point::purpose of_records{0, true, &test::fake_records::bounds};
    constexpr auto u64_field = static_cast<std::uint8_t>(trace_ring::field_type::u64);
    const instruction one{op::constant, 0, 0, 1};
    const instruction end{op::finish};
    const struct {
        std::vector<instruction> code;
        point::purpose as;
        const char* said;
    } cases[] = {
        {{one, end}, predicate, ""},
        {{end}, action, ""},
        {{one, {op::store, u64, 0, 8}, end}, action, ""},
        {{one, {op::store_text, 0, 14, 0}, end}, action, ""},
        {{one, {op::skip_if_zero, 0, 0, 1}, one, one, end},
         predicate,
         "2: another depth of the stack than on the other way there"},
        {{one, {op::skip_if_zero, 0, 0, 2}, one, {op::skip, 0, 0, 1}, one, end}, predicate, ""},
        {{}, predicate, "0: there is no instruction"},
        {{one}, predicate, "0: the last instruction is not 'finish'"},
        {{end}, predicate, "0: a predicate leaves one word"},
        {{one, end}, action, "1: an action leaves no word"},
        {{one, one, end}, predicate, "2: a predicate leaves one word"},
        {{end, end}, action, "0: 'finish' before the end"},
        {{{op::add}, end}, predicate, "0: the stack is empty"},
        {{one, {op::add}, end}, predicate, "1: the stack is empty"},
        {std::vector<instruction>(point::most_depth + 1, one), predicate, "16: the stack is full"},
        {{{static_cast<op>(point::ops)}, end}, action, "0: no such operation"},
        {{{op::context, point::context_words}, end}, predicate, "0: no such word of the context"},
        {{{op::argument, point::most_arguments}, end}, predicate, "0: no such argument"},
        {{{op::reg, point::most_registers}, end}, predicate, "0: no such register"},
        {{one, {op::load, point::widths}, end}, predicate, "1: no such width"},
        {{one, {op::narrow, point::widths}, end}, predicate, "1: no such width"},
        {{one, {op::skip, 0, 0, 1}, end}, predicate, "1: skips to outside of the code"},
        {{one, {op::skip, 0, 0, -1}, end}, predicate, "1: skips to outside of the code"},
        {{one, {op::skip, 0, 0, 1}, one, end}, predicate, "2: no way leads here"},
        {{one, {op::store, u64, 0, 9}, end}, action, "1: stores outside of the output"},
        {{one, {op::store, u64, 0, -1}, end}, action, "1: stores outside of the output"},
        {{one, {op::store_text, 0, 15, 0}, end}, action, "1: stores outside of the output"},
        {{one, {op::store_bytes, 0, 17, 0}, end}, action, "1: stores outside of the output"},
        {{{op::store_stack, 0, 24, 0}, end}, action, "0: stores outside of the output"},
        {{{op::store_stack, 0, 12, 0}, end}, action, "0: an address has 8 bytes"},
        {{one, {op::store_bytes, 0, 0, 0}, end}, action, "1: nothing is stored"},
        {{one, {op::store, u8, 0, 0}, one, end}, predicate, "1: a predicate stores nothing"},
        {{{op::constant, 1, 0, 0}, end},
         predicate,
         "0: an operand that the operation does not have"},
        {{one, {op::negate, 0, 1, 0}, end},
         predicate,
         "1: an operand that the operation does not have"},
        {{one, {op::narrow, u8, 0, 1}, end},
         predicate,
         "1: an operand that the operation does not have"},
        {{end}, {point::most_output + 1, false}, "0: too much output"},
        {{{op::record_word}, end}, predicate, "0: it asks records"},
        {{{op::argument, 0}, end}, of_records, "0: it asks a firing"},
        {{one, one, {op::divide}, end}, of_records, "2: it asks a firing"},
        {{{op::field, u64_field, 0, 16}, end}, of_records, ""},
        {{{op::field, u64_field, 0, 17}, end}, of_records, "0: outside of the record"},
        {{{op::field, u64_field, 0, -1}, end}, of_records, "0: outside of the record"},
        {{{op::field, 14, 0, 0}, end}, of_records, "0: no such type"},
        {{{op::record_word, 0, 0, 3}, end}, of_records, "0: the context has no such"},
        {{{op::record_number, 0, 0, 4}, {op::finish}}, of_records, "0: the context has no such"},
        {{one, {op::within, 0, 0, -1}, end}, of_records, "1: the context has no such"},
        {{one, {op::number, point::word_kinds}, end}, of_records, "1: no such kind of number"},
        {{one, {op::number, 0}, end}, of_records, "2: a predicate leaves one word"},
        {{one, {op::number, 0}, one, {op::number_compare, 2}, end},
         of_records,
         "3: the stack is empty"},
        {{one, {op::number, 0}, {op::copy}, {op::copy}, {op::number_compare, 7}, end},
         of_records,
         "4: no such comparison"},
    };
    for (const auto& each : cases) BOOST_TEST(refused(each.code, each.as) == each.said);
    std::vector<instruction> longest(point::most_instructions, {op::skip, 0, 0, 0});
    longest.back() = end;
    BOOST_TEST(refused(longest, action) == "");
    longest.insert(longest.begin(), {op::skip, 0, 0, 0});
    BOOST_TEST(refused(longest, action) == "1024: too long");
    const point::record_bounds deep{.depth = point::most_record_depth + 1};
    BOOST_TEST(refused({one, end}, {0, true, &deep}) == "0: too deep a stack");
}

BOOST_AUTO_TEST_CASE(operations_on_words_wrap_and_have_signs_where_they_say_so) {
    const struct {
        op how;
        std::uint64_t w, x, result;
        std::uint32_t faults = 0;
    } cases[] = {
        {op::add, minus_one, 2, 1},
        {op::subtract, 1, 2, minus_one},
        {op::multiply, lowest + 3, 2, 6},
        {op::divide, minus_one - 6, 2, minus_one - 2},
        {op::divide, lowest, minus_one, lowest},
        {op::divide, 7, minus_one - 1, minus_one - 2},
        {op::divide, 7, 0, 0, 1},
        {op::divide_unsigned, minus_one, 2, minus_one / 2},
        {op::divide_unsigned, 1, 0, 0, 1},
        {op::remainder, minus_one - 6, 4, minus_one - 2},
        {op::remainder, lowest, minus_one, 0},
        {op::remainder, 7, minus_one - 3, 3},
        {op::remainder, 7, 0, 0, 1},
        {op::remainder_unsigned, minus_one, 10, 5},
        {op::bit_and, 12, 10, 8},
        {op::bit_or, 12, 10, 14},
        {op::bit_xor, 12, 10, 6},
        {op::shift_left, 1, 63, lowest},
        {op::shift_left, 1, 64, 1},
        {op::shift_right, lowest, 63, minus_one},
        {op::shift_right_unsigned, lowest, 63, 1},
        {op::equals, 5, 5, 1},
        {op::equals, 5, 6, 0},
        {op::exceeds, minus_one, 0, 0},
        {op::exceeds, 1, 0, 1},
        {op::exceeds_unsigned, minus_one, 0, 1},
    };
    fake_firing none;
    for (const auto& each : cases) {
        std::vector<instruction> code;
        append(code, each.w);
        append(code, each.x);
        code.push_back({each.how});
        code.push_back({op::finish});
        BOOST_TEST(refused(code, {0, true}) == "");
        const auto done = point::run(code, none, {});
        BOOST_TEST(done.value == each.result, point::name_of(each.how) << " is " << done.value);
        BOOST_TEST(done.faults == each.faults);
    }
}

BOOST_AUTO_TEST_CASE(
    memory_is_read_in_the_width_that_is_asked_for_and_what_is_not_there_is_counted) {
    fake_firing at;
    for (const unsigned byte : {0xFEU, 0xFFU, 0xFFU, 0xFFU, 0x78U, 0x56U, 0x34U, 0x12U})
        at.memory.push_back(static_cast<std::byte>(byte));
    at.arguments = {at.base, std::nullopt};
    const auto loaded = [&](std::uint8_t width, std::int32_t offset) {
        const instruction code[] = {{op::argument, 0}, {op::load, width, 0, offset}, {op::finish}};
        return point::run(code, at, {});
    };
    BOOST_TEST(loaded(u32, 0).value == 0xFFFFFFFEU);
    BOOST_TEST(loaded(s32, 0).value == minus_one - 1);
    BOOST_TEST(loaded(u8, 7).value == 0x12U);
    BOOST_TEST(loaded(u64, 0).value == 0x12345678FFFFFFFEU);
    BOOST_TEST(loaded(u64, 1).value == 0U);
    BOOST_TEST(loaded(u64, 1).faults == 1U);
    BOOST_TEST(loaded(u8, -1).faults == 1U);
    const instruction missing[] = {{op::argument, 1}, {op::finish}};
    BOOST_TEST(point::run(missing, at, {}).faults == 1U);
}

BOOST_AUTO_TEST_CASE(an_action_stores_words_texts_bytes_and_stacks_at_their_places) {
    fake_firing at;
    for (const char c : {'o', 'r', 'd', 'e', 'r', '\0'})
        at.memory.push_back(static_cast<std::byte>(c));
    at.arguments = {at.base, std::uint64_t{0x1122334455667788}};
    at.frames = {0xA1, 0xA2, 0xA3};
    const instruction code[] = {{op::argument, 1},
                                {op::store, u32, 0, 0},
                                {op::argument, 0},
                                {op::store_text, 0, 8, 4},
                                {op::argument, 0},
                                {op::store_text, 0, 3, 14},
                                {op::argument, 0},
                                {op::store_bytes, 0, 5, 19},
                                {op::store_stack, 0, 16, 24},
                                {op::constant},
                                {op::store_text, 0, 4, 40},
                                {op::finish}};
    std::array<std::byte, 48> output{};
    output.fill(std::byte{0xEE});
    BOOST_TEST(refused({std::begin(code), std::end(code)}, {48, false}) == "");
    const auto done = point::run(code, at, output);
    BOOST_TEST(done.faults == 1U);  // the last text's address
    const auto word = [&](std::size_t offset, std::size_t bytes) {
        std::uint64_t value = 0;
        std::memcpy(&value, &output[offset], bytes);
        return value;
    };
    BOOST_TEST(word(0, 4) == 0x55667788U);
    BOOST_TEST(word(4, 2) == 5U);
    BOOST_TEST(std::memcmp(&output[6], "order\0\0\0", 8) == 0);
    BOOST_TEST(word(14, 2) == (3U | point::text_was_cut));
    BOOST_TEST(std::memcmp(&output[16], "ord", 3) == 0);
    BOOST_TEST(std::memcmp(&output[19], "order", 5) == 0);
    BOOST_TEST(word(24, 8) == 0xA1U);
    BOOST_TEST(word(32, 8) == 0xA2U);
    BOOST_TEST(word(40, 8) == 0U);  // what could not be read, and what is not stored, is 0
}

BOOST_AUTO_TEST_CASE(what_the_checker_accepts_does_what_the_plainest_interpreter_does) {
    const unsigned rounds = trace_ring_test::repeats(1'000'000);
    std::mt19937_64 random(28);
    std::uint64_t accepted = 0;
    std::uint64_t faults = 0;
    for (unsigned n = 0; n < rounds; ++n) {
        const test::random_code made(random);
        const auto refusal = point::find_fault(made.code, made.as);
        if (refusal) continue;
        ++accepted;
        fake_firing at = test::random_firing(random);
        std::vector<std::byte> output(made.as.output_bytes, std::byte{0xEE});
        const auto done = point::run(made.code, at, output);
        test::naive plain(made.code, at, made.as.output_bytes);
        plain.run();  // throws where the checker should have refused
        const bool same =
            done.value == plain.value && done.faults == plain.faults && output == plain.output;
        BOOST_REQUIRE_MESSAGE(same, "program " << n << " of " << made.code.size());
        faults += done.faults;
    }
    BOOST_TEST(accepted > rounds / 3);
    BOOST_TEST(accepted < rounds);
    BOOST_TEST(faults > rounds / 10);
    trace_ring_test::proof("clauses", accepted, "programs run by two interpreters");
}

BOOST_AUTO_TEST_CASE(records_that_part_meet_again_with_the_words_that_each_has) {
    std::mt19937_64 random(1);
    test::fake_records records(random);
    for (std::size_t k = 0; k < records.count; ++k) records.words[0][k] = k % 3;
    // Some wait with no word on the stack while the others continue beyond them with two.
    const std::vector<instruction> code{{op::record_word, 0, 0, 0},
                                        {op::skip_if_zero, 0, 0, 3},
                                        {op::constant, 0, 0, 5},
                                        {op::constant, 0, 0, 1},
                                        {op::skip, 0, 0, 2},
                                        {op::constant, 0, 0, 7},
                                        {op::constant, 0, 0, 9},
                                        {op::add},
                                        {op::finish}};
    BOOST_TEST(refused(code, {0, true, &test::fake_records::bounds}) == "");
    std::vector<point::record_column> stack(point::most_depth);
    point::run(point::code(code), records, ~std::uint64_t{0}, stack);
    for (std::size_t k = 0; k < records.count; ++k) {
        BOOST_TEST(stack[0][k] == (k % 3 == 0 ? 16U : 6U));
    }
}

BOOST_AUTO_TEST_CASE(many_records_at_once_are_answered_as_each_alone) {
    const unsigned rounds = trace_ring_test::repeats(6'000);
    std::mt19937_64 random(64);
    std::vector<point::record_column> stack(point::most_depth);
    std::uint64_t ran = 0;
    std::uint64_t unlike = 0;  // programs whose records have different answers
    for (unsigned n = 0; n < rounds; ++n) {
        const test::random_code made(random, 0, &test::fake_records::bounds);
        if (point::find_fault(made.code, made.as)) continue;
        test::fake_records records(random);
        const std::uint64_t asked = random() % 4 == 0 ? random() | 1 : ~std::uint64_t{0};
        point::run(point::code(made.code), records, asked, stack);
        bool differ = false;
        for (std::size_t k = 0; k < point::records_at_once; ++k) {
            if ((asked >> k & 1) == 0) continue;
            test::naive_record plain(made.code, records, k);
            plain.run();  // throws where the checker should have refused
            if (plain.met_nan) continue;
            BOOST_REQUIRE_MESSAGE(stack[0][k] == plain.value, "program " << n << " of "
                                                                         << made.code.size()
                                                                         << ", record " << k);
            differ = differ || plain.value != stack[0][0];
            ++ran;
        }
        if (differ) ++unlike;
    }
    BOOST_TEST(ran > rounds * 16U);
    BOOST_TEST(unlike > rounds / 8);
}

BOOST_AUTO_TEST_SUITE_END()
