// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// Events that are described at run time: they read as those of a struct do.

#include <boost/test/unit_test.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <trace_ring/policy/clock/none.hpp>
#include <trace_ring/recorder/runtime_event.hpp>
#include <trace_ring/reduce/trace_file.hpp>

BOOST_AUTO_TEST_SUITE(events_at_run_time)

namespace tr = trace_ring;
using field = tr::runtime_event::field;
using tr::field_form;
using tr::field_type;

namespace {

/// The same event as a struct.
struct declared
    : tr::event<"declared", tr::field<"small", std::uint8_t>, tr::field<"text", std::string_view>,
                tr::field<"number", std::int64_t>, tr::field<"row", std::array<std::uint16_t, 3>>,
                tr::field<"at", tr::address>> {};

struct timeless : tr::policies<tr::clock::none> {};

std::string refused(std::string_view name, const std::vector<field>& fields) {
    try {
        static_cast<void>(tr::runtime_event::make(name, fields));
    } catch (const std::invalid_argument& why) {
        return why.what();
    }
    return "";
}

}  // namespace

BOOST_AUTO_TEST_CASE(records_read_as_those_of_a_struct) {
    const std::vector<field> fields{{"small", field_type::u8},
                                    {"text", field_type::character, field_form::variable},
                                    {"number", field_type::i64},
                                    {"row", field_type::u16, field_form::array, 3},
                                    {"at", field_type::address}};
    auto& made = tr::runtime_event::make("described", fields);
    BOOST_TEST(made.fixed_bytes() == declared::fixed_bytes);
    for (std::size_t i = 0; i < fields.size(); ++i)
        BOOST_TEST(made.offset(i) == declared::fields[i].offset);

    tr::recorder recorder{{.size = 1 << 20}};
    std::vector<std::uint64_t> payload(made.fixed_bytes() / 8 + 1);
    const auto put = [&](std::size_t i, auto value) {
        std::memcpy(reinterpret_cast<std::byte*>(payload.data()) + made.offset(i), &value,
                    sizeof value);
    };
    put(0, std::uint8_t{7});
    put(1, std::uint16_t{5});
    put(2, std::int64_t{-3});
    const std::array<std::uint16_t, 3> row{1, 2, 3};
    put(3, row);
    put(4, std::uint64_t{0x1000});
    std::memcpy(&payload.back(), "north", 5);
    BOOST_TEST(recorder.record<declared>(std::uint8_t{7}, std::string_view("north"),
                                         std::int64_t{-3}, row, tr::address{0x1000}));
    BOOST_TEST(made.record(recorder, payload));
    BOOST_TEST(!made.record(recorder, std::span(payload).first(1)));

    const auto [memory, size] = recorder.bytes();
    const auto trace = tr::reduce::trace_file::from({memory, size});
    std::vector<std::string> shown;
    for (auto cursor = trace.forward(); const auto* item = cursor.next();) {
        const auto& one = std::get<tr::reduce::record_view>(*item);
        std::string all;
        for (std::size_t i = 0; i < one.type().fields.size(); ++i)
            all += one.type().fields[i].name + " ";
        all += std::to_string(one.field("small").u64()) + std::string(one.field("text").text()) +
               std::to_string(one.field("number").i64()) +
               std::to_string(one.field("row").at(2).u64()) + std::to_string(one.field("at").u64());
        shown.push_back(all);
    }
    BOOST_REQUIRE(shown.size() == 2U);
    BOOST_TEST(shown[0] == shown[1]);
    BOOST_TEST(shown[0] == "small text number row at 7north-334096");
}

BOOST_AUTO_TEST_CASE(values_have_names_as_far_as_there_is_room) {
    using named = tr::runtime_event::named_value;
    const std::vector<named> states{{0, "idle"}, {~std::uint64_t{4}, "failed"}, {7, ""}};
    const std::string longest(tr::most_names_bytes, 'x');
    const std::vector<named> too_many{{1, longest}};
    const std::vector<named> late{{2, "two"}};
    const std::vector<field> fields{{"state", field_type::i64, field_form::scalar, 1, states},
                                    {"long", field_type::u8, field_form::scalar, 1, too_many},
                                    {"row", field_type::i32, field_form::array, 2, states},
                                    {"late", field_type::u16, field_form::scalar, 1, late}};
    auto& made = tr::runtime_event::make("with names", fields);
    tr::recorder recorder{{.size = 1 << 20}};
    std::vector<std::uint64_t> payload(made.fixed_bytes() / 8);
    const auto put = [&](std::size_t i, auto value) {
        std::memcpy(reinterpret_cast<std::byte*>(payload.data()) + made.offset(i), &value,
                    sizeof value);
    };
    put(0, std::int64_t{-5});
    put(1, std::uint8_t{1});
    put(2, std::array<std::int32_t, 2>{-5, 7});
    put(3, std::uint16_t{2});
    BOOST_TEST(made.record(recorder, payload));
    const auto [memory, size] = recorder.bytes();
    const auto trace = tr::reduce::trace_file::from({memory, size});
    auto cursor = trace.forward();
    const auto* const item = cursor.next();
    BOOST_REQUIRE(item != nullptr);
    const auto& one = std::get<tr::reduce::record_view>(*item);
    BOOST_TEST(one.field("state").name() == "failed");
    BOOST_TEST(!one.field("long").may_have_name());
    BOOST_TEST(one.field("row").at(0).name() == "failed");
    BOOST_TEST(one.field("row").at(1).name() == "");
    BOOST_TEST(one.field("late").name() == "two");
    BOOST_TEST(refused("x", {{"f", field_type::f64, field_form::scalar, 1, states}}) ==
               "event 'x': field 'f' has names of values, and is no whole number");
}

BOOST_AUTO_TEST_CASE(a_gate_counts_for_it_and_each_kind_of_recorder_takes_it) {
    const std::vector<field> fields{{"n", field_type::u64}};
    auto& made = tr::runtime_event::make("gated", fields);
    tr::basic_recorder<timeless> recorder{{.size = 1 << 20}};
    const std::uint64_t payload[] = {1};
    BOOST_TEST(made.record(recorder, payload));
    BOOST_TEST(recorder.enable("gated", false) == 1U);
    BOOST_TEST(!made.record(recorder, payload));
    BOOST_TEST(recorder.enable("gated", true) == 1U);
    BOOST_TEST(made.record(recorder, payload));
    const auto [memory, size] = recorder.bytes();
    const auto trace = tr::reduce::trace_file::from({memory, size});
    std::uint64_t there = 0;
    for (auto cursor = trace.forward(); cursor.next() != nullptr;) ++there;
    BOOST_TEST(there == 2U);
}

BOOST_AUTO_TEST_CASE(many_records_are_all_there_and_one_that_is_too_long_is_counted) {
    const std::vector<field> fields{{"n", field_type::u64},
                                    {"data", field_type::u8, field_form::variable}};
    auto& made = tr::runtime_event::make("many", fields);
    tr::recorder recorder{{.size = 4 << 20}};
    std::vector<std::uint64_t> payload(2 + 16);
    for (std::uint64_t n = 0; n < 1000; ++n) {
        payload[0] = n;
        payload[1] = 128 | (n == 7 ? std::uint64_t{tr::variable_cut_bit} : 0);
        BOOST_REQUIRE(made.record(recorder, payload));
    }
    payload.resize(4000);
    BOOST_TEST(!made.record(recorder, payload));
    payload.resize(100'000);
    BOOST_TEST(!made.record(recorder, payload));
    const auto [memory, size] = recorder.bytes();
    const auto trace = tr::reduce::trace_file::from({memory, size});
    std::uint64_t expected = 0;
    for (auto cursor = trace.forward(); const auto* item = cursor.next();) {
        if (const auto* const one = std::get_if<tr::reduce::record_view>(item)) {
            BOOST_REQUIRE(one->field("n").u64() == expected++);
            BOOST_REQUIRE(one->field("data").size() == 128U);
            BOOST_REQUIRE(one->field("data").cut() == (expected == 8));
            BOOST_REQUIRE(one->cut() == (expected == 8));
        }
    }
    BOOST_TEST(expected == 1000U);
}

BOOST_AUTO_TEST_CASE(what_others_lost_is_counted_where_it_was_lost) {
    const std::vector<field> fields{{"n", field_type::u64}};
    auto& made = tr::runtime_event::make("told", fields);
    tr::recorder recorder{{.size = 1 << 20, .sub_buffer_bytes = 512}};
    tr::runtime_event::lose(recorder, 5);  // before there is a lane
    std::uint64_t payload[] = {0};
    for (; payload[0] < 100; ++payload[0]) {
        if (payload[0] == 50) tr::runtime_event::lose(recorder, 1000);
        BOOST_TEST(made.record(recorder, payload));
    }
    const auto [memory, size] = recorder.bytes();
    const auto trace = tr::reduce::trace_file::from({memory, size});
    std::uint64_t before = 0;
    std::uint64_t without_lane = 0;
    std::uint64_t lost = 0;
    for (auto cursor = trace.forward(); const auto* item = cursor.next();) {
        const auto* const loss = std::get_if<tr::reduce::loss_item>(item);
        if (loss == nullptr) {
            before += lost == 0 ? 1 : 0;
        } else if (loss->lane == nullptr) {
            without_lane += loss->count;
        } else {
            BOOST_TEST((loss->cause == tr::loss_cause::refused));
            lost += loss->count;
        }
    }
    BOOST_TEST(without_lane == 5U);
    BOOST_TEST(lost == 1000U);
    BOOST_TEST(before >= 50U);  // not before it, and not later than with the next sub-buffer
    BOOST_TEST(before < 50U + 32U);
}

BOOST_AUTO_TEST_CASE(what_is_no_event_is_refused) {
    const field number{"n", field_type::u64};
    BOOST_TEST(refused("", {number}) == "event '': its name is 1 to 1,000 bytes long");
    BOOST_TEST(refused("e", {{"", field_type::u64}}) ==
               "event 'e': a field's name is 1 to 1,000 bytes long");
    BOOST_TEST(refused("e", {number, number}) == "event 'e': field 'n' is there twice");
    BOOST_TEST(refused("e", {{"n", static_cast<field_type>(99)}}) ==
               "event 'e': field 'n' has no type");
    BOOST_TEST(refused("e", {{"n", field_type::u64, field_form::array, 0}}) ==
               "event 'e': field 'n' has no elements");
    BOOST_TEST(refused("e", {{"n", field_type::u64, field_form::array, 5000}}) ==
               "event 'e': its fields do not fit into a record");
    BOOST_TEST(refused("e", std::vector<field>(1001, number)) ==
               "event 'e': more than 1,000 fields");
    BOOST_TEST(refused("e", {}) == "");
}

BOOST_AUTO_TEST_SUITE_END()
