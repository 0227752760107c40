// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// CPTRAP files through trace-reduce: conditions, CSV, pages for a printer and for a browser, given
/// lengths, and damage. The files are made byte by byte here, and what is expected is worked out
/// from the test's own list of records.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <trace_ring/cptrap/spool.hpp>

#include "recorder/scratch.hpp"
#include "trace_reduce_run.hpp"

namespace cptrap_reduction {

using trace_ring_test::reduced;
using trace_ring_test::run_trace_reduce;

namespace {

/// A record as the test knows it.
struct known {
    unsigned type = 0;
    unsigned code = 0;
    std::string data;
    std::size_t page = 0, index = 0, offset = 0;

    [[nodiscard]] bool is_entry() const { return type == 0xC5 && data.size() == 16; }
    [[nodiscard]] std::size_t length() const { return data.size() + 8; }
    [[nodiscard]] unsigned at(std::size_t i) const { return static_cast<unsigned char>(data[i]); }
    [[nodiscard]] unsigned long word(std::size_t i) const {
        return (static_cast<unsigned long>(at(4 * i)) << 24U) | (at(4 * i + 1) << 16U) |
               (at(4 * i + 2) << 8U) | at(4 * i + 3);
    }
};

std::string two_bytes(std::size_t value) {
    return {static_cast<char>(value >> 8U), static_cast<char>(value & 0xFFU)};
}
std::string bytes_of(const known& one) {
    return std::string(1, static_cast<char>(one.type)) + '\0' + two_bytes(one.code) +
           two_bytes(one.length()) + std::string(2, '\0') + one.data;
}

/// Some pages of records at random, and the records.
struct spool_file {
    std::string bytes;
    std::vector<known> records;

    spool_file(unsigned seed, std::size_t pages) {
        std::mt19937 engine(seed);
        const auto random = [&engine] { return static_cast<unsigned>(engine()); };
        for (std::size_t page = 0; page < pages; ++page) {
            std::string one;
            for (std::size_t index = 0;; ++index) {
                known made;
                made.page = page;
                made.index = index;
                made.offset = page * 4096 + one.size();
                if (random() % 3 == 0) {
                    const unsigned event = 1 + random() % 0x18;
                    made.type = 0xC5;
                    made.code = event | (random() % 2 == 0 ? 0x40U : 0U);
                    made.data = std::string(1, static_cast<char>(made.code));
                    while (made.data.size() < 16) made.data += static_cast<char>(random());
                } else {
                    made.type = 0x3F;
                    made.code = random() % 4 == 0 ? random() % 0x10000 : random() % 0x20;
                    const std::size_t size = random() % 5 == 0 ? random() % 265 : random() % 20;
                    while (made.data.size() < size) made.data += static_cast<char>(random());
                    if (random() % 7 == 0) made.data += "\xC1\xC2\xC3<&>";
                }
                if (made.data.size() > 264) made.data.resize(264);
                if (one.size() + made.length() > 4096) break;
                one += bytes_of(made);
                records.push_back(made);
            }
            one.resize(4096);
            bytes += one;
        }
    }
};

std::string hexadecimal(std::size_t value, int width) {
    char text[24];
    std::snprintf(text, sizeof text, "%0*zX", width, value);
    return text;
}

struct files {
    test::folder folder{};
    std::string path = folder / "a.spool";

    static void write(const std::string& to, const std::string& bytes) {
        std::ofstream(to, std::ios::binary) << bytes;
    }
    /// The offsets of the records that are printed.
    [[nodiscard]] std::vector<std::size_t> offsets(std::vector<std::string> arguments) const {
        arguments.insert(arguments.begin(), path);
        const auto all = run_trace_reduce(arguments);
        BOOST_TEST(all.status == 0);
        BOOST_TEST(all.errors == "");
        std::vector<std::size_t> found;
        std::istringstream in(all.output);
        for (std::string line; std::getline(in, line);) {
            if (line.starts_with("0x")) found.push_back(std::stoul(line, nullptr, 16));
        }
        return found;
    }
};

/// The cells of a line of CSV.
std::vector<std::string> cells(const std::string& line) {
    std::vector<std::string> out(1);
    bool quoted = false;
    for (const char c : line) {
        if (c == '"') {
            quoted = !quoted;
        } else if (c == ',' && !quoted) {
            out.emplace_back();
        } else {
            out.back() += c;
        }
    }
    return out;
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(cptrap_reduction, files)

BOOST_AUTO_TEST_CASE(a_condition_selects_the_records_for_which_it_holds_forward_and_backward) {
    const spool_file file(1, 12);
    write(path, file.bytes);
    using question = std::function<bool(const known&)>;
    const std::pair<const char*, question> conditions[] = {
        {"code == 0xB", [](const known& r) { return r.code == 0xB; }},
        {"not (code == 0xB)", [](const known& r) { return r.code != 0xB; }},
        {"code in {1, 0x10..0x1F}",
         [](const known& r) { return r.code == 1 || (r.code >= 0x10 && r.code <= 0x1F); }},
        {"type == 0xC5", [](const known& r) { return r.type == 0xC5; }},
        {"type == \"interface\" and length > 100",
         [](const known& r) { return r.type == 0x3F && r.length() > 100; }},
        {"page == 3 or index == 0", [](const known& r) { return r.page == 3 || r.index == 0; }},
        {"offset >= 0x4000 and offset < 24000",
         [](const known& r) { return r.offset >= 0x4000 && r.offset < 24000; }},
        {"entry == \"start_io\"",
         [](const known& r) { return r.is_entry() && (r.code & 0x3FU) == 0xB; }},
        {"entry in {1..4} and not attached",
         [](const known& r) { return r.is_entry() && r.code <= 4; }},
        {"data[5] < 100", [](const known& r) { return r.data.size() > 5 && r.at(5) < 100; }},
        {"data[0] + data[1] == 200",
         [](const known& r) { return r.data.size() > 1 && r.at(0) + r.at(1) == 200; }},
        {"halfwords[1] >= 0x8000",
         [](const known& r) { return r.data.size() > 3 && r.at(2) >= 0x80; }},
        {"words[2] > 0xF0000000",
         [](const known& r) { return r.data.size() > 11 && r.word(2) > 0xF0000000; }},
        {"ebcdic ~ \"*ABC*\"",
         [](const known& r) { return r.data.find("\xC1\xC2\xC3") != std::string::npos; }},
        {"ascii ~ \"*<&>*\"",
         [](const known& r) { return r.data.find("<&>") != std::string::npos; }},
    };
    for (const auto& [text, holds] : conditions) {
        std::vector<std::size_t> expected;
        for (const auto& each : file.records) {
            if (holds(each)) expected.push_back(each.offset);
        }
        BOOST_TEST_CONTEXT(text) {
            BOOST_TEST(!expected.empty());
            BOOST_TEST(expected.size() < file.records.size());
            BOOST_TEST(offsets({"--where", text}) == expected);
            std::reverse(expected.begin(), expected.end());
            BOOST_TEST(offsets({"--where", text, "--backward"}) == expected);
        }
    }
    // Together with the other choices, each of which must hold.
    std::vector<std::size_t> expected;
    for (const auto& each : file.records) {
        if (each.type == 0x3F && each.code < 4 && each.page >= 2 && each.length() > 12) {
            expected.push_back(each.offset);
        }
    }
    BOOST_TEST(!expected.empty());
    BOOST_TEST(offsets({"--type", "3F", "--code", "0-3", "--from", "#2", "--where",
                        "length > 12"}) == expected);
    const auto sum = run_trace_reduce({path, "--where", "code == 0xB", "--stats"});
    const auto count = std::count_if(file.records.begin(), file.records.end(),
                                     [](const known& r) { return r.code == 0xB; });
    BOOST_TEST(sum.output.find("records   " + std::to_string(count) + ",") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_condition_that_makes_no_sense_is_refused_with_its_column) {
    write(path, spool_file(2, 1).bytes);
    const std::pair<const char*, const char*> all[] = {
        {"cod == 1", "column 1: a record of a CPTRAP file has no 'cod'; did you mean 'code'?"},
        {"code == 1 and time > 1ms", "column 15: a record of a CPTRAP file has no time"},
        {"thread == 3",
         "column 1: a record of a CPTRAP file has no 'thread'; there is type, code, length, page, "
         "index, offset, entry, attached, data, halfwords, words, ebcdic, ascii"},
        {"data == 1", "column 1: 'data' is an array: write data[0]"},
        {"code == \"x\"", "column 6: a number compared with a text"},
        {"type == \"x\"", "column 9: no value of 'type' is called 'x'"},
        {"code ==", "column 8: it ends where a value should follow"},
    };
    for (const auto& [text, why] : all) {
        const auto refused = run_trace_reduce({path, "--where", text});
        BOOST_TEST(refused.status == 1);
        BOOST_TEST(refused.output == "");
        BOOST_TEST(refused.errors.find(why) != std::string::npos, refused.errors);
    }
}

BOOST_AUTO_TEST_CASE(csv_has_a_row_for_each_record_with_the_notation_of_the_options) {
    const spool_file file(3, 3);
    write(path, file.bytes);
    const auto all = run_trace_reduce({path, "--format", "csv"});
    BOOST_TEST(all.status == 0);
    std::istringstream in(all.output);
    std::string line;
    BOOST_REQUIRE(std::getline(in, line));
    BOOST_TEST(line ==
               "kind,offset,page,index,type,name,code,length,event,attached,data,ebcdic,cause,"
               "count");
    for (const auto& each : file.records) {
        BOOST_REQUIRE(std::getline(in, line));
        const auto row = cells(line);
        BOOST_REQUIRE(row.size() == 14U);
        BOOST_TEST(row[0] == "record");
        BOOST_TEST(row[1] == std::to_string(each.offset));
        BOOST_TEST(row[2] == std::to_string(each.page));
        BOOST_TEST(row[3] == std::to_string(each.index));
        BOOST_TEST(row[4] == "0x" + hexadecimal(each.type, 2));
        BOOST_TEST(row[6] == "0x" + hexadecimal(each.code, each.type == 0xC5 ? 2 : 4));
        BOOST_TEST(row[7] == std::to_string(each.length()));
        BOOST_TEST(row[9] == (!each.is_entry() ? "" : (each.code & 0x40U) != 0 ? "true" : "false"));
        std::string data;
        for (std::size_t i = 0; i < each.data.size(); ++i) data += hexadecimal(each.at(i), 2);
        BOOST_TEST(row[10] == data);
    }
    BOOST_TEST(!std::getline(in, line));
    // A code copied from a row selects its records.
    std::vector<std::size_t> expected;
    for (const auto& each : file.records) {
        if (each.code == file.records[0].code) expected.push_back(each.offset);
    }
    BOOST_TEST(offsets({"--code", "0x" + hexadecimal(file.records[0].code, 4)}) == expected);
}

BOOST_AUTO_TEST_CASE(printed_pages_have_sixty_lines_and_the_same_content_as_the_display) {
    write(path, spool_file(4, 9).bytes);
    const auto display = run_trace_reduce({path});
    const auto print = run_trace_reduce({path, "--format", "print"});
    BOOST_TEST(print.status == 0);
    std::vector<std::vector<std::string>> pages(1);
    std::string content;
    std::string text = print.output;
    for (std::size_t at = 0; at < text.size();) {
        if (text[at] == '\f') {
            pages.emplace_back();
            ++at;
        }
        const std::size_t end = text.find('\n', at);
        BOOST_REQUIRE(end != std::string::npos);
        pages.back().push_back(text.substr(at, end - at));
        at = end + 1;
    }
    BOOST_TEST(pages.size() > 10U);
    for (std::size_t i = 0; i < pages.size(); ++i) {
        const auto& page = pages[i];
        if (i + 1 < pages.size()) BOOST_TEST(page.size() == 60U);
        BOOST_REQUIRE(page.size() > 2U);
        BOOST_TEST(page.size() <= 60U);
        BOOST_TEST(page[0].size() <= 132U);
        BOOST_TEST(page[0].starts_with("CPTRAP  "));
        BOOST_TEST(page[0].find(path) != std::string::npos);
        BOOST_TEST(page[0].ends_with(" PAGE " + std::string(i < 9 ? "    " : "   ") +
                                     std::to_string(i + 1)));
        // The date of the print: YYYY-MM-DD HH:MM.
        const auto date = page[0].find("20");
        BOOST_TEST(date != std::string::npos);
        BOOST_TEST(page[1] == "");
        for (std::size_t line = 2; line < page.size(); ++line) content += page[line] + '\n';
    }
    BOOST_TEST(content == display.output);
    // Each file begins on a page, and a long name is cut at its beginning.
    const std::string other = folder / (std::string(150, 'n') + ".spool");
    write(other, spool_file(5, 1).bytes);
    const auto two = run_trace_reduce({path, other, "--format", "print"});
    BOOST_TEST(two.output.find("\fCPTRAP  ...nnn") != std::string::npos);
    for (std::istringstream in(two.output); in;) {
        std::string line;
        std::getline(in, line);
        if (line.find("CPTRAP ") != std::string::npos) BOOST_TEST(line.size() <= 133U);
    }
}

BOOST_AUTO_TEST_CASE(the_page_shows_each_record_and_no_byte_of_it_is_markup) {
    const spool_file file(6, 4);
    write(path, file.bytes);
    const auto page = run_trace_reduce({path, "--format", "html"});
    BOOST_TEST(page.status == 0);
    const auto count = [&](std::string_view what) {
        std::size_t found = 0;
        for (std::size_t at = 0; (at = page.output.find(what, at)) != std::string::npos; ++at) {
            ++found;
        }
        return found;
    };
    BOOST_TEST(count("<tr data-i data-r>") == file.records.size());
    BOOST_TEST(count("<section>") == 4U);
    BOOST_TEST(count("<section>") == count("</section>"));
    BOOST_TEST(count("<table>") == count("</table>"));
    BOOST_TEST(count("&lt;&amp;&gt;") > 0U);
    BOOST_TEST(count("<&>") == 0U);
    for (const auto& each : file.records) {
        BOOST_TEST(count("0x" + hexadecimal(each.offset, 8)) == 1U);
    }
    BOOST_TEST(page.output.ends_with("</html>\n"));
    const auto none = run_trace_reduce({path, "--format", "html", "--page", "77"});
    BOOST_TEST(none.output.find("no record is chosen") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(records_of_other_types_are_read_by_a_length_that_is_given) {
    const known after{0x3F, 7, "\xC1", 0, 2, 0};
    // X'3D' without a header; X'3E' with it: type, reserved, code, length, reserved, two bytes.
    std::string page =
        "\x3D"
        "abcdefghijk";
    page += std::string("\x3E\0\x01\x02\0\x0A\0\0hi", 10) + bytes_of(after);
    page.resize(4096);
    write(path, page);
    const auto all = run_trace_reduce({path, "--length", "3D=12", "--length", "3E=header"});
    BOOST_TEST(all.status == 0);
    BOOST_TEST(all.output ==
               "0x00000000  3D unknown      no header    11 bytes\n"
               "    0000  61626364 65666768 696A6B             */.........,*       "
               "|abcdefghijk|\n"
               "0x0000000C  3E unknown      code 0102     2 bytes\n"
               "    0000  6869                                 *..*                |hi|\n"
               "0x00000016  3F interface    code 0007     1 byte\n"
               "    0000  C1                                   *A*                 |.|\n");
    BOOST_TEST(offsets({"--length", "3D=12", "--length", "3E=header", "--type", "3D"}) ==
               std::vector<std::size_t>{0});
    BOOST_TEST(offsets({"--length", "3D=12", "--length", "3E=header", "--where",
                        "data[0] == 0x61"}) == std::vector<std::size_t>{0});
    const auto one = run_trace_reduce({path, "--length", "3D=12"});
    BOOST_TEST(one.status == 2);
    BOOST_TEST(one.errors == "trace-reduce: " + path +
                                 ": offset 12: a record of a type whose length is not known (3E): "
                                 "--length 3E=BYTES reads on\n");
    BOOST_TEST(run_trace_reduce({path}).status == 2);
    const std::pair<const char*, const char*> wrong[] = {
        {"3D", "is no TYPE=BYTES"}, {"3D=1", "from 2 to 4096"},   {"3D=4097", "from 2 to 4096"},
        {"3D=x", "from 2 to 4096"}, {"3F=12", "in their header"}, {"C5=12", "in their header"},
        {"0=12", "from 01 to FF"},  {"100=12", "from 01 to FF"},  {"interface=12", "from 01 to FF"},
    };
    for (const auto& [text, why] : wrong) {
        const auto refused = run_trace_reduce({path, "--length", text});
        BOOST_TEST(refused.status == 1);
        BOOST_TEST(refused.output == "");
        BOOST_TEST(refused.errors.find(why) != std::string::npos, refused.errors);
    }
}

BOOST_AUTO_TEST_CASE(damaged_input_is_reported_as_what_it_is_and_the_next_page_is_read) {
    const spool_file file(7, 3);
    const std::string zeros = ": offset 0: all 8192 bytes are zero: nothing was written";
    write(path, std::string(8192, '\0'));
    auto all = run_trace_reduce({path});
    BOOST_TEST(all.status == 2);
    BOOST_TEST(all.errors.find(zeros) != std::string::npos, all.errors);
    write(path, "");
    all = run_trace_reduce({path});
    BOOST_TEST(all.status == 2);
    BOOST_TEST(all.errors.find(": offset 0: the file is empty") != std::string::npos);

    // Cut everywhere within the first records: a CPTRAP file that is torn where it ends.
    known first{0x3F, 3, "\xC1\xC2\xC3\xC4", 0, 0, 0};
    for (std::size_t bytes = 2; bytes <= 24; ++bytes) {
        write(path, (bytes_of(first) + bytes_of(first) + std::string(100, '\0')).substr(0, bytes));
        all = run_trace_reduce({path});
        const std::size_t whole = bytes / 12;
        BOOST_TEST_CONTEXT(bytes) {
            BOOST_TEST(all.status == 2);
            BOOST_TEST(all.errors == "trace-reduce: " + path + ": offset " +
                                         std::to_string(whole * 12) +
                                         ": torn: the file ends within the spool record\n");
            const auto lines = std::count(all.output.begin(), all.output.end(), '\n');
            // A line of data for each record, and for the bytes of the torn one.
            const bool some = bytes % 12 != 0;
            BOOST_TEST(lines == static_cast<std::ptrdiff_t>(2 * whole + (some ? 2 : 1)));
        }
    }
    // A length that cannot be, in each record of the second page in turn.
    for (const auto& each : file.records) {
        if (each.page != 1) continue;
        for (const std::size_t length : {std::size_t{0}, std::size_t{7}, std::size_t{0xFFFF}}) {
            std::string bytes = file.bytes;
            bytes.replace(each.offset + 4, 2, two_bytes(length));
            write(path, bytes);
            all = run_trace_reduce({path});
            BOOST_TEST(all.status == 2);
            std::vector<std::size_t> found;
            std::istringstream in(all.output);
            for (std::string line; std::getline(in, line);) {
                if (line.starts_with("0x") && line.find("-- ") == std::string::npos) {
                    found.push_back(std::stoul(line, nullptr, 16));
                }
            }
            std::vector<std::size_t> expected;
            for (const auto& one : file.records) {
                if (one.page != 1 || one.offset < each.offset) expected.push_back(one.offset);
            }
            BOOST_TEST(found == expected);
            BOOST_TEST(all.errors.find(": offset " + std::to_string(each.offset) + ": ") !=
                       std::string::npos);
            BOOST_TEST(all.output.find("0x" + hexadecimal(each.offset, 8) + "  -- " +
                                       std::to_string(2 * 4096 - each.offset) +
                                       " bytes unreadable: ") != std::string::npos);
        }
    }
    // Also in the only record of the only page.
    std::string only = bytes_of(first);
    only.replace(4, 2, two_bytes(4));
    only.resize(4096);
    write(path, only);
    all = run_trace_reduce({path});
    BOOST_TEST(all.status == 2);
    BOOST_TEST(all.errors.find("a record with an impossible length") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(spool_records_of_zeros_between_others_are_reported_in_both_directions) {
    const spool_file file(8, 2);
    const std::string zeros(4096, '\0');
    write(path, file.bytes.substr(0, 4096) + zeros + file.bytes.substr(4096) + zeros + zeros);
    for (const char* const way : {"--limit=9999", "--backward", "--stats", "--follow"}) {
        std::vector<std::string> arguments{path, way};
        if (arguments.back() == "--follow") arguments.push_back("--until-closed");
        const auto all = run_trace_reduce(arguments);
        BOOST_TEST(all.status == 2);
        BOOST_TEST(all.errors == "trace-reduce: " + path +
                                     ": offset 4096: 3 spool records of zeros, of which this is "
                                     "the first: nothing was written into them\n");
    }
    BOOST_TEST(run_trace_reduce({path, "--page", "0"}).status == 0);
    BOOST_TEST(run_trace_reduce({path, "--limit", "1"}).status == 0);
    const auto one = run_trace_reduce({path, "--page", "1-2"});
    BOOST_TEST(one.status == 2);
    BOOST_TEST(one.errors == "trace-reduce: " + path +
                                 ": offset 4096: a spool record of zeros: nothing was written "
                                 "into it\n");
}

BOOST_AUTO_TEST_CASE(what_cannot_be_read_is_shown_with_its_bytes) {
    std::string page = std::string("\x3D", 1) + "unknown" + std::string(100, '\xC1');
    page.resize(4096);
    write(path, page);
    // Whatever it begins with, an option that is for CPTRAP files says that it is one.
    const auto text = run_trace_reduce({path, "--page", "0"});
    BOOST_TEST(text.status == 2);
    BOOST_TEST(text.output.starts_with(
        "0x00000000  -- 4096 bytes unreadable: a record of a type whose length is not "
        "known (3D)\n    0000  3D756E6B 6E6F776E C1C1C1C1 C1C1C1C1  "));
    BOOST_TEST(text.output.ends_with("|\n    ...\n"));
    BOOST_TEST(std::count(text.output.begin(), text.output.end(), '\n') == 6);
    const auto json = run_trace_reduce({path, "--page", "0", "--format", "json"});
    BOOST_TEST(json.output.find("\"data\":\"3d756e6b6e6f776ec1c1") != std::string::npos);
    const auto csv = run_trace_reduce({path, "--page", "0", "--format", "csv"});
    const auto second = csv.output.substr(csv.output.find('\n') + 1);
    const auto row = cells(second.substr(0, second.find('\n')));
    BOOST_REQUIRE(row.size() == 14U);
    BOOST_TEST(row[0] == "unreadable");
    BOOST_TEST(row[10].starts_with("3D756E6B6E6F776EC1C1"));
    BOOST_TEST(row[10].size() == 8192U);
    BOOST_TEST(row[13] == "4096");
    BOOST_TEST(run_trace_reduce({path}).output == "");
}

BOOST_AUTO_TEST_CASE(a_range_is_read_and_nothing_beyond_it) {
    // A TiB of holes between two spool records: who reads on takes hours.
    const spool_file file(9, 1);
    write(path, file.bytes);
    std::filesystem::resize_file(path, std::uintmax_t{1} << 40U);
    for (const std::vector<std::string>& range :
         {std::vector<std::string>{"--page", "0"}, std::vector<std::string>{"--to", "#1"},
          std::vector<std::string>{"--page", "0", "--stats"},
          std::vector<std::string>{"--page", "0", "--backward"}}) {
        auto arguments = range;
        arguments.insert(arguments.begin(), path);
        const auto all = run_trace_reduce(arguments);
        BOOST_TEST(all.status == 0);
        BOOST_TEST(all.errors == "");
    }
}

BOOST_AUTO_TEST_CASE(a_spool_at_its_limit_is_followed_to_its_last_record_and_loss) {
    std::optional<trace_ring::cptrap::spool> spool(std::in_place, path, 2 * 4096);
    reduced all;
    std::thread reader([&] {
        all = run_trace_reduce({path, "--follow", "--until-closed", "--format", "json"});
    });
    std::uint64_t stored = 0, refused = 0;
    for (int round = 0; round < 8; ++round) {
        for (int i = 0; i < 40; ++i) {
            const std::array<std::byte, 50> data{};
            ++(spool->append(3, data) ? stored : refused);
        }
        BOOST_TEST(spool->flush());
        std::this_thread::sleep_for(std::chrono::milliseconds(150));
    }
    spool.reset();
    reader.join();
    BOOST_TEST(refused > 0U);
    BOOST_TEST(all.status == 0);
    BOOST_TEST(all.errors == "");
    std::uint64_t records = 0;
    std::vector<std::string> losses;
    std::istringstream in(all.output);
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with("{\"kind\":\"record\"")) ++records;
        if (line.starts_with("{\"kind\":\"loss\"")) losses.push_back(line);
    }
    BOOST_TEST(records == stored);
    BOOST_REQUIRE(losses.size() == 1U);
    BOOST_TEST(losses[0].find("\"cause\":\"refused\",\"count\":" + std::to_string(refused) + "}") !=
               std::string::npos);
}

BOOST_AUTO_TEST_CASE(statistics_name_an_event_by_the_entry_and_reserved_bytes_are_shown) {
    // The header's code and the entry's own byte differ, and one entry has no event.
    known odd{0xC5, 0x0B, std::string(1, '\x0C') + std::string(15, 'x'), 0, 0, 0};
    known small{0xC5, 0x0D, std::string(15, 'y'), 0, 0, 0};
    std::string page = bytes_of(odd) + bytes_of(small);
    page[1] = 1;
    page[7] = 2;
    page.resize(4096);
    write(path, page);
    const auto sum = run_trace_reduce({path, "--stats"});
    BOOST_TEST(sum.output.find("C5 table_entry  0B unstack_io_interrupt\n") != std::string::npos);
    BOOST_TEST(sum.output.find("C5 table_entry  0D\n") != std::string::npos);
    const auto text = run_trace_reduce({path});
    BOOST_TEST(text.output.find("unstack_io_interrupt  reserved 01 00 02\n") != std::string::npos);
    BOOST_TEST(
        run_trace_reduce({path, "--format", "json"}).output.find("\"reserved\":\"010002\"") !=
        std::string::npos);
    // An impossible loss is shown with any selection.
    known strange{0xD3, 7, "????????", 0, 0, 0};
    page = bytes_of(strange) + bytes_of(small);
    page.resize(4096);
    write(path, page);
    BOOST_TEST(run_trace_reduce({path, "--code", "1"}).output.starts_with("0x00000000  D3 lost"));
    BOOST_TEST(offsets({"--type", "lost"}) == std::vector<std::size_t>{0});
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace cptrap_reduction
