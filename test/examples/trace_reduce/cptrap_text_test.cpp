// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// CPTRAP records as text and as JSON, damage among them.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <exporter/json_check.hpp>
#include <trace_reduce/cptrap/ebcdic.hpp>
#include <trace_reduce/cptrap/json.hpp>
#include <trace_reduce/cptrap/names.hpp>
#include <trace_reduce/cptrap/text.hpp>
#include <trace_ring/cptrap/record.hpp>
#include <trace_ring/cptrap/spool_reader.hpp>
#include <trace_ring/cptrap/spool_record.hpp>
#include <trace_ring/exporter/text/append.hpp>
#include <trace_ring/record/data_model.hpp>

BOOST_AUTO_TEST_SUITE(cptrap_exporters)

namespace exporter = trace_ring::exporter;
namespace record = trace_ring::record;
namespace reduce = trace_ring::reduce;

namespace {

/// A spool file: vector C1, an entry, a loss, a type of nobody's, damage, and a torn end.
std::vector<std::uint64_t> sample() {
    std::vector<std::byte> out;
    record::spool_page page;
    const auto add = [&page](record::cptrap_type type, std::uint16_t code, auto... bytes) {
        const std::array<std::byte, sizeof...(bytes)> data{static_cast<std::byte>(bytes)...};
        std::array<std::byte, record::cptrap_most_bytes> one{};
        page.add(std::span(one).first(record::put_cptrap(one, type, code, data)));
    };
    add(record::cptrap_type::cp_interface, 3, 0xC1, 0xC2, 0xC3, 0xC4);
    add(record::cptrap_type::table_entry, 0x4B, 0x4B, 'a', '"', '\\', 0xE0, 0x7F, 0, 1, 2, 3, 4, 5,
        6, 7, 8, 9);
    add(record::cptrap_type::lost, 2, 0, 0, 0, 0, 0, 0, 0, 17);
    add(record::cptrap_type{0xC9}, 0xABCD);
    add(record::cptrap_type::cp_interface, 0xFFFF, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
        15, 0xF1);
    page.add(std::array{std::byte{0x3E}, std::byte{1}});
    out.insert(out.end(), page.bytes().begin(), page.bytes().end());
    page.clear();
    add(record::cptrap_type::cp_interface, 4, 0xF1);
    out.insert(out.end(), page.bytes().begin(), page.bytes().begin() + 16);
    std::vector<std::uint64_t> words(out.size() / 8);
    std::memcpy(words.data(), out.data(), out.size());
    return words;
}

template <class Writer>
std::string written(const Writer& writer, std::string_view file = {}) {
    const auto words = sample();
    auto reader = reduce::spool_reader::from(std::as_bytes(std::span(words)));
    exporter::text_buffer out;
    while (const auto item = reader.next()) writer.append(out, file, item);
    writer.append(out, file, {});  // the end is nothing
    return std::string(out.view());
}

}  // namespace

BOOST_AUTO_TEST_CASE(text_shows_type_code_length_and_data_in_three_ways) {
    BOOST_TEST(written(trace_reduce::cptrap_text_writer()) ==
               R"(0x00000000  3F interface    code 0003     4 bytes
    0000  C1C2C3C4                             *ABCD*              |....|
0x0000000C  C5 table_entry  code 4B      16 bytes  start_io, attached processor
    0000  4B61225C E07F0001 02030405 06070809  *./.*\"..........*  |Ka"\............|
0x00000024  -- 17 records lost: refused
0x00000034  C9 unknown      code ABCD     0 bytes
0x0000003C  3F interface    code FFFF    17 bytes
    0000  00010203 04050607 08090A0B 0C0D0E0F  *................*  |................|
    0010  F1                                   *1*                 |.|
0x00000055  -- 4011 bytes unreadable: a record of a type whose length is not known (3E)
    0000  3E010000 00000000 00000000 00000000  *................*  |>...............|
    0010  00000000 00000000 00000000 00000000  *................*  |................|
    0020  00000000 00000000 00000000 00000000  *................*  |................|
    0030  00000000 00000000 00000000 00000000  *................*  |................|
    ...
0x00001000  3F interface    code 0004     1 byte
    0000  F1                                   *1*                 |.|
0x00001009  -- torn: the file ends within the spool record; 7 bytes of a record are there
    0000  00000000 000000                      *.......*           |.......|
)");
    BOOST_TEST(written(trace_reduce::cptrap_text_writer(), "a\x1b\n.file")
                   .starts_with("a\\x1b\\n.file: 0x00000000  3F interface"));
    BOOST_TEST(written(trace_reduce::cptrap_text_writer(true))
                   .starts_with("\x1b[2m0x00000000\x1b[0m  3F \x1b[36minterface\x1b[0m "));
}

BOOST_AUTO_TEST_CASE(json_is_one_valid_object_an_item_with_all_that_text_has) {
    const auto text = written(trace_reduce::cptrap_json_writer());
    std::size_t lines = 0;
    for (std::size_t at = 0; at < text.size(); ++lines) {
        const std::size_t end = text.find('\n', at);
        BOOST_TEST(trace_ring_test::json_check::valid(text.substr(at, end - at)));
        at = end + 1;
    }
    BOOST_TEST(lines == 8U);
    BOOST_TEST(text.starts_with(
        R"({"kind":"record","offset":0,"page":0,"index":0,"type":"3F","name":"interface",)"
        R"("code":"0003","length":12,"data":"c1c2c3c4","ebcdic":"ABCD"}
{"kind":"record","offset":12,"page":0,"index":1,"type":"C5","name":"table_entry","code":"4B","length":24,)"
        R"("event":"start_io","attached":true,"data":"4b61225ce07f00010203040506070809",)"
        R"("ebcdic":"./.*\\\".........."}
)"));
    BOOST_TEST(
        text.find(
            R"({"kind":"loss","offset":36,"page":0,"index":2,"cause":"refused","count":17})") !=
        std::string::npos);
    BOOST_TEST(
        text.find(R"("type":"C9","name":null,"code":"ABCD","length":8,"data":"","ebcdic":""})") !=
        std::string::npos);
    BOOST_TEST(text.find(R"({"kind":"unreadable","offset":85,"page":0,"index":5,"bytes":4011,)") !=
               std::string::npos);
    BOOST_TEST(text.find(R"({"kind":"torn","offset":4105,"page":1,"index":1,"bytes":7,)") !=
               std::string::npos);
    BOOST_TEST(written(trace_reduce::cptrap_json_writer(), "x")
                   .starts_with(R"({"kind":"record","file":"x",)"));
}

BOOST_AUTO_TEST_CASE(a_type_without_a_header_is_shown_as_its_bytes) {
    std::vector<std::uint64_t> words(512);
    const std::uint8_t bytes[] = {0x3E, 0xC1, 0xC2, 0xC3};
    std::memcpy(words.data(), bytes, sizeof bytes);
    auto reader = reduce::spool_reader::from(std::as_bytes(std::span(words)));
    reader.lengths(record::cptrap_lengths().fixed(record::cptrap_type{0x3E}, 4));
    exporter::text_buffer out;
    const auto item = reader.next();
    trace_reduce::cptrap_text_writer().append(out, {}, item);
    trace_reduce::cptrap_json_writer().append(out, {}, item);
    BOOST_TEST(out.view() == R"(0x00000000  3E unknown      no header     3 bytes
    0000  C1C2C3                               *ABC*               |...|
{"kind":"record","offset":0,"page":0,"index":0,"type":"3E","name":null,"length":4,"data":"c1c2c3","ebcdic":"ABC"}
)");
}

BOOST_AUTO_TEST_CASE(every_event_of_the_list_has_a_name_that_leads_back_to_it) {
    for (unsigned i = 0; i < 256; ++i) {
        const auto event = static_cast<record::cp_event>(i);
        const auto name = trace_reduce::name_of(event);
        BOOST_TEST(name.empty() == (i == 0 || i > 0x18));
        if (!name.empty()) BOOST_CHECK(trace_reduce::cp_event_named(name) == event);
    }
    BOOST_TEST(!trace_reduce::cp_event_named("").has_value());
}

BOOST_AUTO_TEST_CASE(characters_are_those_of_the_usual_code_pages_and_all_are_printable) {
    const auto shown = [](std::initializer_list<int> bytes) {
        std::string out;
        for (const int byte : bytes)
            out += trace_reduce::ebcdic_character(static_cast<std::byte>(byte));
        return out;
    };
    BOOST_TEST(shown({0xC1, 0x89, 0x91, 0xA2, 0xE9, 0xF9, 0x40, 0x4B, 0x5A, 0x7C, 0x61}) ==
               "AijsZ9 .!@/");
    BOOST_TEST(shown({0x00, 0x5F, 0xAD, 0xBD, 0xCA, 0xFF}) == "......");  // other, or in one alone
    for (int i = 0; i < 256; ++i) {
        const char c = trace_reduce::ebcdic_character(static_cast<std::byte>(i));
        BOOST_TEST((c >= 0x20 && c < 0x7F));
    }
}

BOOST_AUTO_TEST_SUITE_END()
