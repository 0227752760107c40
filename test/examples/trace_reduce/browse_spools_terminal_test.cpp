// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// trace-reduce --browse of CPTRAP files in a pseudo-terminal: its keys, screens of several sizes,
/// and what is reported when the terminal is given back.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <examples/trace_reduce/pseudo_terminal.hpp>
#include <reduce/scratch_file.hpp>

BOOST_AUTO_TEST_SUITE(browse_spools_terminal)

using namespace trace_ring_test;

namespace {

constexpr std::string_view page_down = "\x1b[6~", page_up = "\x1b[5~", home = "\x1bOH",
                           end = "\x1bOF", right = "\x1bOC", left = "\x1bOD";

std::string record_of(unsigned type, unsigned code, const std::string& data) {
    const std::size_t length = data.size() + 8;
    std::string out{static_cast<char>(type), 0};
    for (const std::size_t each : {std::size_t{code}, length, std::size_t{0}}) {
        out += static_cast<char>(each >> 8U);
        out += static_cast<char>(each & 0xFFU);
    }
    return out + data;
}
std::string page_of(std::string records) {
    records.resize(4096, '\0');
    return records;
}
std::string text(const char* format, unsigned value) {
    char out[80];
    return {out, static_cast<std::size_t>(std::snprintf(out, sizeof out, format, value))};
}
/// Sixteen spool records of 20 records each: in #3 a loss comes first, and #5 ends in damage.
std::string sixteen() {
    std::string all;
    for (unsigned page = 0; page < 16; ++page) {
        std::string records;
        if (page == 3) records += record_of(0xD3, 2, std::string(7, '\0') + '\x11');
        for (unsigned i = 0; i < 20; ++i) {
            if (i % 10 == 9) {
                records += record_of(0xC5, 0x4B, "K0123456789abcde");
            } else {
                // \xC1\xC2\xC3 is ABC in EBCDIC.
                const bool special = page == 8 && i == 4;
                records += record_of(0x3F, page * 0x100 + i,
                                     text("page %02u ", page) + text("record %02u ", i) +
                                         std::string(60, '\x02') + (special ? "\xC1\xC2\xC3" : ""));
            }
        }
        if (page == 5) records += "\x3E" + std::string(100, 'j');
        all += page_of(std::move(records));
    }
    return all;
}

struct browser : in_terminal {
    explicit browser(std::vector<std::string> arguments, int rows = 12, int columns = 80)
        : in_terminal(with(std::move(arguments)), rows, columns) {}
    static std::vector<std::string> with(std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), {TRACE_REDUCE, "--browse"});
        return arguments;
    }
    [[nodiscard]] bool has(int y, std::string_view what) {
        const bool found = wait_for(y, what);
        if (!found) {
            BOOST_TEST_MESSAGE(what);
            for (int i = 0; i < screen.rows(); ++i) BOOST_TEST_MESSAGE(screen.line(i));
        }
        return found;
    }
    [[nodiscard]] bool anywhere(std::string_view what) {
        return wait([&] {
            for (int y = 0; y < screen.rows(); ++y) {
                if (screen.line(y).find(what) != std::string::npos) return true;
            }
            return false;
        });
    }
};

}  // namespace

BOOST_AUTO_TEST_CASE(one_goes_through_a_cptrap_file_by_keys) {
    scratch_file file;
    file.write(sixteen());
    browser b({file.path()});
    BOOST_TEST(b.has(0, " 00000000 0:0  3F interface          0000 78 bytes 70616765"));
    BOOST_TEST(b.has(9, " 00000306 0:9  C5 start_io, attached 4B   16 bytes 4B303132"));
    BOOST_TEST(b.has(11, "  0:0  @0x0  0.0%"));
    b.type(page_down);
    BOOST_TEST(b.has(0, " 0:11 "));
    b.type(" ");
    BOOST_TEST(b.has(0, " 1:2 "));
    b.type(page_up);
    BOOST_TEST(b.has(0, " 0:11 "));
    b.type(end);
    BOOST_TEST(b.has(10, " 15:19 C5 start_io, attached"));
    b.type(home);
    BOOST_TEST(b.has(0, " 0:0 "));
    b.type("jj\rkj");
    BOOST_TEST(b.has(11, "  0:3  @0x102  0.4%"));

    b.type("g3:5\r");
    BOOST_TEST(b.has(3, " 3:5 "));
    b.type("g#12\r");
    BOOST_TEST(b.has(3, " 0000C000 12:0 "));
    b.type("g@0x3000\r");
    BOOST_TEST(b.has(3, " 00003000 3:0  -- 17 records lost: refused"));
    b.type("g25%\r");
    BOOST_TEST(b.has(11, "  4:0  @0x4000  25.0%"));
    b.type("gsomewhere\r");
    BOOST_TEST(b.has(11, "no place: somewhere (#5 spool record, 5:3 record in it, @0x5000 offset"));

    b.type("/ABC\r");
    BOOST_TEST(b.has(11, "found at X'004E' of its data: x shows it"));
    b.type("x");
    BOOST_TEST(b.has(11, "  8:4 "));
    int y = 0;
    while (y < 10 && !b.screen.line(y).starts_with("  0040 ")) ++y;
    BOOST_TEST(b.screen.line(y) ==
               "  0040 02020202 02020202 02020202 0202C1C2 *..............AB* |................|");
    BOOST_TEST(b.screen.underlined(y) == "C1C2AB..");
    BOOST_TEST(b.screen.underlined(y + 1) == "C3C.");
    b.type("x?record 07\r");
    BOOST_TEST(b.has(11, "found at X'0008' of its data"));
    b.type(std::string(home) + "G?record 07\r");
    BOOST_TEST(b.has(3, " 15:7 "));
    b.type("n");
    BOOST_TEST(b.has(3, " 14:7 "));
    b.type("N");
    BOOST_TEST(b.has(3, " 15:7 "));
    b.type("g7:7\r");
    b.type("/X'4B30'\r");
    BOOST_TEST(b.has(11, "  7:9 "));
    b.type("/0xF\r");
    BOOST_TEST(b.has(11, "0xF: bytes are pairs of hexadecimal digits"));
    b.type("?attached\r");
    BOOST_TEST(b.has(11, "  6:19 "));
    b.type("/nowhere\r");
    BOOST_TEST(b.has(11, "not found: nowhere"));

    b.type("ma");
    BOOST_TEST(b.has(11, "mark a"));
    b.type(home);
    BOOST_TEST(b.has(0, " 0:0 "));
    b.type("'a");
    BOOST_TEST(b.has(3, "*"));
    BOOST_TEST(b.has(3, " 6:19 "));

    b.type("ftype start_io\r");
    BOOST_TEST(b.has(11, "filter type start_io"));
    b.type(home);
    BOOST_TEST(b.has(0, " 0:9  C5 start_io, attached"));
    BOOST_TEST(b.has(1, " 0:19 C5 start_io, attached"));
    BOOST_TEST(b.has(6, " 3:0  -- 17 records lost: refused"));
    b.type("f code wrong\r");
    BOOST_TEST(b.has(11, "code: \"wrong\""));
    b.type("f");
    BOOST_TEST(b.has(11, "filter: type start_io code wrong"));
    b.type("\x15\r");
    BOOST_TEST(b.has(1, " 0:10 "));

    b.type("c");
    BOOST_TEST(b.has(11, "columns:  [ ] f file  [x] o offset  [x] r record"));
    b.type("otcl\r");
    BOOST_TEST(b.has(1, " 0:10 70616765 20303020"));
    b.type("cotcl\r");
    BOOST_TEST(b.has(1, " 0:10 3F interface"));
    b.type("q");
    BOOST_TEST(b.end() == 2);  // damage was met
    BOOST_TEST(b.restored());
    BOOST_TEST(b.screen.unknown() == "");
    // 18 interface records of 86 bytes and 2 entries of 24 before it.
    BOOST_TEST(b.anywhere(": offset " + std::to_string(5 * 4096 + 18 * 86 + 2 * 24) + ": a re"));
}

BOOST_AUTO_TEST_CASE(a_small_screen_shows_lines_data_and_help_bit_by_bit) {
    scratch_file file;
    file.write(sixteen());
    browser b({file.path()}, 5, 20);
    BOOST_TEST(b.has(0, " 00000000 0:0 3F int"));
    BOOST_TEST(b.has(3, " 00000102 0:3 3F int"));
    b.type(right);
    BOOST_TEST(b.has(0, "0:0 3F interface"));
    b.type(left);
    BOOST_TEST(b.has(0, " 00000000 0:0 3F int"));
    b.type("x");
    BOOST_TEST(b.has(1, "  0000 70616765 2030"));
    b.type(end);
    BOOST_TEST(b.has(3, " 0000F624 15:19 C5 s"));
    b.type(home);
    b.type("jjjjj");
    BOOST_TEST(b.has(3, "  0040 02020202 0202"));
    b.type("x");
    BOOST_TEST(b.has(0, " 00000000 0:0 3F int"));
    BOOST_TEST(b.has(1, " 00000056 0:1 3F int"));
    b.type("h");
    std::string all;
    const auto part_of_help = [&](int number) { return b.has(4, std::to_string(number) + '/'); };
    BOOST_TEST(part_of_help(1));
    const int parts = std::stoi(b.screen.line(4).substr(2));
    BOOST_TEST(parts > 5);
    for (int part = 1; part <= parts && part_of_help(part); ++part) {
        for (int y = 0; y < 4; ++y) {
            const auto line = b.screen.line(y);
            all += line.substr(std::min(line.find_first_not_of(' '), line.size())) + ' ';
        }
        b.type(" ");
    }
    BOOST_TEST(b.has(0, " 00000000 0:0 3F int"));
    for (const char* each : {"x show or hide", "5:3 (record 3 in it", "X'C1C2'", "q quit"}) {
        std::string words;
        for (const char c : all) {
            if (c != ' ' || !words.ends_with(' ')) words += c;
        }
        BOOST_TEST(words.find(each) != std::string::npos, words);
    }
    b.resize(12, 100);
    BOOST_TEST(b.has(0, "78 bytes 70616765 20303020 "));
    BOOST_TEST(b.has(11, "0:0  @0x0  0.0%"));
    b.resize(3, 60);
    BOOST_TEST(b.has(2, "0:0  @0x0  0.0%"));
    BOOST_TEST(b.has(1, " 00000056 0:1 3F interface 0001 78 bytes "));
    b.resize(1, 20);
    b.type("j");
    b.resize(24, 80);
    BOOST_TEST(b.has(23, "0:1  @0x56  0.1%"));
    b.type("q");
    BOOST_TEST(b.end() == 0);
    BOOST_TEST(b.restored());
}

BOOST_AUTO_TEST_CASE(it_opens_filtered_and_in_a_range_of_several_files) {
    scratch_file first, second;
    first.write(sixteen());
    second.write(sixteen());
    const auto name = second.path().substr(second.path().rfind('/') + 1);
    browser b({first.path(), second.path(), "--type", "start_io", "--from", "7:9", "--to", "#9"},
              12, 120);
    BOOST_TEST(b.has(0, " 7:9  C5 start_io, attached"));
    BOOST_TEST(b.has(3, " 8:19 C5 start_io, attached"));
    BOOST_TEST(b.has(4, name + " 00007306 7:9  C5 start_io"));
    BOOST_TEST(b.has(7, " 8:19 "));
    BOOST_TEST(b.has(11, "and 1 more  7:9  @0x7306  44.9%  from 7:9 to #9  filter type start_io"));
    BOOST_TEST(b.screen.line(8) == "");
    b.type("f\x15\r");
    BOOST_TEST(b.has(1, " 7:10 "));
    b.type(end);
    BOOST_TEST(b.has(10, name));
    BOOST_TEST(b.has(10, " 8:19 "));
    b.type("q");
    BOOST_TEST(b.end() == 0);
    browser pages({first.path(), "--page", "6-7"});
    BOOST_TEST(pages.has(0, " 00006000 6:0 "));
    BOOST_TEST(pages.has(11, "page 6-7"));
    pages.type(end);
    BOOST_TEST(pages.has(10, " 7:19 "));
    pages.type("q");
    BOOST_TEST(pages.end() == 0);  // the damage in #5 was not met
}

BOOST_AUTO_TEST_CASE(a_growing_file_is_followed) {
    scratch_file file;
    file.write(page_of(record_of(0x3F, 1, "first")));
    browser b({file.path(), "--follow"});
    BOOST_TEST(b.has(0, "0001 5 bytes 66697273 74 "));
    BOOST_TEST(b.has(11, "following"));
    std::ofstream out(file.path(), std::ios::binary | std::ios::app);
    for (unsigned code = 2; code < 30; ++code) {
        out << page_of(record_of(0x3F, code, text("code %u", code))) << std::flush;
        const int row = code < 12 ? static_cast<int>(code) - 1 : 10;
        BOOST_TEST(b.has(row, text("%04X ", code)));
    }
    b.type("k");
    BOOST_TEST(b.has(11, "  27:0 "));
    BOOST_TEST(b.screen.line(11).find("following") == std::string::npos);
    out << page_of(record_of(0x3F, 30, "more")) << std::flush;
    b.type("jj");
    BOOST_TEST(b.has(11, "  29:0 "));
    b.type("F");
    BOOST_TEST(b.has(11, "following"));
    out << "\x3F" << std::flush;
    b.type("q");
    BOOST_TEST(b.end() == 2);  // it ends torn
    BOOST_TEST(b.restored());
    BOOST_TEST(b.anywhere(": torn: the "));
}

BOOST_AUTO_TEST_CASE(a_long_search_says_how_far_it_is_and_a_key_stops_it) {
    scratch_file file;
    file.write(sixteen());
    {
        // A tebibyte of nothing, which takes long.
        std::fstream out(file.path(), std::ios::binary | std::ios::in | std::ios::out);
        out.seekp(std::streamoff{1} << 40U);
        out << page_of(record_of(0x3F, 1, "last"));
    }
    browser b({file.path()});
    BOOST_TEST(b.has(0, " 0:0 "));
    b.type("/far away\r");
    BOOST_TEST(b.has(11, "reading: 0%  (any key stops)"));
    b.type(" ");
    BOOST_TEST(b.has(11, "stopped"));
    b.type(end);  // the lines above the last one are as far away
    BOOST_TEST(b.has(11, "(any key stops)"));
    b.type(" ");
    BOOST_TEST(b.has(0, " 10000000000 268435456:0 "));
    b.type("g@0\r");
    BOOST_TEST(b.has(0, " 00000000 0:0 "));
    b.type("q");
    BOOST_TEST(b.end() == 2);
}

BOOST_AUTO_TEST_SUITE_END()
