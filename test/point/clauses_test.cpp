// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// Clauses: which points they are for, and that each firing runs the code of the process's mode. P1
// to P6 are the vectors of trace clauses.

#include <boost/test/unit_test.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <trace_ring/point/clauses.hpp>
#include <trace_ring/point/specification.hpp>

#include <point/naive.hpp>

BOOST_AUTO_TEST_SUITE(trace_clauses)

namespace point = trace_ring::point;
namespace record = trace_ring::record;
using point::clause_result;
using point::instruction;
using point::op;
using record::program_mode;

namespace {

constexpr auto u32 = static_cast<std::uint8_t>(point::width::u32);
constexpr auto u64 = static_cast<std::uint8_t>(point::width::u64);

/// Stores arg0 and a mark of the stream that ran.
std::vector<instruction> stores(std::uint8_t width, std::int32_t mark) {
    const auto bytes = static_cast<std::int32_t>(point::bytes_of(static_cast<point::width>(width)));
    return {{op::argument, 0},
            {op::store, width, 0, 0},
            {op::constant, 0, 0, mark},
            {op::store, u32, 0, bytes},
            {op::finish}};
}
/// arg0 > `limit`.
std::vector<instruction> exceeds(std::int32_t limit) {
    return {{op::argument, 0}, {op::constant, 0, 0, limit}, {op::exceeds}, {op::finish}};
}

struct told {
    std::uint32_t clause;
    clause_result::fate is;
    std::uint32_t faults;
    std::vector<std::byte> output;

    [[nodiscard]] std::uint64_t number(std::size_t offset, std::size_t bytes) const {
        std::uint64_t value = 0;
        BOOST_REQUIRE(offset + bytes <= output.size());
        std::memcpy(&value, &output[offset], bytes);
        return value;
    }
};

std::vector<told> fire(const point::clauses& session, std::uint32_t at, program_mode mode,
                       std::uint64_t argument) {
    test::fake_firing of;
    of.arguments = {argument};
    std::vector<told> all;
    session.fire(at, mode, of, [&](const clause_result& one) {
        all.push_back({one.clause, one.is, one.faults, {one.output.begin(), one.output.end()}});
    });
    return all;
}

std::string refused(std::string_view text) {
    point::specification::mistake why;
    static_cast<void>(point::specification::parse(text, why));
    return why.what == nullptr ? "" : std::to_string(why.at) + ": " + why.what;
}
bool wants(std::string_view text, const std::vector<std::string_view>& fields) {
    point::specification::mistake why;
    const auto parsed = point::specification::parse(text, why);
    BOOST_REQUIRE(why.what == nullptr);
    return parsed.wants(fields);
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_mode_of_the_process_that_fires_chooses_the_stream) {
    point::clauses session;
    const auto predicate = exceeds(4096);
    const auto of_64 = stores(u64, 64);
    const auto of_32 = stores(u32, 32);
    const std::uint32_t one = session.add({predicate, of_64, 12}, {predicate, of_32, 8});
    const std::uint32_t at = session.install({&one, 1});
    const auto check = [&](program_mode mode, std::size_t bytes, unsigned mark) {
        const auto ran = fire(session, at, mode, 5000);
        BOOST_REQUIRE(ran.size() == 1U);
        BOOST_TEST(ran[0].is == clause_result::ran);
        BOOST_TEST(ran[0].output.size() == bytes + 4);
        BOOST_TEST(ran[0].number(0, bytes) == 5000U);
        BOOST_TEST(ran[0].number(bytes, 4) == mark);
        const auto not_wanted = fire(session, at, mode, 4096);  // P4
        BOOST_TEST(not_wanted[0].is == clause_result::not_wanted);
        BOOST_TEST(not_wanted[0].output.empty());
    };
    for (unsigned again = 0; again < 3; ++again) {  // P6: in turn, nothing is loaded again
        check(program_mode::ilp32, 4, 32);          // P1
        check(program_mode::lp64, 8, 64);           // P2
    }
}

BOOST_AUTO_TEST_CASE(each_stream_has_its_offset_and_size_in_one_table) {
    point::clauses session;
    const auto predicate = exceeds(1);
    const auto of_64 = stores(u64, 64);
    const std::vector<instruction> nothing{{op::finish}};
    const std::uint32_t first = session.add({predicate, of_64, 12}, {{}, nothing, 0});
    const std::uint32_t second = session.add({{}, nothing, 0}, {predicate, of_64, 12});
    const auto is_at = [&](point::clauses::part part, std::uint32_t offset, std::size_t size) {
        BOOST_TEST(part.offset == offset);
        BOOST_TEST(part.size == size);
    };
    is_at(session.stream_of(first, program_mode::lp64).predicate, 0, 4);
    is_at(session.stream_of(first, program_mode::lp64).action, 4, 5);
    is_at(session.stream_of(first, program_mode::ilp32).predicate, 9, 0);
    is_at(session.stream_of(first, program_mode::ilp32).action, 9, 1);
    is_at(session.stream_of(second, program_mode::ilp32).action, 15, 5);
    const point::code action = session.at(session.stream_of(second, program_mode::ilp32).action);
    BOOST_TEST((std::vector<instruction>(action.begin(), action.end()) == of_64));
}

BOOST_AUTO_TEST_CASE(all_clauses_of_a_location_run_and_no_other) {
    point::clauses session;
    const std::vector<instruction> nothing{{op::finish}};
    const auto over_ten = exceeds(10);
    const std::uint32_t a = session.add({{}, nothing, 0}, {{}, nothing, 0});
    const std::uint32_t b = session.add({over_ten, nothing, 0}, {{}, nothing, 0});
    const std::uint32_t c = session.add({{}, nothing, 0}, {{}, nothing, 0});
    const std::array<std::uint32_t, 3> three{c, a, b};
    const std::uint32_t here = session.install(three);
    const std::uint32_t there = session.install({&a, 1});
    const auto ran = fire(session, here, program_mode::lp64, 3);
    BOOST_REQUIRE(ran.size() == 3U);
    BOOST_TEST((ran[0].clause == c && ran[1].clause == a && ran[2].clause == b));
    BOOST_TEST(ran[2].is == clause_result::not_wanted);  // and the others ran all the same
    BOOST_TEST(fire(session, here, program_mode::ilp32, 3)[2].is == clause_result::ran);
    BOOST_TEST(fire(session, there, program_mode::lp64, 3).size() == 1U);
    BOOST_TEST(fire(session, 7, program_mode::lp64, 3).empty());
    const std::uint32_t no_such = 3;
    BOOST_CHECK_EXCEPTION(session.install({&no_such, 1}), std::invalid_argument, [](const auto& e) {
        return e.what() == std::string("there is no clause 3");
    });
}

BOOST_AUTO_TEST_CASE(begin_and_end_run_once_as_64_bit) {
    point::clauses session;
    const auto of_64 = stores(u64, 64);
    const auto of_32 = stores(u32, 32);
    const std::uint32_t one = session.add({{}, of_64, 12}, {{}, of_32, 8});
    test::fake_firing none;
    std::size_t bytes = 0;
    session.run_once(one, none, [&](const clause_result& ran) { bytes = ran.output.size(); });
    BOOST_TEST(bytes == 12U);
}

BOOST_AUTO_TEST_CASE(a_predicate_that_cannot_read_is_neither_true_nor_false) {
    point::clauses session;
    const std::vector<instruction> at_first{
        {op::argument, 0}, {op::load, u32}, {op::is_zero}, {op::finish}};
    const std::vector<instruction> action{
        {op::argument, 0}, {op::load, u32}, {op::store, u32}, {op::finish}};
    const std::uint32_t asks = session.add({at_first, action, 4}, {at_first, action, 4});
    const std::uint32_t takes = session.add({{}, action, 4}, {{}, action, 4});
    const std::array<std::uint32_t, 2> both{asks, takes};
    const auto ran = fire(session, session.install(both), program_mode::ilp32, 0x10);
    BOOST_TEST(ran[0].is == clause_result::unreadable);
    BOOST_TEST(ran[1].is == clause_result::ran);
    BOOST_TEST(ran[1].faults == 1U);
    BOOST_TEST(ran[1].number(0, 4) == 0U);
}

BOOST_AUTO_TEST_CASE(code_that_the_checker_refuses_is_named_and_not_added) {
    point::clauses session;
    const std::vector<instruction> good{{op::finish}};
    const std::vector<instruction> bad{{op::add}, {op::finish}};
    const auto said = [&](const point::clause_code& wide, const point::clause_code& narrow) {
        try {
            static_cast<void>(session.add(wide, narrow));
        } catch (const std::invalid_argument& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    BOOST_TEST(said({{}, good, 0}, {bad, good, 0}) ==
               "the 32-bit predicate, instruction 0: the stack is empty");
    BOOST_TEST(said({{}, bad, 0}, {{}, good, 0}) ==
               "the 64-bit action, instruction 0: the stack is empty");
    BOOST_TEST(said({{}, {}, 0}, {{}, good, 0}) ==
               "the 64-bit action, instruction 0: there is no instruction");
    BOOST_TEST(session.size() == 0U);
}

BOOST_AUTO_TEST_CASE(a_tuple_has_three_fields_at_least_and_each_must_match) {
    BOOST_TEST(
        wants("@@uft:*:libc.so.6:malloc:entry", {"uft", "4711", "libc.so.6", "malloc", "entry"}));
    BOOST_TEST(
        !wants("@@uft:*:libc.so.6:malloc:entry", {"uft", "1", "libc.so.6", "malloc", "exit"}));
    BOOST_TEST(!wants("@@uft:*:libc.so.6:malloc:entry", {"uft", "1", "libc.so.6", "malloc"}));
    BOOST_TEST(wants("@@syscall:4711:open*:exit", {"syscall", "4711", "openat", "exit"}));
    BOOST_TEST(wants("@@uft:*:a.out:\"shop::send(int)\":entry",
                     {"uft", "1", "a.out", "shop::send(int)", "entry"}));
    BOOST_TEST(wants("@@begin", {"begin"}));
    BOOST_TEST(refused("uft:*:a:b:entry") == "0: a trace point begins with @@");
    BOOST_TEST(refused("@@uft:*") == "7: a tuple has at least three fields");
    BOOST_TEST(refused("@@uft::a:b:entry") == "6: an empty field: any is written *");
    BOOST_TEST(refused("@@uft:*:a:") == "10: an empty field: any is written *");
    BOOST_TEST(refused("@@") == "2: an empty field: any is written *");
    BOOST_TEST(refused("@@uft:*:\"a:b") == "8: a quote without an end");
    BOOST_TEST(refused("@@uft:*:\"a\"b:c") == "11: ':' is expected");
    BOOST_TEST(refused("@@a:b:c:d:e:f:g:h:i") == "18: more than eight fields");
    BOOST_TEST(refused("@@begin:*:*") == "2: begin and end have no further fields");
    BOOST_TEST(refused("@@end") == "");
}

BOOST_AUTO_TEST_SUITE_END()
