// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// CSV, Chrome's trace events and Perfetto's packets: to the letter for a small trace of
/// everything, value by value for a large one, and well-formed for traces that are damaged.

#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <examples/trace_reduce/exporting/formats.hpp>
#include <proof.hpp>
#include <reduce/everything.hpp>
#include <reduce/file_builder.hpp>
#include <reduce/listing.hpp>
#include <reduce/named_values.hpp>
#include <reduce/scratch_file.hpp>
#include <trace_ring/exporter/json.hpp>
#include <trace_ring/recorder/recorder.hpp>
#include <trace_ring/reduce/trace_file.hpp>

BOOST_AUTO_TEST_SUITE(formats)

using namespace trace_ring_test;
namespace reduce = trace_ring::reduce;
namespace exporter = trace_ring::exporter;

namespace {

std::string joined(const std::vector<std::string>& lines) {
    std::string all;
    for (const auto& line : lines) all += line + '\n';
    return all;
}

std::string shown_by(const std::string& what, const reduce::trace_file& file) {
    if (what == "csv") {
        std::string text = written(file, trace_reduce::exporting::csv_writer());
        std::erase(text, '\r');
        return text;
    }
    if (what == "chrome") return written(file, trace_reduce::exporting::chrome_writer());
    if (what == "perfetto") {
        return joined(
            perfetto_reader(written(file, trace_reduce::exporting::perfetto_writer())).lines());
    }
    throw std::runtime_error("shown by what? " + what);
}

bool contains(std::string_view all, std::string_view part) {
    return all.find(part) != all.npos;
}
std::size_t count(std::string_view all, std::string_view part) {
    std::size_t found = 0;
    for (std::size_t at = all.find(part); at != all.npos; at = all.find(part, at + 1)) ++found;
    return found;
}

/// Records of any values, on two lanes: of each type of field, alone, in arrays and in spans.
file_builder any_values(unsigned seed) {
    file_builder b({.sub_buffer_bytes = 32768, .sub_buffers = 16});
    b.clock_reading(0, 0, 1'700'000'000'000'000'000);
    const auto process = b.process(1200);
    const field_type types[] = {field_type::u8,     field_type::u16,     field_type::u32,
                                field_type::u64,    field_type::i8,      field_type::i16,
                                field_type::i32,    field_type::i64,     field_type::f32,
                                field_type::f64,    field_type::boolean, field_type::character,
                                field_type::address};
    event_spec alone{1, "alone", {}};
    event_spec many{2, "many", {}};
    for (const auto type : types) {
        const std::string name = "f" + std::to_string(static_cast<int>(type));
        alone.fields.push_back({name, type});
        many.fields.push_back({name + "a", type, field_form::array, 3});
        many.fields.push_back({name + "v", type, field_form::variable});
    }
    const auto& one = b.event(alone);
    const auto& lists = b.event(many);
    const std::uint32_t lanes[] = {b.lane(process, 11, "first"), b.lane(process, 12, "second")};
    std::mt19937_64 random(seed);
    const auto any = [&random] {
        const std::uint64_t bits = random();
        return random() % 4 == 0 ? bits : bits >> (random() % 64);
    };
    for (const auto lane : lanes) b.open(lane, 0);
    for (std::uint64_t n = 0; n < 300; ++n) {
        const bool single = random() % 2 == 0;
        std::vector<value_spec> values;
        for (const auto& field : (single ? one : lists).fields) {
            const auto size = static_cast<std::size_t>(
                field.form == field_form::variable ? random() % 5 : field.count);
            std::vector<std::uint64_t> elements(size);
            for (auto& each : elements) each = any();
            values.emplace_back(elements);
        }
        const auto lane = lanes[random() % 2];
        if (b.record(lane, 1 + n * 10, single ? one : lists, values)) continue;
        b.open(lane, n * 10);
        b.record(lane, 1 + n * 10, single ? one : lists, values);
    }
    return b;
}

/// A value as perfetto_reader shows it, said anew.
std::string as_annotation(const reduce::field_value& value) {
    const auto hex = [](std::string_view bytes) {
        std::ostringstream out;
        for (const char c : bytes) {
            out << "0123456789abcdef"[static_cast<unsigned char>(c) / 16]
                << "0123456789abcdef"[static_cast<unsigned char>(c) % 16];
        }
        return out.str();
    };
    const auto text = [&hex](std::string_view bytes) -> std::string {
        if (!exporter::impl::is_utf8(bytes)) return "{hex=\"" + hex(bytes) + "\"}";
        exporter::text_buffer escaped;
        exporter::impl::append_escaped(escaped, bytes, '"');
        return '"' + std::string(escaped.view()) + '"';
    };
    const auto scalar = [&text](const reduce::field_value& one) -> std::string {
        std::ostringstream out;
        switch (one.type()) {
            case field_type::boolean:
                return one.boolean() ? "true" : "false";
            case field_type::address:
                out << "0x" << std::hex << one.u64();
                return out.str();
            case field_type::character:
                return text(std::string(1, static_cast<char>(one.u64())));
            case field_type::f32:
            case field_type::f64: {
                exporter::text_buffer shortest;
                exporter::impl::append_floating(shortest, one.f64());
                return 'd' + std::string(shortest.view());
            }
            case field_type::u8:
            case field_type::u16:
            case field_type::u32:
            case field_type::u64:
                return 'u' + std::to_string(one.u64());
            default:
                return 'i' + std::to_string(one.i64());
        }
    };
    if (value.is_text()) return text(value.text());
    if (value.form() == field_form::scalar) return scalar(value);
    std::string list;
    for (std::size_t i = 0; i < value.size(); ++i) {
        list += (i == 0 ? "" : " ") + scalar(value.at(i));
    }
    return '[' + list + ']';
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_trace_of_everything_is_shown_to_the_letter) {
    std::size_t sections = 0;
    for (const auto& entry : std::filesystem::directory_iterator(TRACE_RING_FORMATS_GOLDEN)) {
        if (entry.path().extension() != ".listing") continue;
        const listing golden(entry.path().string());
        const auto file = reduce::trace_file::from(golden.file().bytes());
        check_formats(file);
        if (const char* const to = std::getenv("TRACE_RING_SAVE_CHROME")) {  // speedscope.py
            std::ofstream(to) << shown_by("chrome", file);
        }
        for (const auto& [what, expected] : golden.sections()) {
            ++sections;
            BOOST_TEST_CONTEXT(entry.path().filename().string() << " " << what) {
                BOOST_TEST(shown_by(what, file) == expected);
            }
        }
    }
    BOOST_TEST(sections >= 3U);
}

BOOST_AUTO_TEST_CASE(perfetto_has_each_record_with_its_values) {
    for (unsigned seed = 1; seed <= 5; ++seed) {
        const auto b = any_values(seed);
        const auto file = reduce::trace_file::from(b.bytes());
        const perfetto_reader read(written(file, trace_reduce::exporting::perfetto_writer()));
        std::vector<std::string> events;
        for (const auto& line : read.lines()) {
            if (line[0] >= '0' && line[0] <= '9') events.push_back(line);
        }
        std::size_t records = 0;
        for (auto cursor = file.forward(); const auto* item = cursor.next(); ++records) {
            const auto& record = std::get<reduce::record_view>(*item);
            std::string expected = " instant event " + std::string(record.name());
            record.for_each_field([&](const reduce::field_info& field, const auto& value) {
                expected += ' ' + field.name + '=' + as_annotation(value);
            });
            BOOST_REQUIRE(records < events.size());
            const std::string& line = events[records];
            BOOST_TEST(line.starts_with(std::to_string(file.realtime_ns(record.time()))));
            BOOST_TEST(line.substr(line.find(':') + 1) == expected);
        }
        BOOST_TEST(records == 300U);
        BOOST_TEST(read.events() == records);
    }
}

BOOST_AUTO_TEST_CASE(csv_has_each_record_with_its_values) {
    for (unsigned seed = 1; seed <= 5; ++seed) {
        const auto b = any_values(seed);
        const auto file = reduce::trace_file::from(b.bytes());
        const csv_reader csv(written(file, trace_reduce::exporting::csv_writer()));
        std::size_t row = 0;
        for (auto cursor = file.forward(); const auto* item = cursor.next();) {
            const auto& record = std::get<reduce::record_view>(*item);
            ++row;
            BOOST_TEST(csv.at(row, "kind").text == "record");
            BOOST_TEST(csv.at(row, "ticks").text == std::to_string(record.time()));
            BOOST_TEST(csv.at(row, "tid").text == std::to_string(record.lane().thread));
            BOOST_TEST(csv.at(row, "event").plain() == record.name());
            record.for_each_field([&](const reduce::field_info& field, const auto& value) {
                const auto& cell = csv.at(row, std::string(record.name()) + '.' + field.name);
                if (value.type() == field_type::character) {
                    const char c = static_cast<char>(value.u64());
                    const std::string text(value.is_text() ? value.text()
                                                           : std::string_view(&c, 1));
                    BOOST_TEST((cell.plain() == text));
                } else if (field.form != field_form::scalar) {
                    BOOST_TEST(cell.quoted);
                    BOOST_TEST(json_check::valid(cell.text));
                } else if (value.type() == field_type::f64) {
                    BOOST_TEST((std::strtod(cell.text.c_str(), nullptr) == value.f64() ||
                                (std::isnan(value.f64()) && contains(cell.text, "nan"))));
                } else if (value.type() == field_type::f32) {
                    BOOST_TEST((std::strtof(cell.text.c_str(), nullptr) == value.f32() ||
                                (std::isnan(value.f32()) && contains(cell.text, "nan"))));
                } else if (value.type() == field_type::u64) {
                    BOOST_TEST(cell.text == std::to_string(value.u64()));
                } else if (value.type() == field_type::i64) {
                    BOOST_TEST(cell.text == std::to_string(value.i64()));
                }
            });
        }
        BOOST_TEST(row == 300U);
        BOOST_TEST(csv.rows().size() == row + 1);
    }
}

BOOST_AUTO_TEST_CASE(values_of_enumerations_have_their_names_in_every_format) {
    const auto b = named_values();
    const auto file = reduce::trace_file::from(b.bytes());
    check_formats(file);

    std::string json;
    exporter::json_writer writer(file.time());
    for (auto cursor = file.forward(); const auto* item = cursor.next();)
        writer.append(json, *item);
    for (const std::string_view part :
         {R"({"side":"buy","level":"cold","wide":"most","two":["buy","sell"],"some":["least",5],)"
          R"("hard":"a=\"b,\u001b\ufffd"})",
          R"({"side":"sell","level":"warm","wide":0,"two":["sell",7],"some":["one"],"hard":3})",
          R"({"side":7,"level":0,"wide":1,"two":[9,9],"some":[],"hard":3})", R"({"side":"hold"})",
          R"({"value":"on"})", R"({"value":2})"}) {
        BOOST_TEST(contains(json, part), part);
    }

    const csv_reader csv(written(file, trace_reduce::exporting::csv_writer()));
    BOOST_TEST(csv.at(1, "order.side").quoted);
    BOOST_TEST(csv.at(1, "order.side").plain() == "buy");
    BOOST_TEST(csv.at(1, "order.level").plain() == "cold");
    BOOST_TEST(csv.at(1, "order.some").text == R"(["least",5])");
    BOOST_TEST(csv.at(1, "order.hard").text == "hex:613d22622c1bff");
    BOOST_TEST(csv.at(2, "order.two").text == R"(["sell",7])");
    BOOST_TEST(csv.at(3, "order.side").text == "7");
    BOOST_TEST(!csv.at(3, "order.side").quoted);
    BOOST_TEST(csv.at(5, "other.side").plain() == "hold");

    // Curves are of numbers; next to them are named values.
    const std::string chrome = shown_by("chrome", file);
    BOOST_TEST(contains(chrome, R"("args":{"side":"buy","level":"cold","wide":"most",)"));
    BOOST_TEST(contains(chrome, R"("args":{"side":7,"level":0,"wide":1,)"));
    BOOST_TEST(contains(chrome, R"("args":{"value":1}})"));
    BOOST_TEST(contains(chrome, R"("args":{"value":"on"}})"));
    BOOST_TEST(count(chrome, R"("name":"state")") == 3U);

    const std::string perfetto = shown_by("perfetto", file);
    for (const std::string_view part :
         {R"(order side="buy" level="cold" wide="most" two=["buy" "sell"] some=["least" i5])",
          R"(order side="sell" level="warm" wide=u0 two=["sell" u7] some=["one"] hard=u3)",
          R"(order side=u7 level=i0 wide=u1 two=[u9 u9] )", R"(other side="hold")", ": value i1\n",
          R"(state value="on")", ": value i2\n"}) {
        BOOST_TEST(contains(perfetto, part), part);
    }
}

BOOST_AUTO_TEST_CASE(text_in_csv_is_no_formula_and_comes_back_whole) {
    const std::string_view texts[] = {"",
                                      "a",
                                      "a,b",
                                      "say \"x\"",
                                      "\"",
                                      "line\r\nline",
                                      "=1+1",
                                      "+1",
                                      "-1",
                                      "@SUM(A1)",
                                      "\tx",
                                      "\rx",
                                      "\nx",
                                      "'",
                                      "''",
                                      "hex:00",
                                      "hex",
                                      "\xC3\xA9",
                                      "\xff",
                                      "a\x1b[2J",
                                      "\xC2\x9B",
                                      "\x7f",
                                      std::string_view("\0", 1),
                                      "\xEF\xBC\x9D"
                                      "1",
                                      " =1"};
    for (const auto text : texts) {
        exporter::text_buffer out;
        trace_reduce::exporting::impl::append_csv_text(out, text);
        const csv_reader csv(std::string(out.view()) + "\r\n");
        const auto& cell = csv.rows().at(0).at(0);
        BOOST_TEST((cell.plain() == text));
        constexpr std::string_view first = "=+-@\t\r\n";
        BOOST_TEST((cell.text.empty() || first.find(cell.text[0]) == first.npos));
        for (const char c : out.view()) {
            const auto byte = static_cast<unsigned char>(c);
            BOOST_TEST((byte >= 0x20 || c == '\t' || c == '\r' || c == '\n'));
        }
    }
}

BOOST_AUTO_TEST_CASE(csv_tells_fields_of_one_name_apart_and_keeps_types_that_come_later) {
    file_builder b;
    const auto lane = b.lane(b.process(1), 2);
    const auto& twice = b.event({1, "a", {{"x"}, {"x"}, {"b.x"}}});
    const auto& other = b.event({2, "a.b", {{"x"}}});
    const auto& left_out =
        b.event({3, "left", {{"n"}, {"s", field_type::character, field_form::variable}}});
    b.open(lane, 0);
    b.record(lane, 1, twice, {1, 2, 3});
    b.record(lane, 2, left_out, {4, "x\"y"});
    const auto file = reduce::trace_file::from(b.bytes());
    const csv_reader csv(written(file, trace_reduce::exporting::csv_writer({.events = {"a"}})));
    BOOST_TEST(csv.at(1, "a.x").text == "1");
    BOOST_TEST(csv.at(1, "a.x#2").text == "2");
    BOOST_TEST(csv.at(1, "a.b.x").text == "3");
    BOOST_TEST(csv.at(1, "more").text == "");
    BOOST_TEST(csv.at(2, "more").text == R"({"n":4,"s":"x\"y"})");
    // Two events whose fields have the same name together: no two columns do.
    b.record(lane, 3, other, {5});
    const csv_reader all(written(file, trace_reduce::exporting::csv_writer()));
    BOOST_TEST(all.at(1, "a.b.x").text == "3");
    BOOST_TEST(all.at(3, "a.b.x@2").text == "5");
}

BOOST_AUTO_TEST_CASE(what_is_declared_as_a_flow_is_drawn_as_one) {
    struct asked : trace_ring::span<"asked", trace_ring::field<"id", trace_ring::flow>> {};
    struct answered : trace_ring::event<"answered", trace_ring::field<"n", std::uint64_t>,
                                        trace_ring::field<"id", trace_ring::flow>> {};
    struct queued : trace_ring::counter<"queued", trace_ring::field<"jobs", int>> {};
    trace_ring::recorder recorder{{.size = 1 << 18}};
    {
        const auto span = recorder.scope<asked>(trace_ring::flow(77));
        std::thread([&] { recorder.record<answered>(5U, trace_ring::flow(77)); }).join();
        recorder.record<queued>(3);
    }
    const auto [memory, bytes] = recorder.bytes();
    const auto file = reduce::trace_file::from({memory, bytes});
    for (const auto& type : file.event_types()) {
        for (const auto& field : type.fields) BOOST_TEST(field.flow == (field.name == "id"));
    }
    const std::string chrome = written(file, trace_reduce::exporting::chrome_writer());
    BOOST_TEST(json_check::valid(chrome));
    check_nesting(chrome);
    BOOST_TEST(count(chrome, R"({"ph":"s","name":"flow","cat":"flow","id":"0x4d",)") == 1U);
    BOOST_TEST(count(chrome, R"({"ph":"t","bp":"e","name":"flow","cat":"flow","id":"0x4d",)") ==
               1U);
    BOOST_TEST(contains(chrome, R"({"ph":"X","name":"answered")"));
    BOOST_TEST(contains(chrome, R"({"ph":"C","name":"queued")"));
    const std::string lines =
        joined(perfetto_reader(written(file, trace_reduce::exporting::perfetto_writer())).lines());
    BOOST_TEST(count(lines, " id=u77 #77\n") == 2U);
    BOOST_TEST(contains(lines, ": value i3\n"));
}

BOOST_AUTO_TEST_CASE(fields_are_flows_and_counters_on_demand) {
    file_builder b;
    const auto lane = b.lane(b.process(1), 2);
    const auto& event = b.event({1,
                                 "a.b",
                                 {{"id", field_type::u32},
                                  {"x", field_type::f32},
                                  {"t", field_type::address},
                                  {"s", field_type::character, field_form::variable}}});
    b.open(lane, 0);
    b.record(lane, 1, event, {7, 0.5F, 9, "z"});
    const auto file = reduce::trace_file::from(b.bytes());
    const auto& type = file.event_types().front();
    using roles = trace_reduce::exporting::field_roles;
    BOOST_TEST(roles::means("a.b.id", true, type));
    BOOST_TEST(roles::means("*.t", true, type));
    BOOST_TEST(!roles::means("a.b.x", true, type));  // no integer
    BOOST_TEST(!roles::means("a.b.s", true, type));
    BOOST_TEST(roles::means("a.?.x", false, type));
    BOOST_TEST(!roles::means("a.b.t", false, type));
    BOOST_TEST(!roles::means("id", true, type));
    const std::string none = written(file, trace_reduce::exporting::chrome_writer());
    BOOST_TEST(count(none, "\"ph\"") == 3U);
    const std::string some =
        written(file, trace_reduce::exporting::chrome_writer({{"a.b.id", "a.b.t"}, {"a.b.*"}}));
    BOOST_TEST(count(some, R"("ph":"s")") == 2U);
    BOOST_TEST(contains(some, R"({"ph":"C","name":"a.b","cat":"event","pid":1,"tid":2,"ts":0.000,)"
                              R"("args":{"x":0.5}})"));
    BOOST_TEST(contains(some, R"({"ph":"X","name":"a.b")"));  // as an event, too
}

BOOST_AUTO_TEST_CASE(every_format_tells_the_same_dates_and_where_they_jump) {
    constexpr std::int64_t date = 1'700'000'000'000'000'000;
    for (const std::int64_t step : {-3'600'000'000'000, 3'600'000'000'000}) {
        file_builder b({.sub_buffer_bytes = 4096});
        b.clock_reading(0, 0, date);
        b.clock_reading(2000, 2000, date + 2000);
        b.clock_reading(4000, 4000, static_cast<std::uint64_t>(date + 4000 + step));
        b.clock_reading(6000, 6000, static_cast<std::uint64_t>(date + 6000 + step));
        const auto process = b.process(1200);
        const auto& tick = b.event({1, "tick", {{"n"}}});
        const auto& work = b.event({2, "work", {{"n"}}, event_kind::span});
        const std::uint32_t lanes[] = {b.lane(process, 11), b.lane(process, 12)};
        for (const auto lane : lanes) b.open(lane, 100);
        b.record(lanes[0], 150, work, {0}, 4);
        std::vector<std::int64_t> dates;
        for (std::uint64_t n = 1; n < 60; ++n) {
            b.record(lanes[n % 2], 100 + n * 100, tick, {n});
            const std::int64_t plain = date + 100 + static_cast<std::int64_t>(n) * 100;
            dates.push_back(plain + (100 + n * 100 < 4000 ? 0 : step));
        }
        const auto file = reduce::trace_file::from(b.bytes());
        const std::string json = [&] {
            exporter::json_writer writer(file.time());
            exporter::text_buffer out;
            for (auto cursor = file.forward(); const auto* item = cursor.next();) {
                writer.append(out, *item);
            }
            return std::string(out.view());
        }();
        const std::string csv =
            written(file, trace_reduce::exporting::csv_writer({.files = false}));
        const std::string chrome = written(file, trace_reduce::exporting::chrome_writer());
        check_nesting(chrome);
        const std::string perfetto = joined(
            perfetto_reader(written(file, trace_reduce::exporting::perfetto_writer())).lines());
        const std::int64_t origin = date + 150;
        for (std::size_t i = 0; i < dates.size(); ++i) {
            const std::string n = std::to_string(i + 1);
            const std::string when = std::to_string(dates[i]);
            BOOST_TEST(count(json, R"("time_ns":)" + when + ',') == 1U);
            BOOST_TEST(count(csv, "record," + when + ',') == 1U);
            BOOST_TEST(contains(perfetto, when + " on "));
            const std::int64_t since = dates[i] - origin;
            const std::uint64_t size = static_cast<std::uint64_t>(since < 0 ? -since : since);
            std::string micro = std::to_string(size % 1000);
            micro = (since < 0 ? "-" : "") + std::to_string(size / 1000) + '.' +
                    std::string(3 - micro.size(), '0') + micro;
            BOOST_TEST(
                contains(chrome, R"(,"ts":)" + micro + R"(,"s":"t","args":{"n":)" + n + '}'));
        }
        const std::string by = std::to_string(step);
        BOOST_TEST(
            contains(json, R"({"kind":"clock_jump","lane":null,"from_ns":1700000000000002000,)"
                           R"("step_ns":)" +
                               by + R"(,"from_ticks":2000,"ticks":4000,"time_ns":)"));
        BOOST_TEST(count(csv, "\nclock_jump,") == 1U);
        BOOST_TEST(contains(csv, ",2000," + by + ','));
        BOOST_TEST(count(chrome, "the date jumps") == 1U);
        BOOST_TEST(contains(chrome, R"("trace_ring.step_ns":")" + by + '"'));
        BOOST_TEST(count(perfetto, "the date jumps") == 1U);
        // What was set back is drawn on other tracks, and no span is drawn over it.
        BOOST_TEST(contains(chrome, "clock jump 1") == (step < 0));
        BOOST_TEST(contains(chrome, R"("ph":"E")") == (step < 0));
    }
}

BOOST_AUTO_TEST_CASE(dates_that_are_farther_apart_than_signed_numbers_reach_are_exact) {
    // One date is in 1750, the other in 2189: 1.5 times 2^63 ns lie between them.
    constexpr std::uint64_t now = std::uint64_t{1} << 63;
    constexpr std::uint64_t far = std::uint64_t{3} << 61;
    const auto at = [](std::uint64_t ticks) {
        file_builder b;
        b.clock_reading(now, 0, 0);
        const auto lane = b.lane(b.process(1200), 11);
        const auto& tick = b.event({1, "tick", {{"n"}}});
        for (const std::uint64_t each : {now - far, now + far}) {
            if (each < ticks) continue;
            b.open(lane, each);
            b.record(lane, each, tick, {each > now ? 2 : 1});
        }
        return b;
    };
    const file_builder builders[] = {at(now - far), at(now + far)};
    const auto both = reduce::trace_file::from(builders[0].bytes());
    const auto late = reduce::trace_file::from(builders[1].bytes());
    check_formats(both);
    const std::string apart = R"("ts":13835058055282163.712,)";
    BOOST_TEST(contains(written(both, trace_reduce::exporting::chrome_writer()), apart));
    const std::string csv = written(both, trace_reduce::exporting::csv_writer({.files = false}));
    BOOST_TEST(contains(csv, "\nrecord,-6917529027641081856,"));
    BOOST_TEST(contains(csv, "\nrecord,6917529027641081856,"));

    // The trace that begins later is written first, so the other one is before the origin.
    trace_reduce::exporting::chrome_writer writer;
    exporter::text_buffer out;
    for (const auto* const file : {&late, &both}) (void)writer.add(file->about(), "a.trace");
    writer.begin(out);
    for (std::size_t i = 0; i < 2; ++i) {
        auto cursor = (i == 0 ? late : both).forward();
        const auto* const first = cursor.next();
        BOOST_REQUIRE(first != nullptr);
        writer.append(out, i, *first);
    }
    writer.end(out);
    BOOST_TEST(json_check::valid(out.view()));
    BOOST_TEST(contains(out.view(), R"("ts":0.000,)"));
    BOOST_TEST(contains(out.view(), R"("ts":-13835058055282163.712,)"));
    const auto origin = chrome_time_of("0.000");
    BOOST_TEST((chrome_time_of("-13835058055282163.712") < chrome_time_of("-0.001")));
    BOOST_TEST((chrome_time_of("-0.001") < origin && origin < chrome_time_of("0.001")));
    BOOST_TEST((chrome_time_of("0.001") < chrome_time_of("13835058055282163.712")));
}

BOOST_AUTO_TEST_CASE(spans_that_do_not_nest_have_lines_of_their_own) {
    file_builder b;
    b.clock_reading(0, 0, 1'700'000'000'000'000'000);
    const auto process = b.process(1200);
    const auto first = b.lane(process, 11, "first");
    const auto second = b.lane(process, 12, "second");
    const auto& event = b.event({1, "request", {{"id"}}, event_kind::span});
    const auto begins = [&](std::uint32_t lane, std::uint64_t at, int id) {
        b.record(lane, at, event, {id}, 4);
    };
    b.open(first, 1);
    b.open(second, 1);
    begins(first, 1000, 1);
    begins(first, 2000, 2);
    b.end_of(first, 3000, event, first, 0);
    begins(second, 4000, 3);  // on the line that is free again
    b.end_of(first, 5000, event, second, 0);
    b.raw_record(first, 11000, event.id, {}, 8);
    const auto file = reduce::trace_file::from(b.bytes());
    const std::string chrome = written(file, trace_reduce::exporting::chrome_writer());
    check_nesting(chrome);
    const auto span = [&](int tid, const char* from, int id, const char* to) {
        const std::string about = R"("name":"request","cat":"event","pid":1200,"tid":)" +
                                  std::to_string(tid) + R"(,"ts":)";
        BOOST_TEST(count(chrome, R"({"ph":"B",)" + about + from + R"(,"args":{"id":)" +
                                     std::to_string(id) + "}}") == 1U);
        BOOST_TEST(count(chrome, R"({"ph":"E",)" + about + to + "}") == 1U);
    };
    span(4194305, "0.000", 1, "2.000");
    span(11, "1.000", 2, "10.000");
    span(4194305, "3.000", 3, "4.000");
    BOOST_TEST(count(chrome, "lost") + count(chrome, "not nested") == 0U);
    const std::string lines =
        joined(perfetto_reader(written(file, trace_reduce::exporting::perfetto_writer())).lines());
    BOOST_TEST(contains(lines, ": request\n"));
    BOOST_TEST(count(lines, ": end") == 3U);
}

BOOST_AUTO_TEST_CASE(a_span_that_was_not_known_not_to_nest_is_not_given_a_length) {
    file_builder b;
    const auto lane = b.lane(b.process(1200), 11);
    const auto& event = b.event({1, "request", {{"id"}}, event_kind::span});
    b.open(lane, 0);
    for (const int id : {1, 2, 3}) b.record(lane, static_cast<std::uint64_t>(id), event, {id}, 4);
    const auto file = reduce::trace_file::from(b.bytes());
    trace_reduce::exporting::chrome_writer writer;  // looks at the file before it is written on
    (void)writer.add(file.about(), "live");
    b.end_of(lane, 5, event, lane, 1);
    b.raw_record(lane, 7, event.id, {}, 8);
    b.end_of(lane, 9, event, lane, 0);
    exporter::text_buffer out;
    writer.begin(out);
    for (auto all = file.forward(); const auto* item = all.next();) writer.append(out, 0, *item);
    writer.end(out);
    const std::string chrome(out.view());
    check_nesting(chrome);
    const std::string about = R"("name":"request","cat":"event","pid":1200,"tid":11,"ts":)";
    BOOST_TEST(contains(chrome, R"({"ph":"i",)" + about +
                                    R"(0.004,"s":"t","args":{"trace_ring.end":"not nested"}})"));
    BOOST_TEST(contains(chrome, R"({"ph":"E",)" + about + "0.006},\n" + R"({"ph":"E",)" + about +
                                    R"(0.006,"args":{"trace_ring.end":"not nested"}})"));
    BOOST_TEST(contains(chrome, R"({"ph":"E",)" + about + "0.008}\n"));
}

BOOST_AUTO_TEST_CASE(processes_that_have_the_same_id_are_two) {
    // Each is number 1 of its container, and its thread, too.
    file_builder b;
    b.clock_reading(0, 0, 1'700'000'000'000'000'000);
    const auto& event = b.event({1, "request", {{"id"}}, event_kind::span});
    const auto& depth = b.event({2, "depth", {{"n"}}, event_kind::counter});
    const std::uint32_t lanes[] = {b.lane(b.process(1, "span"), 1, "span"),
                                   b.lane(b.process(1, "span"), 1, "span")};
    b.put(b.plan().processes + 128 + 16, 0, 4);  // the second uses the first one's events
    for (const auto lane : lanes) b.open(lane, 0);
    b.record(lanes[0], 10, event, {1}, 4);
    b.record(lanes[1], 20, event, {2}, 4);
    for (const auto lane : lanes) b.record(lane, 25, depth, {static_cast<int>(lane)});
    b.raw_record(lanes[0], 30, event.id, {}, 8);
    b.raw_record(lanes[1], 50, event.id, {}, 8);
    const auto file = reduce::trace_file::from(b.bytes());
    const std::string chrome = written(file, trace_reduce::exporting::chrome_writer());
    check_nesting(chrome);
    for (const char* const line :
         {R"("process_name","pid":1,"tid":0,"args":{"name":"span"})",
          R"x("process_name","pid":4194305,"tid":0,"args":{"name":"span (1)"})x",
          R"("ph":"E","name":"request","cat":"event","pid":1,"tid":1,"ts":0.020})",
          R"("ph":"E","name":"request","cat":"event","pid":4194305,"tid":1,"ts":0.040})",
          R"("ph":"C","name":"depth","cat":"event","pid":4194305,)"}) {
        BOOST_TEST(contains(chrome, line), line);
    }
    const std::string perfetto =
        joined(perfetto_reader(written(file, trace_reduce::exporting::perfetto_writer())).lines());
    BOOST_TEST(contains(perfetto, ": 4194305 span (1)\n"));
    BOOST_TEST(count(perfetto, ": depth.n\n") == 2U);
    const csv_reader csv(written(file, trace_reduce::exporting::csv_writer()));
    BOOST_TEST(csv.at(1, "process").text == "0");
    BOOST_TEST(csv.at(2, "process").text == "1");
    BOOST_TEST(file.about().process_text(*file.about().find_lane(lanes[1])) == "1#1");
}

BOOST_AUTO_TEST_CASE(traces_of_the_same_and_of_like_named_processes_keep_their_own_lines) {
    // The same process twice, and another one that has its ids: of another machine, say.
    const auto make = [](std::uint64_t start) {
        file_builder b;
        b.clock_reading(0, 0, 1'700'000'000'000'000'000);
        const auto process = b.process(1200);
        b.put(b.plan().processes + process * 128 + 8, start, 8);
        const auto lane = b.lane(process, 1234, "main");
        const auto& event = b.event({3, "request", {}, event_kind::span});
        b.open(lane, 0);
        b.record(lane, 10, event, {}, 4);
        b.record(lane, 20, event, {}, 8);
        return b;
    };
    const file_builder builders[] = {make(5), make(5), make(6)};
    BOOST_REQUIRE(reduce::trace_file::from(builders[2].bytes()).processes()[0].start == 6U);
    std::vector<reduce::trace_file> files;
    for (const auto& each : builders) files.push_back(reduce::trace_file::from(each.bytes()));
    exporter::text_buffer chrome;
    exporter::text_buffer perfetto;
    trace_reduce::exporting::chrome_writer to_chrome;
    trace_reduce::exporting::perfetto_writer to_perfetto;
    for (const auto& file : files) {
        (void)to_chrome.add(file.about(), "x");
        (void)to_perfetto.add(file.about(), "x");
    }
    to_chrome.begin(chrome);
    to_perfetto.begin(perfetto);
    std::vector<reduce::cursor> cursors;
    for (const auto& file : files) cursors.push_back(file.forward());
    for (int turn = 0; turn < 2; ++turn) {
        for (std::size_t i = 0; i < files.size(); ++i) {
            const auto* item = cursors[i].next();
            BOOST_REQUIRE(item != nullptr);
            to_chrome.append(chrome, i, *item);
            to_perfetto.append(perfetto, i, *item);
        }
    }
    to_chrome.end(chrome);
    to_perfetto.end(perfetto);
    BOOST_TEST(json_check::valid(chrome.view()));
    check_nesting(chrome.view());  // would not, were the first two on one line
    BOOST_TEST(count(chrome.view(), "process_name") == 2U);
    BOOST_TEST(count(chrome.view(), "thread_name") == 3U);
    const std::string lines = joined(perfetto_reader(perfetto.view()).lines());
    BOOST_TEST(count(lines, "process ") == 2U);
    BOOST_TEST(count(lines, "thread ") == 2U);
    BOOST_TEST(count(lines, "track ") == 1U);
}

BOOST_AUTO_TEST_CASE(whatever_is_damaged_the_formats_are_whole) {
    const auto sound = everything({}, 30, 20);
    const listing golden(std::string(TRACE_RING_FORMATS_GOLDEN) + "/everything.listing");
    std::mt19937_64 random(7);
    std::size_t read = 0;
    for (int turn = 0; turn < 400; ++turn) {
        auto b = turn % 2 == 0 ? sound : golden.file();
        const auto bytes = b.bytes();
        for (auto times = 1 + random() % 6; times != 0; --times) {
            // Mostly in the tables and the sub-buffers' used parts, which are a small share.
            std::uint64_t at = random() % bytes.size();
            if (random() % 2 == 0)
                at = b.plan().sub_buffers +
                     random() % (bytes.size() - b.plan().sub_buffers) / 512 * 512 + random() % 128;
            if (random() % 4 == 0) at = b.plan().dictionary + random() % 512;
            if (at >= bytes.size()) continue;
            const auto value = static_cast<unsigned char>(random() >> (random() % 8));
            bytes[static_cast<std::size_t>(at)] ^= static_cast<std::byte>(value);
        }
        try {
            const auto part = random() % 8 == 0 ? random() % bytes.size() / 8 * 8 : bytes.size();
            const auto file = reduce::trace_file::from(bytes.first(static_cast<std::size_t>(part)));
            check_formats(file);
            ++read;
        } catch (const trace_ring::format_error&) {  // no trace at all any more
        }
    }
    BOOST_TEST(read > 200U);
    trace_ring_test::proof("hostile", read, "damaged files");
}

BOOST_AUTO_TEST_CASE(a_trace_of_nothing_is_whole) {
    const file_builder b;
    check_formats(reduce::trace_file::from(b.bytes()));
}

BOOST_AUTO_TEST_CASE(protoc_knows_all_that_perfetto_is_given) {
    if (std::system("protoc --version >/dev/null 2>&1") != 0) {
        BOOST_TEST_MESSAGE("protoc is not installed: not tried");
        return;
    }
    const listing golden(std::string(TRACE_RING_FORMATS_GOLDEN) + "/everything.listing");
    const auto file = reduce::trace_file::from(golden.file().bytes());
    const std::string trace = written(file, trace_reduce::exporting::perfetto_writer());
    const scratch_file in;
    const scratch_file out;
    in.write(trace);
    const std::string folder = TRACE_RING_FORMATS_GOLDEN "/..";
    const std::string command = "protoc --decode=trace --proto_path=" + folder + " " + folder +
                                "/perfetto.proto <" + in.path() + " >" + out.path();
    BOOST_REQUIRE(std::system(command.c_str()) == 0);
    std::istringstream text(out.read());
    std::size_t events = 0;
    for (std::string line; std::getline(text, line);) {
        const std::size_t at = line.find_first_not_of(' ');
        if (at == line.npos) continue;
        // A field that the schema lacks, or that lies otherwise, is shown by its number.
        BOOST_TEST((line[at] < '0' || line[at] > '9'), line);
        if (line.substr(at) == "track_event {") ++events;
    }
    BOOST_TEST(events == perfetto_reader(trace).events());
}

BOOST_AUTO_TEST_SUITE_END()
