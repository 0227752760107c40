// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Reading sound traces: the contents of the tables, order, filters, times, numbers, traces that
/// are being written. The listings in golden/ show records and losses.

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <reduce/file_builder.hpp>
#include <reduce/named_values.hpp>
#include <reduce/read_all.hpp>
#include <reduce/scratch_file.hpp>
#include <trace_ring/exporter/text.hpp>
#include <trace_ring/reduce/trace_file.hpp>

namespace trace_files {

using namespace trace_ring_test;
namespace reduce = trace_ring::reduce;
using trace_ring::loss_cause;

namespace {

struct counted {
    std::vector<std::string> lines;  // of records and losses, as text
    std::uint64_t records = 0;
    std::map<loss_cause, std::uint64_t> lost;
};

counted count(const reduce::trace_file& file, reduce::cursor& cursor) {
    counted out;
    trace_ring::exporter::text_writer writer(file.time(),
                                             {.time = trace_ring::exporter::time_format::raw});
    while (const auto* item = cursor.next()) {
        std::string& line = out.lines.emplace_back();
        writer.append(line, *item);
        if (std::holds_alternative<reduce::record_view>(*item)) ++out.records;
        if (const auto* loss = std::get_if<reduce::loss_item>(item)) {
            out.lost[loss->cause] += loss->count;
        }
    }
    return out;
}
counted count(const reduce::trace_file& file, reduce::cursor&& cursor) {
    return count(file, cursor);
}

/// Lanes that write `records` each, in turn, into separate sub-buffers.
struct busy {
    file_builder file;
    const event_spec* tick;
    std::vector<std::uint32_t> lanes;

    explicit busy(unsigned lane_count, unsigned records, std::uint64_t sub_buffers = 64)
        : file({.sub_buffers = sub_buffers, .lanes = lane_count + 1}) {
        const auto process = file.process(100, "busy", layout::presence::live);
        tick = &file.event({1, "tick", {{"n"}}});
        file.event({2, "tock", {{"n"}}});
        for (unsigned i = 0; i < lane_count; ++i) lanes.push_back(file.lane(process, 1000 + i));
        for (unsigned n = 0; n < records; ++n) {
            for (unsigned i = 0; i < lane_count; ++i) write(lanes[i], 1000 + n * 100 + i, n);
        }
    }
    void write(std::uint32_t lane, std::uint64_t time, std::uint64_t n) {
        const auto& event = file.events()[n % 2];
        if (!opened.count(lane)) file.open(lane, time);
        opened.insert(lane);
        if (!file.record(lane, time, event, {n})) {
            file.open(lane, time);
            file.record(lane, time, event, {n});
        }
    }
    [[nodiscard]] reduce::trace_file open() const { return reduce::trace_file::from(file.bytes()); }
    std::set<std::uint32_t> opened;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(trace_file)

BOOST_AUTO_TEST_CASE(the_tables_tell_who_wrote_what) {
    file_builder b;
    const auto process = b.process(1200, "orders", layout::presence::live);
    b.event({7,
             "order.sent",
             {{"id"}, {"who", field_type::character, field_form::variable}},
             event_kind::counter,
             process,
             2});
    b.lane(process, 1234, "sixteen letters.", 2);
    b.lane_counts(1, 1, 2, 3, 4);
    auto file = reduce::trace_file::from(b.bytes(), "mine");
    BOOST_TEST(file.name() == "mine");
    BOOST_REQUIRE(file.event_types().size() == 1U);
    const auto& type = file.event_types()[0];
    BOOST_TEST(type.name == "order.sent");
    BOOST_TEST(type.id == 7U);
    BOOST_TEST(type.root == process);
    BOOST_TEST((type.kind == event_kind::counter));
    BOOST_TEST(type.total.value() == 1U);
    BOOST_TEST(type.find("who") == 1U);
    BOOST_TEST(type.find("nobody") == reduce::event_type::npos);
    BOOST_TEST(type.fields[1].variable());
    BOOST_REQUIRE(file.lanes().size() == 1U);
    const auto& lane = file.lanes()[0];
    BOOST_TEST(lane.name == "sixteen letters.");
    BOOST_TEST(lane.thread == 1234U);
    BOOST_TEST(lane.pid == 1200U);
    BOOST_TEST(lane.depth == 2U);
    BOOST_TEST(lane.lost.total() == 10U);
    BOOST_TEST(file.processes()[process].name == "orders");
    BOOST_TEST(file.live());  // memory has no locks: what the table says
    BOOST_TEST(file.damages().empty());
}

BOOST_AUTO_TEST_CASE(a_lane_entry_on_its_way_to_another_lane_is_left_out) {
    file_builder b;
    const auto& tick = b.event({1, "tick", {}});
    const auto lane = b.lane(b.process(1), 100, "old");
    b.open(lane, 5);
    b.record(lane, 6, tick, {});
    b.close(lane, 7);
    const auto state = b.lane_at(lane) + offsetof(layout::lane_entry, state);
    b.put(state, static_cast<std::uint32_t>(layout::presence::preparing), 4);
    // Some of its words are one lane's, some the other's; the number may be either's already.
    b.lane_end(lane, 1000, 99);
    const auto moved = reduce::trace_file::from(b.bytes());
    BOOST_TEST(count(moved, moved.forward()).records == 1U);
    BOOST_TEST(count(moved, moved.forward()).lost.empty());
    b.put(state, static_cast<std::uint32_t>(layout::presence::departed), 4);
    const auto there = reduce::trace_file::from(b.bytes());
    BOOST_TEST(count(there, there.forward()).records == 1U);
    BOOST_TEST(!count(there, there.forward()).lost.empty());
}

BOOST_AUTO_TEST_CASE(fields_are_told_by_name_and_number) {
    file_builder b;
    const auto lane = b.lane(b.process(1), 1);
    const auto& event = b.event({1,
                                 "e",
                                 {{"n"},
                                  {"f", field_type::f32},
                                  {"text", field_type::character, field_form::variable},
                                  {"more", field_type::u16, field_form::variable},
                                  {"small", field_type::i8}}});
    b.open(lane, 0);
    b.record(lane, 1, event,
             {~std::uint64_t{0}, 0.25F, "nine char", std::vector<std::uint64_t>{5, 6, 65535}, -1});
    auto file = reduce::trace_file::from(b.bytes());
    auto cursor = file.forward();
    const auto* item = cursor.next();
    BOOST_REQUIRE(item != nullptr);
    const auto& record = std::get<reduce::record_view>(*item);
    BOOST_TEST(record.name() == "e");
    BOOST_TEST(record.field("n").u64() == ~std::uint64_t{0});
    BOOST_TEST(record.field(0).i64() == -1);
    BOOST_TEST(record.field("f").f64() == 0.25);
    BOOST_TEST(record.field("text").text() == "nine char");
    BOOST_TEST(record.field("text").size() == 9U);
    const auto more = record.field("more");
    BOOST_TEST(more.size() == 3U);
    BOOST_TEST(more.at(2).u64() == 65535U);
    BOOST_TEST(!more.at(3));
    BOOST_TEST(record.field("small").i64() == -1);
    BOOST_TEST(record.field("small").f64() == -1.0);
    BOOST_TEST(!record.field("nothing"));
    BOOST_TEST(record.field(5).u64() == 0U);
    BOOST_TEST(cursor.next() == nullptr);
    BOOST_TEST(cursor.next() == nullptr);
}

BOOST_AUTO_TEST_CASE(numbers_that_do_not_fit_become_the_nearest_that_do) {
    file_builder b;
    const auto lane = b.lane(b.process(1), 1);
    const auto& event = b.event({1, "e", {{"x", field_type::f64}}});
    b.open(lane, 0);
    for (const double x : {-1.0, 1e300, -1e300, 0.0 / 0.0 * 0, 3.9}) b.record(lane, 1, event, {x});
    auto file = reduce::trace_file::from(b.bytes());
    std::vector<std::uint64_t> u;
    std::vector<std::int64_t> i;
    for (auto cursor = file.forward(); const auto* item = cursor.next();) {
        const auto x = std::get<reduce::record_view>(*item).field(0);
        u.push_back(x.u64());
        i.push_back(x.i64());
    }
    const std::vector<std::uint64_t> unsigned_ones{0, ~std::uint64_t{0}, 0, 0, 3};
    const std::vector<std::int64_t> signed_ones{-1, INT64_MAX, INT64_MIN, 0, 3};
    BOOST_TEST(u == unsigned_ones, boost::test_tools::per_element());
    BOOST_TEST(i == signed_ones, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(many_lanes_are_merged_by_time_and_backward_is_forward_reversed) {
    const busy b(40, 100, 512);
    const auto file = b.open();
    auto forward = count(file, file.forward());
    auto backward = count(file, file.backward());
    BOOST_TEST(forward.records == 4000U);
    std::uint64_t last = 0;
    for (auto cursor = file.forward(); const auto* item = cursor.next();) {
        const auto& record = std::get<reduce::record_view>(*item);
        BOOST_TEST(record.time() > last);
        last = record.time();
    }
    std::reverse(backward.lines.begin(), backward.lines.end());
    BOOST_TEST(forward.lines == backward.lines, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(records_of_one_time_come_by_their_lanes_numbers_and_backward_in_reverse) {
    file_builder b({.sub_buffers = 64, .lanes = 8});
    const auto process = b.process(1);
    const auto& plain = b.event({1, "plain", {{"n"}}});
    std::vector<std::uint32_t> lanes;
    for (std::uint32_t i = 0; i < 7; ++i) lanes.push_back(b.lane(process, 10 + i));
    std::mt19937_64 random(5);
    // In the file they come in any order, and so they do at each time.
    std::shuffle(lanes.begin(), lanes.end(), random);
    for (const auto lane : lanes) b.open(lane, 100);
    std::vector<std::array<std::uint64_t, 3>> expected;  // time, lane, and number in the lane
    std::map<std::uint32_t, std::uint64_t> written;
    for (std::uint64_t time = 1000; time < 1060; ++time) {
        std::shuffle(lanes.begin(), lanes.end(), random);
        for (const auto lane : lanes) {
            for (std::uint64_t more = random() % 4; more != 0; --more) {
                const std::uint64_t n = written[lane]++;
                if (!b.record(lane, time, plain, {n})) {
                    b.open(lane, time);
                    BOOST_REQUIRE(b.record(lane, time, plain, {n}));
                }
                expected.push_back({time, lane, n});
            }
        }
    }
    std::sort(expected.begin(), expected.end());
    const auto file = reduce::trace_file::from(b.bytes());
    const auto read = [](reduce::cursor cursor, bool in_rows) {
        std::vector<std::array<std::uint64_t, 3>> out;
        const auto add = [&out](const reduce::record_view& record) {
            std::uint64_t n = 0;
            record.for_each_field([&n](const auto&, const auto& value) { n = value.u64(); });
            out.push_back({record.time(), record.lane().number, n});
        };
        while (const auto* item = cursor.next()) {
            add(std::get<reduce::record_view>(*item));
            if (!in_rows) continue;
            for (const auto& record : cursor.records()) add(record);
        }
        return out;
    };
    for (const bool in_rows : {false, true}) {
        BOOST_TEST((read(file.forward(), in_rows) == expected));
        auto backward = read(file.backward(), in_rows);
        std::reverse(backward.begin(), backward.end());
        BOOST_TEST((backward == expected));
    }
}

/// Lanes that take turns of any length, with records of few kinds: also with texts, one of which is
/// longer than its record, and with an event that the dictionary lacks.
file_builder in_turns() {
    file_builder b({.sub_buffers = 64, .lanes = 4});
    const auto process = b.process(1);
    const auto& plain = b.event({1, "plain", {{"n"}}});
    const auto& text = b.event({2, "text", {{"t", field_type::character, field_form::variable}}});
    std::vector<std::uint32_t> lanes;
    for (std::uint32_t i = 0; i < 3; ++i) lanes.push_back(b.lane(process, 10 + i));
    for (const auto lane : lanes) b.open(lane, 100);
    std::uint64_t time = 1000;
    for (std::uint64_t n = 0; n < 400; ++n) {
        const auto lane = lanes[static_cast<std::size_t>(n * n / 300 % 3)];
        time += n % 3;  // so that some are at the same time
        const auto put = [&] {
            if (n / 40 % 3 != 1) return b.record(lane, time, plain, {n});
            if (n % 10 == 7) return b.raw_record(lane, time, 2, {500});
            if (n % 10 == 9) return b.raw_record(lane, time, 7, {n});
            return b.record(lane, time, text, {"hello"});
        };
        if (!put()) {
            b.open(lane, time);
            put();
        }
    }
    return b;
}

BOOST_AUTO_TEST_CASE(records_in_a_row_are_what_next_would_have_given) {
    const auto b = in_turns();
    const auto file = reduce::trace_file::from(b.bytes());
    const auto told = [](const reduce::record_view& record) {
        std::string out = std::to_string(record.time()) + ' ' + std::to_string(record.position()) +
                          ' ' + std::to_string(record.lane().number) + ' ' +
                          std::to_string(record.offset()) + ' ' + std::string(record.name()) + ' ' +
                          std::string(record.fault()) + ' ' +
                          std::to_string(record.payload().size());
        record.for_each_field([&](const auto&, const reduce::field_value& value) {
            out += ' ' + std::to_string(value.u64()) + std::string(value.text());
        });
        return out;
    };
    for (const bool by_lane : {false, true}) {
        const auto order = by_lane ? reduce::merging::by_lane : reduce::merging::by_time;
        for (const bool forward : {true, false}) {
            reduce::filter some;
            some.from = 1100;
            some.to = 1300;
            for (const auto& what : {reduce::filter{}, reduce::filter{.events = {"pl*"}}, some}) {
                const auto open = [&] {
                    return forward ? file.forward(what, order) : file.backward(what, order);
                };
                std::vector<std::string> one_by_one;
                for (auto cursor = open(); const auto* item = cursor.next();) {
                    one_by_one.push_back(told(std::get<reduce::record_view>(*item)));
                }
                BOOST_TEST(one_by_one.size() > 100U);
                std::vector<std::string> in_rows;
                std::size_t rows = 0;
                for (auto cursor = open(); const auto* item = cursor.next();) {
                    in_rows.push_back(told(std::get<reduce::record_view>(*item)));
                    const auto row = cursor.records();
                    std::size_t count = 0;
                    std::string last;
                    for (const auto& record : row) {
                        last = told(record);
                        in_rows.push_back(last);
                        BOOST_TEST((count++ != 0 || told(row.front()) == last));
                    }
                    BOOST_TEST(count == row.size());
                    BOOST_TEST(row.empty() == (count == 0));
                    if (!row.empty()) BOOST_TEST(told(row.back()) == last);
                    rows += row.empty() ? 0 : 1;
                    BOOST_TEST(cursor.records().empty());  // they were given
                }
                BOOST_TEST(in_rows == one_by_one, boost::test_tools::per_element());
                BOOST_TEST(rows > 10U);
                std::vector<std::string> visited;
                open().for_each([&]<class T>(const T& item) {
                    if constexpr (std::is_same_v<T, reduce::record_view>) {
                        visited.push_back(told(item));
                    }
                });
                BOOST_TEST(visited == one_by_one, boost::test_tools::per_element());
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(fields_of_every_type_are_read_alike_one_by_one_and_by_name) {
    file_builder b;
    const auto process = b.process(1);
    const auto& event = b.event({1,
                                 "all",
                                 {{"a", field_type::u8},
                                  {"b", field_type::i16},
                                  {"c", field_type::f32},
                                  {"d", field_type::boolean},
                                  {"e", field_type::u32, field_form::array, 3},
                                  {"f", field_type::f64},
                                  {"g", field_type::address},
                                  {"h", field_type::character, field_form::variable},
                                  {"i", field_type::u64}}});
    const auto lane = b.lane(process, 1);
    b.open(lane, 0);
    b.record(lane, 1, event,
             {200, static_cast<int>(std::uint16_t(-5)), -1.5F, 1,
              std::vector<std::uint64_t>{7, 8, 9}, 1e300, 0x1234, "text", 77});
    const auto file = reduce::trace_file::from(b.bytes());
    auto cursor = file.forward();
    const auto& record = std::get<reduce::record_view>(*cursor.next());
    BOOST_TEST(record.field(0).u64() == 200U);
    BOOST_TEST(record.field(1).i64() == -5);
    BOOST_TEST(record.field(1).u64() == static_cast<std::uint64_t>(-5));
    BOOST_TEST(record.field(2).f64() == -1.5);
    BOOST_TEST(record.field(2).u64() == 0U);
    BOOST_TEST(record.field(3).boolean());
    BOOST_TEST(record.field(4).size() == 3U);
    BOOST_TEST(record.field(4).u64() == 7U);
    BOOST_TEST(record.field(4).at(2).u64() == 9U);
    BOOST_TEST(!record.field(4).at(3));
    BOOST_TEST(record.field(5).u64() == ~std::uint64_t{0});
    BOOST_TEST(record.field(6).u64() == 0x1234U);
    BOOST_TEST(record.field(7).text() == "text");
    BOOST_TEST(record.field(7).u64() == 't');
    BOOST_TEST(record.field(8).u64() == 77U);
    BOOST_TEST(!record.field(9));
    BOOST_TEST(record.field(9).u64() == 0U);
    BOOST_TEST(record.field("i").u64() == 77U);
    BOOST_TEST(!record.field("j"));
}

BOOST_AUTO_TEST_CASE(values_of_enumerations_have_their_names_and_others_are_numbers) {
    const auto b = named_values();
    const auto file = reduce::trace_file::from(b.bytes());
    BOOST_TEST(file.damages().empty());
    auto cursor = file.forward();
    std::vector<std::string> lines;
    for (const auto& each : count(file, file.forward()).lines) {
        const std::size_t from = each.find(']') + 2;
        lines.push_back(each.substr(from, each.size() - 1 - from));
    }
    const std::vector<std::string> wanted{
        R"(order side=buy level=cold wide=most two=[buy sell] some=[least 5] hard="a=\"b,\x1b\xff")",
        "order side=sell level=warm wide=0 two=[sell 7] some=[one] hard=3",
        "order side=7 level=0 wide=1 two=[9 9] some=[] hard=3",
        "other side=buy",
        "other side=hold",
        "state value=on",
        "state value=2"};
    BOOST_TEST(lines == wanted, boost::test_tools::per_element());

    const auto& record = std::get<reduce::record_view>(*cursor.next());
    BOOST_TEST(record.field("level").name() == "cold");
    BOOST_TEST(record.field("level").i64() == -300);
    BOOST_TEST(record.field("level").unnamed().name().empty());
    BOOST_TEST(record.field("two").at(1).name() == "sell");
    BOOST_TEST(record.field("two").at(2).name().empty());
    BOOST_TEST(record.field("some").at(1).name().empty());
    const auto& fields = file.about().events().types()[0].fields;
    BOOST_REQUIRE(fields[1].values != nullptr);
    BOOST_TEST(fields[1].values->find(20) == "warm");
    BOOST_TEST(fields[1].values->find(21).empty());
    BOOST_TEST(fields[1].values->all().size() == 2U);
}

BOOST_AUTO_TEST_CASE(only_what_is_asked_for_is_given) {
    const busy b(4, 50);
    const auto file = b.open();
    const auto with = [&](const reduce::filter& what) {
        return count(file, file.forward(what)).records;
    };
    BOOST_TEST(with({}) == 200U);
    BOOST_TEST(with({.events = {"tick"}}) == 100U);
    BOOST_TEST(with({.events = {"ti*", "to?k"}}) == 200U);
    BOOST_TEST(with({.events = {"t[a-h]*"}}) == 0U);
    BOOST_TEST(with({.threads = {1001, 1003, 7}}) == 100U);
    BOOST_TEST(with({.lanes = {1}}) == 50U);
    BOOST_TEST(with({.threads = {1001}, .lanes = {1}}) == 0U);
    BOOST_TEST(with({.events = {"tock"}, .lanes = {1}}) == 25U);
}

BOOST_AUTO_TEST_CASE(a_range_of_time_gives_the_same_as_leaving_out_the_rest) {
    busy b(3, 300, 128);
    b.file.wipe(2);
    b.file.wipe(5);
    const auto file = b.open();
    for (const auto& [from, to] :
         std::vector<std::pair<std::uint64_t, std::uint64_t>>{{0, 500},
                                                              {0, 1000},
                                                              {1000, 1000},
                                                              {5000, 9000},
                                                              {12'345, 23'456},
                                                              {30'000, ~0ULL},
                                                              {40'000, ~0ULL},
                                                              {9000, 5000}}) {
        reduce::filter what;
        what.from = from;
        what.to = to;
        for (const bool backward : {false, true}) {
            std::vector<std::uint64_t> all;
            auto whole = backward ? file.backward() : file.forward();
            while (const auto* item = whole.next()) {
                const auto* record = std::get_if<reduce::record_view>(item);
                if (record != nullptr && record->time() >= from && record->time() <= to) {
                    all.push_back(record->time());
                }
            }
            std::vector<std::uint64_t> some;
            auto part = backward ? file.backward(what) : file.forward(what);
            while (const auto* item = part.next()) {
                if (const auto* record = std::get_if<reduce::record_view>(item)) {
                    some.push_back(record->time());
                } else if (const auto* loss = std::get_if<reduce::loss_item>(item)) {
                    BOOST_TEST(loss->time >= from);
                    BOOST_TEST((loss->cause == loss_cause::overwritten));
                }
            }
            BOOST_TEST(some == all, boost::test_tools::per_element());
        }
    }
}

BOOST_AUTO_TEST_CASE(a_range_of_time_begins_with_the_last_sub_buffer_that_ends_then) {
    file_builder b;
    b.clock_reading(0, 0, 1'000);
    const auto& tick = b.event({1, "tick", {{"n"}}});
    const auto lane = b.lane(b.process(1), 1);
    std::uint64_t n = 0;
    for (const std::uint64_t begin : {10U, 20U, 20U, 20U, 30U}) {
        b.open(lane, begin);
        b.record(lane, begin, tick, {n++});
        b.record(lane, begin < 20 ? 20 : begin, tick, {n++});
    }
    scratch_file file;
    b.save(file.path());
    const auto trace = reduce::trace_file::open(file.path());
    reduce::filter what;
    what.from = 20;
    what.to = 1000;
    for (const bool backward : {false, true}) {
        auto cursor = backward ? trace.backward(what) : trace.forward(what);
        std::size_t records = 0;
        while (const auto* item = cursor.next()) {
            records += std::holds_alternative<reduce::record_view>(*item) ? 1 : 0;
        }
        BOOST_TEST(records == 9U);  // all but the first
    }
}

BOOST_AUTO_TEST_CASE(statistics_add_up) {
    busy b(2, 100, 64);
    b.file.wipe(1);  // some of lane 1
    b.file.clock_reading(0, 0, 1);
    b.file.clock_reading(1'000'000'000, 1'000'000'000, 1'000'000'001);
    auto file = b.open();
    const auto sum = file.statistics();
    const std::uint64_t lost = sum.lost[loss_cause::overwritten];
    BOOST_TEST(lost > 0U);
    BOOST_TEST(sum.records + lost == 200U);
    BOOST_TEST(sum.bytes == sum.records * 16);
    BOOST_TEST(sum.events.size() == 2U);
    BOOST_TEST(sum.events[0].records + sum.events[1].records == sum.records);
    BOOST_TEST(sum.lanes.size() == 2U);
    BOOST_TEST(sum.lanes[0].records + lost == 100U);
    BOOST_TEST(sum.lanes[0].lost[loss_cause::overwritten] == lost);
    BOOST_TEST(sum.lanes[1].records == 100U);
    BOOST_TEST(sum.last_time == 1000U + 99 * 100 + 1);
    BOOST_TEST(
        sum.seconds(file.time()) == static_cast<double>(sum.last_time - sum.first_time) / 1e9,
        boost::test_tools::tolerance(1e-9));
    BOOST_TEST(file.statistics({.events = {"tick"}}).records < sum.records);
}

BOOST_AUTO_TEST_CASE(totals_count_what_no_record_is_left_of) {
    file_builder b({.lanes = 4, .totals = 3});
    const auto one = b.process(1);
    const auto other = b.process(2);
    b.event({1, "mine", {}, event_kind::instant, one, 2});
    b.event({1, "theirs", {}, event_kind::instant, other, 2});
    b.event({2, "uncounted", {}, event_kind::instant, one, 0});
    b.lane(one, 1);
    b.lane(other, 2);
    b.lane(one, 3);
    const auto total = [&](std::uint64_t row) { return b.plan().totals + (row * 3 + 1) * 8; };
    b.put(total(0), 5, 8);
    b.put(total(1), 70, 8);
    b.put(total(2), 600, 8);
    b.put(total(4 + one), 1000, 8);  // of lanes whose entries were given away
    auto file = reduce::trace_file::from(b.bytes());
    const auto& types = file.event_types();
    BOOST_TEST(file.about().total_of(types[0]).value() == 1605U);
    BOOST_TEST(file.about().total_of(types[1]).value() == 70U);
    BOOST_TEST(!file.about().total_of(types[2]));
    BOOST_TEST(file.statistics().events.size() == 2U);
}

BOOST_AUTO_TEST_CASE(a_copy_taken_while_recording_went_on_is_no_damage) {
    // A copier reads tables, then sub-buffers, then the index: each newer than the one before.
    busy b(1, 100, 16);
    const std::uint64_t newest = b.file.get(b.file.lane_at(1) + 32, 8);
    b.file.lane_end(1, b.file.get(b.file.slot_at(newest - 1) + 16, 8), newest - 2);
    b.file.put(b.file.plan().ring, newest - 2, 8);
    b.file.put(b.file.index_at(2), newest + 15, 8);
    const auto file = b.open();
    const auto read = count(file, file.forward());
    BOOST_TEST(read.records == 100U);
    BOOST_TEST(read.lost.empty());
    reduce::filter what;
    what.from = 1;
    BOOST_TEST(count(file, file.forward(what)).records == 100U);
}

BOOST_AUTO_TEST_CASE(what_was_not_copied_of_a_sub_buffer_is_lost_where_it_was_and_nothing_moves) {
    for (const std::uint64_t state :
         {2U, 3U}) {  // as a reader of live memory sees it; in a snapshot
        busy b(1, 100, 16);
        const std::uint64_t second = b.file.slot_at(2);
        const std::uint64_t held = b.file.get(second + 50, 2);
        BOOST_REQUIRE(held == 28U);
        b.file.put(second + 8, 2 << 3 | state, 8);
        b.file.put(second + 40, 0, 8);
        b.file.put(second + 48, trace_ring::commit_word::pack(10, 64 + 10 * 16), 4);
        b.file.put(b.file.index_at(2) + 16, 0, 8);
        b.file.put(b.file.index_at(2) + 28, 0, 4);
        const auto file = b.open();
        for (const bool forward : {true, false}) {
            std::vector<std::uint64_t> wrong;  // numbers that are not their positions
            std::uint64_t lost_at = 0;
            auto cursor = forward ? file.forward() : file.backward();
            while (const auto* item = cursor.next()) {
                if (const auto* record = std::get_if<reduce::record_view>(item)) {
                    if (record->field(0).u64() != record->position()) {
                        wrong.push_back(record->position());
                    }
                } else if (const auto* loss = std::get_if<reduce::loss_item>(item)) {
                    lost_at = loss->at;
                }
            }
            BOOST_TEST(wrong.empty());
            BOOST_TEST(lost_at == 38U);
            const auto read = count(file, forward ? file.forward() : file.backward());
            BOOST_TEST(read.records == 82U);
            BOOST_REQUIRE(read.lost.size() == 1U);
            BOOST_TEST(read.lost.at(loss_cause::overrun) == 18U);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_child_of_a_fork_uses_its_parents_events) {
    file_builder b;
    const auto parent = b.process(1);
    const auto child = b.process(2);
    b.put(b.plan().processes + child * 128 + 16, parent, 4);
    b.put(b.plan().processes + child * 128 + 20, parent + 1, 4);
    const auto& event = b.event({1, "shared", {{"n"}}, event_kind::instant, parent});
    const auto lane = b.lane(child, 2);
    b.open(lane, 0);
    b.record(lane, 1, event, {5});
    auto file = reduce::trace_file::from(b.bytes());
    BOOST_TEST(file.processes()[child].parent.value() == parent);
    auto cursor = file.forward();
    BOOST_TEST(std::get<reduce::record_view>(*cursor.next()).name() == "shared");
}

BOOST_AUTO_TEST_CASE(a_trace_can_be_moved_while_it_is_read) {
    const busy b(2, 50);
    auto file = b.open();
    auto cursor = file.forward();
    (void)cursor.next();
    const auto moved = std::move(file);
    auto moved_cursor = std::move(cursor);
    std::uint64_t rest = 0;
    while (moved_cursor.next() != nullptr) ++rest;
    BOOST_TEST(rest == 99U);
}

BOOST_AUTO_TEST_CASE(a_process_that_holds_its_lock_is_live) {
    busy b(1, 10);
    scratch_file scratch;
    b.file.save(scratch.path());
    auto file = reduce::trace_file::open(scratch.path());
    BOOST_TEST(!file.live());  // it says so, but holds no lock
    int to_parent[2];
    int to_child[2];
    BOOST_REQUIRE(::pipe(to_parent) == 0);
    BOOST_REQUIRE(::pipe(to_child) == 0);
    const pid_t child = ::fork();
    BOOST_REQUIRE(child >= 0);
    if (child == 0) {
        const int fd = ::open(scratch.path().c_str(), O_RDWR);
        auto lock = trace_ring::large_files::lock_region(F_WRLCK, layout::lock_offset(0));
#if defined(F_SETLK64)
        const bool held = trace_ring::large_files::fcntl(fd, F_SETLK64, &lock) == 0;
#else
        const bool held = trace_ring::large_files::fcntl(fd, F_SETLK, &lock) == 0;
#endif
        char byte = held ? 'y' : 'n';
        (void)!::write(to_parent[1], &byte, 1);
        (void)!::read(to_child[0], &byte, 1);
        ::_exit(0);
    }
    char byte = 0;
    BOOST_REQUIRE(::read(to_parent[0], &byte, 1) == 1);
    BOOST_TEST(byte == 'y');
    BOOST_TEST(file.live());
    BOOST_REQUIRE(::write(to_child[1], &byte, 1) == 1);
    ::waitpid(child, nullptr, 0);
    BOOST_TEST(!file.live());
    for (const int fd : {to_parent[0], to_parent[1], to_child[0], to_child[1]}) ::close(fd);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(timeline)

namespace {

reduce::trace_clock_snapshot reading(std::uint64_t ticks, std::uint64_t monotonic,
                                     std::uint64_t realtime, std::uint64_t uncertainty) {
    reduce::trace_clock_snapshot made;
    made.ticks = ticks;
    made.monotonic = monotonic;
    made.realtime = realtime;
    made.uncertainty = uncertainty;
    return made;
}

}  // namespace

BOOST_AUTO_TEST_CASE(times_lie_on_the_line_between_the_nearest_readings) {
    // 2 ticks a ns; CLOCK_REALTIME is set forward by a second between the second and the third.
    const reduce::timeline time(
        {reading(2'000'000'000, 6'000, 8'000'000'000, 2), reading(0, 0 + 5'000, 5'000'000'000, 1),
         reading(1'000'000'000, 500'005'000, 5'500'000'000, 1)},
        2'000'000'000);
    BOOST_TEST(!time.consistent());  // the monotonic clock went back
    const reduce::timeline good({reading(2'000'000'000, 1'000'005'000, 7'000'000'000, 2),
                                 reading(0, 5'000, 5'000'000'000, 1),
                                 reading(1'000'000'000, 500'005'000, 5'500'000'000, 1)},
                                2'100'000'000);
    BOOST_TEST(!good.consistent());  // and this is no 2.1 GHz
    const reduce::timeline exact({reading(2'000'000'000, 1'000'005'000, 7'000'000'000, 2),
                                  reading(0, 5'000, 5'000'000'000, 1),
                                  reading(1'000'000'000, 500'005'000, 5'500'000'000, 1)},
                                 2'000'000'001);
    BOOST_TEST(exact.consistent());
    BOOST_TEST(exact.known());
    BOOST_TEST(exact.realtime_ns(0) == 5'000'000'000);
    BOOST_TEST(exact.realtime_ns(500'000'000) == 5'250'000'000);
    BOOST_TEST(exact.realtime_ns(1'500'000'000) == 5'750'000'000);
    BOOST_TEST(exact.realtime_ns(2'000'000'200) == 7'000'000'100);
    BOOST_TEST(exact.relative_ns(1'500'000'000) == 750'000'000);
    BOOST_TEST(exact.relative_ns(100) == 50);
    BOOST_TEST(exact.ns_per_tick() == 0.5, boost::test_tools::tolerance(1e-12));
    BOOST_TEST(exact.uncertainty_ns() == 1.0, boost::test_tools::tolerance(1e-12));
}

BOOST_AUTO_TEST_CASE(what_was_asked_before_makes_no_difference) {
    // Two of the same tick, and realtime set back.
    const reduce::timeline time({reading(1000, 500, 90'000, 0), reading(5000, 2500, 92'000, 0),
                                 reading(5000, 2600, 92'100, 0), reading(9000, 4500, 60'000, 0)},
                                2'000'000'000);
    BOOST_REQUIRE(time.known());
    std::mt19937_64 random(1);
    std::size_t near = 0;
    std::size_t beside = 77;  // there are not so many
    for (int i = 0; i < 10'000; ++i) {
        const std::uint64_t ticks = i % 10 == 0  ? random()
                                    : i % 3 == 0 ? 5000
                                                 : random() % 11'000 + 1;
        BOOST_REQUIRE(time.realtime_ns(ticks, near) == time.realtime_ns(ticks));
        BOOST_REQUIRE(near <= 4U);
        BOOST_REQUIRE(time.relative_ns(ticks, beside) == time.relative_ns(ticks));
    }
    BOOST_TEST(time.realtime_ns(3000) == 91'000);
    BOOST_TEST(time.realtime_ns(7000) == 76'050);
    reduce::timeline shorter({reading(1000, 500, 90'000, 0)}, 1'000'000'000);
    near = 4;  // of the longer
    BOOST_TEST(shorter.realtime_ns(1100, near) == 90'100);
}

BOOST_AUTO_TEST_CASE(one_reading_and_the_stated_rate_will_do) {
    const reduce::timeline time({reading(1000, 50, 1'000'000, 0)}, 500'000'000);
    BOOST_TEST(time.realtime_ns(1000) == 1'000'000);
    BOOST_TEST(time.realtime_ns(1010) == 1'000'020);
    BOOST_TEST(time.realtime_ns(990) == 999'980);
    BOOST_TEST(time.relative_ns(990) == -20);
}

BOOST_AUTO_TEST_CASE(without_readings_nothing_is_known) {
    const reduce::timeline none;
    BOOST_TEST(!none.known());
    BOOST_TEST(none.realtime_ns(17) == 0);
    BOOST_TEST(reduce::timeline({}, 1000).relative_ns(17) == 0);
    const reduce::timeline untimed({reading(0, 5, 6, 0), reading(0, 9, 10, 0)}, 0);
    BOOST_TEST(!untimed.known());
    BOOST_TEST(untimed.realtime_ns(17) == 0);
}

BOOST_AUTO_TEST_CASE(absurd_readings_give_absurd_times_and_no_worse) {
    const reduce::timeline time(
        {reading(0, 0, ~std::uint64_t{0}, 0), reading(1, ~std::uint64_t{0}, 0, 0)}, 1);
    for (const std::uint64_t ticks : {std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0}}) {
        (void)time.realtime_ns(ticks);
    }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(following)

BOOST_AUTO_TEST_CASE(new_records_lanes_and_events_come_as_they_are_written) {
    busy b(2, 3);
    const auto file = b.open();
    auto cursor = file.follow();
    const auto news = [&] {
        // The newest are held back until they are known to be the newest: ask twice.
        counted all = count(file, cursor);
        for (int i = 0; i < 2; ++i) {
            for (auto& line : count(file, cursor).lines) all.lines.push_back(std::move(line));
        }
        return all.lines;
    };
    BOOST_TEST(news().size() == 6U);
    BOOST_TEST(news().empty());
    b.write(1, 5000, 3);
    BOOST_TEST(news() == std::vector<std::string>{"5000 [1000 worker] tock n=3\n"},
               boost::test_tools::per_element());
    for (std::uint64_t n = 4; n < 100; ++n) b.write(1, 5000 + n, n);  // more than a sub-buffer
    BOOST_TEST(news().size() == 96U);
    const auto& event = b.file.event({3, "late", {}});
    const auto lane = b.file.lane(0, 77, "late");
    b.file.open(lane, 6000);
    b.file.record(lane, 6001, event, {});
    b.write(2, 6002, 3);
    BOOST_TEST(news() == (std::vector<std::string>{"6001 [77 late] late\n",
                                                   "6002 [1001 worker] tock n=3\n"}),
               boost::test_tools::per_element());
    BOOST_TEST(file.event_types().size() == 3U);
}

BOOST_AUTO_TEST_CASE(what_was_overwritten_meanwhile_is_counted_exactly) {
    for (const bool in_part : {false, true}) {
        busy b(1, 0, 8);
        const auto file = b.open();
        auto cursor = file.follow();
        std::uint64_t read = 0;
        std::uint64_t lost = 0;
        trace_ring::position next = 0;
        const auto drain = [&] {
            for (int i = 0; i < 4; ++i) {
                while (const auto* item = cursor.next()) {
                    if (const auto* record = std::get_if<reduce::record_view>(item)) {
                        BOOST_TEST(record->position() == next);
                        BOOST_TEST(record->field("n").u64() == next);
                        ++next;
                        ++read;
                    } else {
                        const auto& loss = std::get<reduce::loss_item>(*item);
                        BOOST_TEST(loss.at == next);
                        next += loss.count;
                        lost += loss.count;
                    }
                }
            }
        };
        std::uint64_t n = 0;
        // Each round writes more: from a part of the ring to several times round.
        for (std::uint64_t round = 0; round < 12; ++round) {
            for (std::uint64_t i = 0; i < round * 50 + 1; ++i, ++n) b.write(1, 2000 + n, n);
            if (in_part) {  // read with a sub-buffer open, and overwritten then
                while (cursor.next() != nullptr) {
                }
            } else {
                drain();
                BOOST_TEST(read + lost == n);
            }
        }
        if (in_part) continue;
        BOOST_TEST(read > 0U);
        BOOST_TEST(lost > 0U);
    }
}

BOOST_AUTO_TEST_CASE(stopping_between_records_in_a_row_gives_the_rest_of_them_in_their_place) {
    for (std::uint64_t taken = 0; taken <= 12; ++taken) {
        file_builder b;
        const auto process = b.process(1);
        const auto& event = b.event({1, "tick", {{"n"}}});
        const auto one = b.lane(process, 1);
        const auto other = b.lane(process, 2);
        b.open(one, 0);
        b.open(other, 0);
        for (std::uint64_t n = 0; n < 12; ++n) {
            b.record(n == 6 ? other : one, 100 + n * 10, event, {n});
        }
        const auto file = reduce::trace_file::from(b.bytes());
        auto cursor = file.follow();
        std::vector<std::uint64_t> order;
        const auto take = [&](std::uint64_t most) {
            while (order.size() < most) {
                const auto* item = cursor.next();
                if (item == nullptr && (item = cursor.next()) == nullptr) return;
                order.push_back(std::get<reduce::record_view>(*item).field(0).u64());
            }
        };
        take(taken);
        b.record(other, 195, event, {12});
        cursor.stop_following();
        take(~std::uint64_t{0});
        const std::vector<std::uint64_t> expected{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 10, 11};
        if (taken <= 10) BOOST_TEST(order == expected, boost::test_tools::per_element());
        BOOST_TEST(order.size() == 13U);
    }
}

BOOST_AUTO_TEST_CASE(stopping_gives_what_is_left_and_what_never_got_into_a_sub_buffer) {
    busy b(1, 5);
    const auto file = b.open();
    auto cursor = file.follow();
    BOOST_TEST(count(file, cursor).records == 5U);
    b.write(1, 9000, 5);
    b.file.lane_counts(1, 7, 0, 0, 1);
    cursor.stop_following();
    const auto rest = count(file, cursor);
    BOOST_TEST(rest.records == 1U);
    BOOST_TEST(rest.lost.at(loss_cause::refused) == 7U);
    BOOST_TEST(rest.lost.at(loss_cause::abandoned) == 1U);
    BOOST_TEST(cursor.next() == nullptr);
}

BOOST_AUTO_TEST_CASE(sets_of_globs_are_of_bytes_without_a_sign) {
    using trace_ring::matches_glob;
    BOOST_TEST(matches_glob("[a-\xFF]", "\xE4"));
    BOOST_TEST(matches_glob("[a-\xFF]", "z"));
    BOOST_TEST(!matches_glob("[\x80-z]", "a"));
    BOOST_TEST(!matches_glob("[!a-\xFF]", "\xE4"));
    BOOST_TEST(matches_glob("[]a]*[", "]["));  // a set that does not end is a bracket
    BOOST_TEST(matches_glob("[a]x[", "ax["));
    BOOST_TEST(!matches_glob("[]", "]"));
    BOOST_TEST(matches_glob("[]", "[]"));
}

BOOST_AUTO_TEST_CASE(a_glob_of_brackets_takes_no_longer_than_one_of_letters,
                     *boost::unit_test::label("slow")) {
    const std::size_t size = 6000;
    const auto seconds = [](const std::string& glob, const std::string& text) {
        const auto before = std::chrono::steady_clock::now();
        BOOST_TEST(!trace_ring::matches_glob(glob, text));
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
    };
    const std::string letters(size, 'a'), brackets(size, '[');
    const double usual = seconds("*" + letters + "b", letters + letters);
    // To look for its end from each of them would take two thousand times as long without a
    // vector unit, a hundred times with one.
    BOOST_TEST(seconds("*" + brackets + "b", brackets + brackets) < 10 * usual + 0.5);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace trace_files
