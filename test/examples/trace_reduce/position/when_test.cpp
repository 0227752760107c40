// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Places in a trace as people write them, and what they mean in one.

#include <time.h>

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <reduce/file_builder.hpp>
#include <trace_reduce/position/range_finder.hpp>
#include <trace_reduce/position/when.hpp>
#include <trace_reduce/position/when_text.hpp>
#include <trace_ring/reduce/trace_file.hpp>

BOOST_AUTO_TEST_SUITE(places_in_a_trace)

using namespace trace_ring_test;
namespace reduce = trace_ring::reduce;
using trace_reduce::parse_when;
using trace_reduce::when;

namespace {

constexpr std::int64_t second = 1'000'000'000;
/// 2023-11-14T22:13:20Z
constexpr std::int64_t set_up = 1'700'000'000 * second;

/// Local time is the time of `zone` while this lives.
class local_zone {
public:
    explicit local_zone(const char* zone) {
        if (const char* const now = std::getenv("TZ")) before_ = now;
        ::setenv("TZ", zone, 1);
        ::tzset();
    }
    local_zone(const local_zone&) = delete;
    ~local_zone() {
        before_ ? ::setenv("TZ", before_->c_str(), 1) : ::unsetenv("TZ");
        ::tzset();
    }

private:
    std::optional<std::string> before_;
};

/// A record a second, from 10 s after the trace was set up to 109 s, by two lanes in turn; a tick
/// is 10 ns.
file_builder hundred_records() {
    file_builder b;
    b.put(offsetof(trace_ring::layout::file_header, ticks_per_second), 100'000'000, 8);
    b.clock_reading(1000, 5 * second, set_up);
    b.clock_reading(1000 + 200 * 100'000'000ULL, 205 * second, set_up + 200 * second);
    const auto process = b.process(1200);
    const auto& event = b.event({1, "tick", {{"n"}}});
    const std::uint32_t lanes[] = {b.lane(process, 11), b.lane(process, 12)};
    for (std::uint64_t i = 0; i < 100; ++i) {
        const std::uint64_t time = 1000 + (10 + i) * 100'000'000;
        const auto lane = lanes[i % 2];
        if (i < 2 || !b.record(lane, time, event, {i})) {
            b.open(lane, time);
            b.record(lane, time, event, {i});
        }
    }
    return b;
}

/// The numbers of the records in [from, to); empty if that is unknown.
std::optional<std::vector<std::uint64_t>> between(const reduce::trace_file& file, const char* from,
                                                  const char* to) {
    reduce::filter what;
    const auto place = [](const char* text) {
        if (text == nullptr) return std::optional<when>();
        const auto parsed = parse_when(text);
        BOOST_TEST_REQUIRE(parsed.has_value(), text);
        return parsed;
    };
    if (!trace_reduce::range_finder(file).limit(what, place(from), place(to))) return std::nullopt;
    std::vector<std::uint64_t> out;
    for (auto cursor = file.forward(what); const auto* item = cursor.next();) {
        if (const auto* r = std::get_if<reduce::record_view>(item))
            out.push_back(r->field("n").u64());
    }
    std::vector<std::uint64_t> back;
    for (auto cursor = file.backward(what); const auto* item = cursor.next();) {
        if (const auto* r = std::get_if<reduce::record_view>(item))
            back.insert(back.begin(), r->field("n").u64());
    }
    BOOST_TEST(back == out, boost::test_tools::per_element());
    return out;
}
std::vector<std::uint64_t> numbers(std::uint64_t from, std::uint64_t to) {
    std::vector<std::uint64_t> out;
    for (; from < to; ++from) out.push_back(from);
    return out;
}

BOOST_AUTO_TEST_CASE(every_form_is_understood) {
    using form = when::form;
    const auto is = [](const char* text, const when& expected) {
        const auto found = parse_when(text);
        BOOST_TEST_CONTEXT(text) {
            BOOST_TEST_REQUIRE(found.has_value());
            BOOST_TEST((*found == expected));
        }
    };
    constexpr std::int64_t hour = 3600 * second;
    is("1970-01-01", {form::date, 0});
    is("2024-02-29", {form::date, 19'782});
    is("2024-02-29T23:59", {form::date, 19'782, 24 * hour - 60 * second});
    is("2024-02-29 23:59:59.000000001Z", {form::date, 19'782, 24 * hour - second + 1, 0});
    is("2024-02-29t01:00:00,5-0330", {form::date, 19'782, hour + second / 2, -12'600});
    is("2024-02-29T01:00+05", {form::date, 19'782, hour, 18'000});
    is("13:00", {form::time_of_day, 0, 13 * hour});
    is("13:00:03.25", {form::time_of_day, 0, 13 * hour + 3'250'000'000});
    is("13:00z", {form::time_of_day, 0, 13 * hour, 0});
    is("13:00+02:00", {form::time_of_day, 0, 13 * hour, 7200});
    is("+1.5s", {form::since_begin, 0, 1'500'000'000});
    is("+200ms", {form::since_begin, 0, 200'000'000});
    is("+0.000000001s", {form::since_begin, 0, 1});
    is("+1.5us", {form::since_begin, 0, 1500});
    is("+3\xC2\xB5s", {form::since_begin, 0, 3000});
    is("+17ns", {form::since_begin, 0, 17});
    is("+1h30m", {form::since_begin, 0, 5400 * second});
    is("+1min", {form::since_begin, 0, 60 * second});
    is("+0.5d", {form::since_begin, 0, 12 * hour});
    is("-2s", {form::before_end, 0, 2 * second});
    is("-0s", {form::before_end, 0, 0});
    is("25%", {form::per_cent, 0, 0, {}, 25'000'000'000});
    is("0.000000001%", {form::per_cent, 0, 0, {}, 1});
    is("100%", {form::per_cent, 0, 0, {}, when::whole});
    is("#1500", {form::record, 0, 0, {}, 0, 0, 1500});
    is("#0", {form::record, 0, 0, {}, 0, 0, 0});
    is("3:1500", {form::record, 0, 0, {}, 0, 3, 1500});
    is("#3:1500", {form::record, 0, 0, {}, 0, 3, 1500});
    // What looks like a time of day is one, or nothing, without a #.
    is("12:34", {form::time_of_day, 0, 12 * hour + 34 * 60 * second});
    is("#12:34", {form::record, 0, 0, {}, 0, 12, 34});
    is("12:164", {form::record, 0, 0, {}, 0, 12, 164});
    is("3:00", {form::record, 0, 0, {}, 0, 3, 0});
    is("#18446744073709551615", {form::record, 0, 0, {}, 0, 0, ~std::uint64_t{0}});
}

BOOST_AUTO_TEST_CASE(nothing_else_is) {
    for (const char* text : {"",
                             " ",
                             "x",
                             "-",
                             "+",
                             "#",
                             "%",
                             ":",
                             "1",
                             "17",
                             "+1",
                             "+s",
                             "+1.s",
                             "+.5s",
                             "+1.5",
                             "+1x",
                             "+1s ",
                             "+-1s",
                             "--2s",
                             "+0.0000000001s",
                             "+99999999999999999999s",
                             "+9223372037s9223372037s",
                             "+200000d",
                             "101%",
                             "100.000000001%",
                             "-5%",
                             "25 %",
                             "2023-02-29",
                             "2023-13-01",
                             "2023-00-01",
                             "2023-01-00",
                             "1969-12-31",
                             "2262-01-01",
                             "2023-1-1",
                             "2023-01-01T",
                             "2023-01-01T1:00",
                             "2023-01-01T24:00",
                             "2023-01-01T23:60",
                             "2023-01-01T23:59:60",
                             "2023-01-01T23:59:59.",
                             "2023-01-01T23:59:59.1234567890",
                             "2023-01-01T23:59:59+24",
                             "2023-01-01T23:59:59+1",
                             "2023-01-01T23:59:59+01:",
                             "2023-01-01T23:59:59+0160",
                             "2023-01-01X00:00",
                             "2023-01-01Z",
                             "13:00:",
                             "13:00:0",
                             "13:00 Z",
                             "0:5",
                             "12:64",
                             "24:00",
                             "3:",
                             ":5",
                             "3:5:7",
                             "#3:",
                             "##3",
                             "# 3",
                             "#-1",
                             "4294967296:1",
                             "#18446744073709551616",
                             "1:18446744073709551616"}) {
        BOOST_TEST(!parse_when(text).has_value(), text);
    }
    BOOST_TEST(!parse_when(std::string_view("13:00\0", 6)).has_value());
}

BOOST_AUTO_TEST_CASE(dates_and_times_of_day_are_found) {
    const auto b = hundred_records();
    const auto file = reduce::trace_file::from(b.bytes());
    // The first record was written at 22:13:30 in Greenwich.
    BOOST_TEST(*between(file, "2023-11-14T22:13:33Z", "2023-11-14T22:13:36Z") == numbers(3, 6));
    BOOST_TEST(*between(file, "2023-11-14T22:13:32.5Z", "2023-11-14T22:13:35.000000001Z") ==
               numbers(3, 6));
    BOOST_TEST(*between(file, "2023-11-15T00:13:33+02:00", "2023-11-14T17:13:36-05") ==
               numbers(3, 6));
    BOOST_TEST(*between(file, "22:13:33Z", "22:13:36Z") == numbers(3, 6));
    // Its first day in New Zealand is the day after.
    BOOST_TEST(*between(file, "11:13:33+13:00", "11:13:36+13:00") == numbers(3, 6));
    const local_zone here("NZST-12NZDT,M9.5.0,M4.1.0/3");
    BOOST_TEST(*between(file, "11:13:33", "11:13:36") == numbers(3, 6));
    BOOST_TEST(*between(file, "2023-11-15 11:13:33", "2023-11-15T11:13:36") == numbers(3, 6));
    BOOST_TEST(*between(file, "2023-11-15", "2023-11-16") == numbers(0, 100));
    BOOST_TEST(*between(file, "2023-11-14", "2023-11-15") == numbers(0, 0));
    BOOST_TEST(*between(file, "2037-01-01", nullptr) == numbers(0, 0));
    // Local dates are the system's: where its time_t has 32 bits, there is none after 2038, which
    // is reported, and no other one is used.
    const auto late = between(file, "2200-01-01", nullptr);
    BOOST_REQUIRE(late.has_value() == (sizeof(time_t) == 8));
    if (late) BOOST_TEST(*late == numbers(0, 0));
}

BOOST_AUTO_TEST_CASE(times_from_both_ends_are_found) {
    const auto b = hundred_records();
    const auto file = reduce::trace_file::from(b.bytes());
    BOOST_TEST(*between(file, "+15s", "+17s") == numbers(5, 7));
    BOOST_TEST(*between(file, "+0s", "+10s") == numbers(0, 0));
    BOOST_TEST(*between(file, "+0s", "+10000000010ns") == numbers(0, 1));
    BOOST_TEST(*between(file, "+1000000h", nullptr) == numbers(0, 0));
    BOOST_TEST(*between(file, "-2s", nullptr) == numbers(97, 100));
    BOOST_TEST(*between(file, "-2s", "-0s") == numbers(97, 100));
    BOOST_TEST(*between(file, nullptr, "-2s") == numbers(0, 97));
    BOOST_TEST(*between(file, "-1000000h", nullptr) == numbers(0, 100));
    BOOST_TEST(*between(file, "+50s", "+40s") == numbers(0, 0));
}

BOOST_AUTO_TEST_CASE(shares_divide_a_trace) {
    const auto b = hundred_records();
    const auto file = reduce::trace_file::from(b.bytes());
    BOOST_TEST(*between(file, "0%", "100%") == numbers(0, 100));
    BOOST_TEST(*between(file, "0%", "50%") == numbers(0, 50));
    BOOST_TEST(*between(file, "50%", "100%") == numbers(50, 100));
    BOOST_TEST(*between(file, "100%", nullptr) == numbers(0, 0));
    BOOST_TEST(*between(file, nullptr, "0%") == numbers(0, 0));
    BOOST_TEST(*between(file, "33.3%", "33.4%") == numbers(33, 34));
}

BOOST_AUTO_TEST_CASE(positions_are_found) {
    const auto b = hundred_records();
    const auto file = reduce::trace_file::from(b.bytes());
    // Each lane has every second record.
    BOOST_TEST(*between(file, "#10", "#12") == numbers(20, 24));
    BOOST_TEST(*between(file, "1:10", "1:12") == numbers(20, 24));
    BOOST_TEST(*between(file, "2:10", "2:12") == numbers(21, 25));
    BOOST_TEST(*between(file, "2:10", "+35s") == numbers(21, 25));
    BOOST_TEST(*between(file, "#49", nullptr) == numbers(98, 100));
    BOOST_TEST(*between(file, "#50", nullptr) == numbers(0, 0));
    BOOST_TEST(*between(file, "1:50", nullptr) == numbers(0, 0));
    BOOST_TEST(*between(file, "7:0", nullptr) == numbers(0, 0));
    BOOST_TEST(*between(file, nullptr, "#1") == numbers(0, 2));
    BOOST_TEST(*between(file, nullptr, "#0") == numbers(0, 0));
}

BOOST_AUTO_TEST_CASE(without_readings_of_the_clock_there_are_no_dates) {
    file_builder b;
    const auto& event = b.event({1, "tick", {{"n"}}});
    const auto lane = b.lane(b.process(1), 11);
    b.open(lane, 100);
    for (std::uint64_t i = 0; i < 10; ++i) b.record(lane, 100 + i * 10, event, {i});
    const auto file = reduce::trace_file::from(b.bytes());
    for (const char* text : {"2023-11-14", "13:00", "+1s", "-1s"}) {
        BOOST_TEST(!between(file, text, nullptr).has_value());
        BOOST_TEST(!between(file, nullptr, text).has_value());
    }
    BOOST_TEST(*between(file, "50%", "#8") == numbers(5, 8));
}

BOOST_AUTO_TEST_CASE(an_empty_trace_has_no_range) {
    file_builder b;
    b.clock_reading(0, 0, set_up);
    const auto file = reduce::trace_file::from(b.bytes());
    BOOST_TEST(trace_reduce::range_finder(file).whole().empty);
    for (const char* text : {"2023-11-14", "13:00", "+1s", "-1s", "50%", "#3", "1:1"}) {
        BOOST_TEST(*between(file, text, text) == numbers(0, 0));
    }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
