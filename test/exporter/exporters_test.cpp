// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Text and JSON where they are delicate: strange names and strings, numbers at the edge, times,
/// damage. The listings in test/reduce/golden show ordinary traces.

#include <stdlib.h>
#include <time.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <exporter/json_check.hpp>
#include <reduce/file_builder.hpp>
#include <trace_reduce/exporting/csv.hpp>
#include <trace_ring/exporter/json.hpp>
#include <trace_ring/exporter/text.hpp>
#include <trace_ring/reduce/trace_file.hpp>

BOOST_AUTO_TEST_SUITE(exporters)

using namespace trace_ring_test;
namespace reduce = trace_ring::reduce;
namespace exporter = trace_ring::exporter;

namespace {

struct one_lane : file_builder {
    explicit one_lane(std::string_view name = "worker") {
        thread = lane(process(1200), 1234, name);
        open(thread, 0);
    }
    std::uint32_t thread = 0;

    [[nodiscard]] std::string text(const exporter::text_options& options) const {
        return shown(
            [&](const reduce::trace_file& f) { return exporter::text_writer(f.time(), options); });
    }
    [[nodiscard]] std::string text() const { return text({.time = exporter::time_format::raw}); }
    [[nodiscard]] std::string json() const {
        std::string lines =
            shown([](const reduce::trace_file& f) { return exporter::json_writer(f.time()); });
        for (std::size_t at = 0; at < lines.size();) {
            const std::size_t end = lines.find('\n', at);
            const std::string line = lines.substr(at, end - at);
            BOOST_TEST(json_check::valid(line), line);
            at = end + 1;
        }
        return lines;
    }

private:
    template <class Make>
    [[nodiscard]] std::string shown(const Make& make) const {
        const auto file = reduce::trace_file::from(bytes());
        auto writer = make(file);
        std::string out;
        for (auto cursor = file.forward(); const auto* item = cursor.next();) {
            writer.append(out, *item);
        }
        return out;
    }
};

[[nodiscard]] bool contains(const std::string& all, std::string_view part) {
    return all.find(part) != all.npos;
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_turns_the_direction_of_text_is_escaped_as_controls_are) {
    const auto text = [](std::string_view of) {
        exporter::text_buffer out;
        exporter::impl::append_escaped(out, of, '"');
        return std::string(out.view());
    };
    const auto json = [](std::string_view of) {
        exporter::text_buffer out;
        exporter::impl::append_json_string(out, of);
        return std::string(out.view());
    };
    const auto csv = [](std::string_view of) {
        exporter::text_buffer out;
        trace_reduce::exporting::impl::append_csv_text(out, of);
        return std::string(out.view());
    };
    BOOST_TEST(text("a\u202Eb\u0085") == "a\\xe2\\x80\\xaeb\\xc2\\x85");
    BOOST_TEST(json("a\u202Eb\u0085") == "\"a\\u202eb\\u0085\"");
    BOOST_TEST(csv("a\u202Eb") == "hex:61e280ae62");
    for (const std::uint32_t code : {0x80U, 0x9FU, 0x61CU, 0x200EU, 0x200FU, 0x2028U, 0x2029U,
                                     0x202AU, 0x202EU, 0x2066U, 0x2069U}) {
        std::string mark;
        if (code >= 0x800) mark += static_cast<char>(0xE0 | code >> 12);
        mark += static_cast<char>(code >= 0x800 ? 0x80 | (code >> 6 & 0x3F) : 0xC0 | code >> 6);
        mark += static_cast<char>(0x80 | (code & 0x3F));
        BOOST_TEST_CONTEXT(code) {
            BOOST_TEST((exporter::impl::code_point(mark) == code));
            for (const auto& shown : {text(mark), json(mark), csv(mark)}) {
                BOOST_TEST(shown.find(mark) == shown.npos);
            }
            BOOST_TEST(json_check::valid(json(mark)));
        }
    }
    // Their neighbours are letters, spaces and signs like any other.
    for (const std::string_view plain : {"\u00A0", "\u061B", "\u061D", "\u200D", "\u2010", "\u2027",
                                         "\u202F", "\u2065", "\u206A", "\U0001F600"}) {
        for (const auto& shown : {text(plain), json(plain), csv(plain)}) {
            BOOST_TEST(shown.find(plain) != shown.npos);
        }
    }
}

BOOST_AUTO_TEST_CASE(no_name_or_string_can_command_a_terminal) {
    one_lane b("wor\x1b[2J\xff");
    const auto& event = b.event({1,
                                 "na\nme\x7f",
                                 {{"fi\x9b"
                                   "eld=",
                                   field_type::character, field_form::variable}}});
    b.record(b.thread, 1, event,
             {std::string_view("\x1b]0;x\a \0 \xC2\x9B \xC3\xA9 \\ \"\t\r", 20)});
    BOOST_TEST(
        b.text() ==
        "1 [1234 wor\\x1b[2J\\xff] na\\nme\\x7f fi\\x9beld\\==\"\\x1b]0;x\\x07 \\x00 \\xc2\\x9b "
        "\xC3\xA9 \\\\ \\\"\\t\\r\"\n");
    const std::string json = b.json();
    BOOST_TEST(contains(json, "\"thread\":\"wor\\u001b[2J\\ufffd\""));
    BOOST_TEST(contains(json, "\"event\":\"na\\u000ame\\u007f\""));
    BOOST_TEST(contains(json,
                        "\"fi\\ufffdeld=\":\"\\u001b]0;x\\u0007 \\u0000 \\u009b \xC3\xA9 "
                        "\\\\ \\\"\\u0009\\u000d\""));
}

BOOST_AUTO_TEST_CASE(only_valid_utf8_passes_as_text) {
    using exporter::impl::utf8_length;
    const std::pair<std::string_view, std::size_t> cases[] = {
        {"a", 1},
        {"\xC2\x80", 2},
        {"\xDF\xBF", 2},
        {"\xE0\xA0\x80", 3},
        {"\xEF\xBF\xBF", 3},
        {"\xF0\x90\x80\x80", 4},
        {"\xF4\x8F\xBF\xBF", 4},
        {"\x80", 0},
        {"\xBF", 0},
        {"\xC0\x80", 0},          // overlong
        {"\xC1\xBF", 0},          //
        {"\xE0\x9F\xBF", 0},      //
        {"\xF0\x8F\xBF\xBF", 0},  //
        {"\xED\xA0\x80", 0},      // a surrogate
        {"\xF4\x90\x80\x80", 0},  // beyond U+10FFFF
        {"\xF5\x80\x80\x80", 0},  //
        {"\xFF", 0},
        {"\xC2", 0},  // cut
        {"\xE2\x82", 0},
        {"\xF0\x9F\x98", 0},
        {"\xE2\x28\xA1", 0},
    };
    for (const auto& [text, length] : cases) {
        BOOST_TEST(utf8_length(text) == length, "text of " << text.size() << " bytes");
        one_lane b;
        const auto& event = b.event({1, "e", {{"t", field_type::character, field_form::variable}}});
        b.record(b.thread, 1, event, {text});
        BOOST_TEST(contains(b.json(), "{\"hex\":") == (length == 0));
    }
}

BOOST_AUTO_TEST_CASE(numbers_are_exact_and_json_stays_valid) {
    one_lane b;
    const auto& event = b.event({1,
                                 "e",
                                 {{"a", field_type::f64},
                                  {"b", field_type::f32},
                                  {"c", field_type::f64, field_form::variable},
                                  {"d", field_type::u64},
                                  {"e", field_type::i64},
                                  {"f", field_type::boolean},
                                  {"g", field_type::character},
                                  {"h", field_type::address}}});
    const double inf = std::numeric_limits<double>::infinity();
    const auto bits = [](double x) { return std::bit_cast<std::uint64_t>(x); };
    b.record(b.thread, 1, event,
             {std::numeric_limits<double>::quiet_NaN(), -std::numeric_limits<float>::infinity(),
              std::vector<std::uint64_t>{bits(inf), bits(5e-324), bits(-0.0),
                                         bits(1.7976931348623157e308), bits(0.1), bits(1e21)},
              ~std::uint64_t{0}, std::uint64_t{1} << 63, 7, 0xFF, 0});
    BOOST_TEST(b.text() ==
               "1 [1234 worker] e a=nan b=-inf c=[inf 5e-324 -0 1.7976931348623157e+308 0.1 1e+21] "
               "d=18446744073709551615 e=-9223372036854775808 f=true g='\\xff' h=0x0\n");
    const std::string json = b.json();
    BOOST_TEST(
        contains(json,
                 "\"fields\":{\"a\":\"NaN\",\"b\":\"-Infinity\",\"c\":[\"Infinity\",5e-324,-0,"
                 "1.7976931348623157e+308,0.1,1e+21],\"d\":18446744073709551615,"
                 "\"e\":-9223372036854775808,\"f\":true,\"g\":{\"hex\":\"ff\"},\"h\":\"0x0\"}"));
}

BOOST_AUTO_TEST_CASE(floating_point_numbers_are_the_shortest_that_read_back) {
    std::mt19937_64 random(7);
    const auto check = [](double value) {
        char expected[64];
        const auto end = std::to_chars(expected, expected + sizeof expected, value).ptr;
        exporter::text_buffer out;
        exporter::impl::append_floating(out, value);
        if (out.view() == std::string_view(expected, end)) return;
        BOOST_ERROR(std::string(out.view()) << " is not " << std::string(expected, end));
    };
    for (const double value : {0.0, -0.0, 0.001, 0.0005, 99999.999, 100000.0, 0.1 + 0.2, 1e-3}) {
        check(value);
        check(-value);
        check(std::nextafter(value, 1e9));
        check(std::nextafter(value, -1e9));
    }
    for (int i = 0; i < 20000; ++i) {
        const auto number = static_cast<double>(random() % 200'000'000);
        check(number / 1000);
        check(-number / 10000);
        check(std::nextafter(number / 1000, 0));
        check(std::bit_cast<double>(random()));
    }
}

BOOST_AUTO_TEST_CASE(local_time_has_date_and_nanoseconds) {
    ::setenv("TZ", "UTC-2", 1);  // two hours east
    ::tzset();
    one_lane b;
    b.clock_reading(1'000'000'000, 1'000'000'000, 1'709'164'800'000'000'000);  // 2024-02-29
    const auto& event = b.event({1, "e", {}});
    b.record(b.thread, 1'000'000'007, event, {});
    b.record(b.thread, 1'000'000'008, event, {});
    b.record(b.thread, 86'401'000'000'000, event, {});
    b.record(b.thread, 86'402'500'000'000, event, {});
    BOOST_TEST(b.text({}) ==
               "2024-02-29 02:00:00.000000007 [1234 worker] e\n"
               "2024-02-29 02:00:00.000000008 [1234 worker] e\n"
               "2024-03-01 02:00:00.000000000 [1234 worker] e\n"
               "2024-03-01 02:00:01.500000000 [1234 worker] e\n");
    BOOST_TEST(contains(b.json(), "\"ticks\":1000000007,\"time_ns\":1709164800000000007,"));
}

BOOST_AUTO_TEST_CASE(without_a_clock_ticks_are_shown) {
    one_lane b;
    const auto& event = b.event({1, "e", {}});
    b.record(b.thread, 17, event, {});
    BOOST_TEST(b.text({}) == "17 [1234 worker] e\n");
    BOOST_TEST(!contains(b.json(), "time_ns"));
}

BOOST_AUTO_TEST_CASE(times_before_the_first_reading_are_negative) {
    one_lane b;
    b.clock_reading(5'000'000'000, 5'000'000'000, 1'700'000'000'000'000'000);
    const auto& event = b.event({1, "e", {}});
    b.record(b.thread, 3'999'999'999, event, {});
    BOOST_TEST(b.text({.time = exporter::time_format::relative}) ==
               "-1.000000001 [1234 worker] e\n");
}

BOOST_AUTO_TEST_CASE(processes_files_and_colours_are_shown_on_demand) {
    one_lane b;
    const auto& event = b.event({1, "e", {{"n"}}});
    b.record(b.thread, 17, event, {1});
    exporter::text_options options{.time = exporter::time_format::raw, .processes = true};
    options.file = "my\nfile";
    BOOST_TEST(b.text(options) == "my\\nfile: 17 [1200/1234 worker] e n=1\n");
    options = {.time = exporter::time_format::raw, .colour = true};
    BOOST_TEST(b.text(options) == "\x1b[2m17 [1234 worker]\x1b[0m \x1b[36me\x1b[0m n=1\n");
}

BOOST_AUTO_TEST_CASE(words_of_every_length_are_shown_whole) {
    for (std::size_t length = 1; length <= 100; ++length) {
        std::string word;
        for (std::size_t i = 0; i < length; ++i) word += static_cast<char>('a' + i % 26);
        one_lane b(std::string_view(word).substr(0, 15));
        const auto& event = b.event({1,
                                     word,
                                     {{word},
                                      {"b", field_type::boolean},
                                      {"text", field_type::character, field_form::variable}}});
        for (std::uint64_t i = 1; i <= 3; ++i) {
            b.record(b.thread, i, event, {length * i, i % 2 == 0, std::string_view(word)});
        }
        exporter::text_options options{.time = exporter::time_format::raw};
        options.file = word;
        std::string expected;
        for (std::uint64_t i = 1; i <= 3; ++i) {
            expected += word + ": " + std::to_string(i) + " [1234 " + word.substr(0, 15) + "] " +
                        word + " " + word + "=" + std::to_string(length * i) +
                        (i % 2 == 0 ? " b=true" : " b=false") + " text=\"" + word + "\"\n";
        }
        BOOST_TEST(b.text(options) == expected);
    }
}

BOOST_AUTO_TEST_CASE(the_farthest_times_fit) {
    one_lane b;
    b.clock_reading(0, 0, ~std::uint64_t{0} >> 1);
    const auto& event = b.event({1, "e", {}});
    b.record(b.thread, 5, event, {});
    // 2^63 + 4 ns since 1970: 5 ns after the last date that a signed number holds, which is shown.
    BOOST_TEST(contains(b.text({}), ".854775807 [1234 worker] e\n"));
    const std::string relative = b.text({.time = exporter::time_format::relative});
    BOOST_TEST(relative == "0.000000005 [1234 worker] e\n");
}

BOOST_AUTO_TEST_CASE(losses_and_damage_are_json_too) {
    one_lane b;
    const auto& event = b.event({1, "e", {}});
    b.record(b.thread, 17, event, {});
    b.raw_record(b.thread, 16, 99, {0x0102});
    b.lost(b.thread, 5, 0, 0);
    b.put(b.slot_at(1) + 50, 4, 2);  // four records, it says
    BOOST_TEST(
        b.json() ==
        R"({"kind":"loss","cause":"refused","count":5,"lane":1,"position":0,"ticks":0})"
        "\n"
        R"({"kind":"record","ticks":17,"lane":1,"position":0,"pid":1200,"process":0,"tid":1234,"thread":"worker","depth":0,"event":"e","fields":{}})"
        "\n"
        R"({"kind":"clock_jump","lane":1,"position":1,"from_ticks":17,"ticks":16})"
        "\n"
        R"({"kind":"record","ticks":16,"lane":1,"position":1,"pid":1200,"process":0,"tid":1234,"thread":"worker","depth":0,"event":null,"id":99,"raw":"0201000000000000","fault":"a record of an event that the dictionary lacks"})"
        "\n"
        R"({"kind":"loss","cause":"damaged","count":2,"lane":1,"position":2,"ticks":16,"offset":)" +
            std::to_string(b.slot_at(1) + 88) +
            R"(,"fault":"fewer records than the sub-buffer counts"})"
            "\n");
}

BOOST_AUTO_TEST_CASE(the_check_of_json_tells_good_from_bad) {
    for (const char* good : {"{}", "[]", "0", "-0.5e+10", R"({"a":[1,{"b":null}],"c":"\u00e9\n"})",
                             "true", " [ 1 , 2 ] "}) {
        BOOST_TEST(json_check::valid(good), good);
    }
    for (const char* bad :
         {"",   "{",     "}",   "[1,]",     "{\"a\":}",  "{\"a\" 1}",   "01",
          "-",  "1.",    "nan", "\"\x01\"", "\"\\x00\"", "\"\\u12g4\"", "\"\xff\"",
          "\"", "{} {}", "'a'", "1e",       "+1",        "{a:1}"}) {
        BOOST_TEST(!json_check::valid(bad), bad);
    }
}

BOOST_AUTO_TEST_SUITE_END()
