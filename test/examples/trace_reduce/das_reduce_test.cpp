// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// DAS trace tables in images of guest storage, through trace-reduce --das: sound ones, the
/// vectors, and inconsistent ones.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <das_trace/traced_entry.hpp>
#include <examples/trace_reduce/das_images.hpp>
#include <exporter/json_check.hpp>
#include <reduce/scratch_file.hpp>

BOOST_AUTO_TEST_SUITE(das_reduce)

using namespace das_images;
using trace_ring_test::json_check;

constexpr const char* columns =
    "file,kind,address,offset,entries,current,data,ebcdic,current_control,first_control,"
    "last_control,next,word_84,gate,text\n";

BOOST_AUTO_TEST_CASE(a_table_is_shown_from_the_oldest_entry_to_the_one_that_current_designates) {
    image d1;  // vector D1
    d1.controls(0x00010000, 0x00010000, 0x00010060).trace(4);
    d1.put(0x00010020 + 4, 0xC4C1E240);  // "DAS " in EBCDIC, in the newest
    const auto it = show(d1);
    BOOST_TEST(it.status == 0);
    BOOST_TEST(it.errors == "");
    const std::string zeros = " 00000000 00000000 00000000 00000000 00000000 00000000 00000000";
    BOOST_TEST(it.output ==
               "DAS trace table: header 020008, current 00010020, first 00010000, last 00010060, "
               "3 entries\n"
               "word 84: 80020008, the gate is open\n"
               "next entry: 010040\n"
               "010040  00000002" +
                   zeros + "  *" + std::string(32, '.') + "*\n010000  00000003" + zeros + "  *" +
                   std::string(32, '.') + "*\n010020  00000004 C4C1E240" +
                   zeros.substr(0, zeros.size() - 9) + "  *....DAS " + std::string(24, '.') +
                   "*  current\n");
}

BOOST_AUTO_TEST_CASE(the_vectors_are_read_as_the_machine_left_them) {
    struct vector {
        const char* name;
        std::uint32_t current, first, last;
        unsigned traced;
        std::vector<std::string> parts;
        int status;
        const char* line;  // that the output has
    };
    // clang-format off
    const vector vectors[] = {
        {"D1 unused", 0x00010000, 0x00010000, 0x00010060, 0,
         {"010020 zeros 2", "010000 zeros 1 current"}, 0, "next entry: 010020"},
        {"D1", 0x00010000, 0x00010000, 0x00010060, 2,
         {"010000 zeros 1", "010020 1", "010040 2 current"}, 0, "next entry: 010000"},
        {"D2 unused", 0x0000FFE0, 0x00010000, 0x00010060, 0,
         {"010000 zeros 3"}, 0, "note: current is one entry before the first: the next trace uses"},
        {"D2", 0x0000FFE0, 0x00010000, 0x00010060, 1,
         {"010020 zeros 2", "010000 1 current"}, 0, "next entry: 010020"},
        {"D3", 0x00010000, 0x00010000, 0x00010050, 3,
         {"010020 1", "010040 2", "010000 3 current"}, 0,
         "note: the last entry runs 16 bytes over last"},
        {"D4", 0x00010000, 0x00010010, 0x00010060, 2,
         {"010020 1", "010040 2 current"}, 2, "next entry: a specification exception"},
        {"D5", 0x00010008, 0x00010000, 0x00010060, 0,
         {"010000 zeros 3"}, 2, "next entry: a specification exception"},
        {"D5 healed", 0x00010048, 0x00010000, 0x00010060, 2,
         {"010040 zeros 1", "010000 1", "010020 2 current"}, 0, "next entry: 010040"},
        {"D6 before", 0x01010000, 0x00010000, 0x00010060, 0,
         {"010000 zeros 3"}, 2, "note: bits 0-7 of a control word are not zero"},
        {"D6", 0x01010000, 0x00010000, 0x00010060, 2,
         {"010040 zeros 1", "010000 1", "010020 2 current"}, 0, "next entry: 010040"},
        {"D9 before", 0xFFFFFFE0, 0x00010000, 0x00010060, 0,
         {"010000 zeros 3"}, 2, "next entry: 000000"},
    };
    // clang-format on
    for (const auto& v : vectors) {
        BOOST_TEST_CONTEXT(v.name) {
            image of;
            of.controls(v.current, v.first, v.last).trace(v.traced);
            const auto it = show(of);
            BOOST_TEST(parts_of(it.output) == v.parts, boost::test_tools::per_element());
            BOOST_TEST(it.status == v.status);
            BOOST_TEST(it.errors.empty() == (v.status == 0));
            BOOST_TEST(has_line(it.output, v.line), it.output);
            BOOST_TEST(has_line(it.output, "inconsistent: ") == (v.status != 0));
        }
    }
}

BOOST_AUTO_TEST_CASE(inconsistencies_are_errors_with_the_offset_of_their_word) {
    struct wrong {
        std::uint32_t current, first, last, designation;
        std::string error;
    };
    const std::string file = "trace-reduce: FILE: offset ";
    const std::string by_address =
        " is no entry of the table: the order of entries is not known, and they are shown by "
        "address\n";
    const wrong all[] = {
        {0x00010080, 0x00010000, 0x00010060, 0x80020008,
         file + "131080: the current-entry control, X'00010080'," + by_address},
        {0x00010008, 0x00010000, 0x00010060, 0x80020008,
         file + "131080: the current-entry control, X'00010008'," + by_address},
        {0x00010020, 0x00010010, 0x00010060, 0x80020008,
         file + "131084: bits 27-31 of the first-entry control, X'00010010', are not zero: a wrap "
                "meets a specification exception\n"},
        {0x00010000, 0x00010000, 0x0000FF00, 0x80020008,
         file + "131088: the last-entry control, X'0000FF00', is not above the first-entry "
                "control, X'00010000'\n"},
        {0x00010000, 0x00010000, 0x00010060, 0x8002000C,
         file + "84: bits 29-31 of the word at location 84, X'8002000C', are not zero: a trace "
                "meets a specification exception\n"},
        {0x00020FE0, 0x00020F80, 0x00021040, 0x80020008,
         file + "135168: 2 entries are beyond the end of the file, from X'021000' on\n"},
    };
    for (const auto& each : all) {
        image of;
        of.controls(each.current, each.first, each.last, each.designation);
        const auto it = show(of);
        BOOST_TEST(it.status == 2);
        BOOST_TEST(it.errors == each.error);
    }
    // Larger than storage, so that addresses repeat.
    image large;
    large.controls(0x00010000, 0x00010000, 0x01010040).trace(2);
    const auto it = show(large);
    BOOST_TEST(it.status == 2);
    BOOST_TEST(it.errors.starts_with(file + "131088: the table has 524290 entries, and 24-bit "
                                            "storage has room for 524288: those from first to "
                                            "current are shown\n"));
    const std::vector<std::string> expected{"010000 zeros 1", "010020 1", "010040 2 current"};
    BOOST_TEST(parts_of(it.output) == expected, boost::test_tools::per_element());
    large.put(header, 8);
    BOOST_TEST(parts_of(show(large).output).empty());
    BOOST_TEST(has_line(show(large).output,
                        "inconsistent: the table has 524290 entries, and "
                        "24-bit storage has room for 524288: they are not"));
}

BOOST_AUTO_TEST_CASE(a_closed_gate_and_a_word_84_of_another_table_are_shown) {
    image of;
    of.controls(0x00010000, 0x00010000, 0x00010060, 0x7F020008);
    BOOST_TEST(has_line(show(of).output, "word 84: 7F020008, the gate is closed"));
    of.put(84, 0xFF020008);
    BOOST_TEST(has_line(show(of).output, "word 84: FF020008, the gate is open"));
    of.put(84, 0x80003000);
    const auto it = show(of, {"--das", "0x20008"});
    BOOST_TEST(it.status == 0);
    BOOST_TEST(has_line(it.output, "word 84: 80003000, which designates another header"));
    // Bits 29-31 belong to the designation, not to the address.
    of.put(84, 0x0002000F);
    BOOST_TEST(has_line(show(of).output, "DAS trace table: header 020008,"));
    BOOST_TEST(show(of).status == 0);
}

BOOST_AUTO_TEST_CASE(word_84_may_be_of_a_processor_with_a_prefix) {
    image of;
    of.controls(0x00010000, 0x00010000, 0x00010060, 0).put(0x3000 + 84, 0x80000000 | header);
    const auto it = show(of, {"--das", "word84+3000"});
    BOOST_TEST(it.status == 0);
    BOOST_TEST(has_line(it.output, "word 84: 80020008, the gate is open"));
    const auto none = show(of);
    BOOST_TEST(none.status == 2);
    BOOST_TEST(none.output == "");
    BOOST_TEST(none.errors ==
               "trace-reduce: FILE: offset 84: the word at location 84 is zero: it designates no "
               "trace table\n");
}

BOOST_AUTO_TEST_CASE(backward_is_the_reverse_and_a_limit_counts_entries_that_are_not_zeros) {
    image of;
    of.controls(0x0000FFE0, 0x00010000, 0x00010100).trace(5);  // three are unused
    const std::vector<std::string> forward{"0100A0 zeros 3", "010000 1", "010020 2",
                                           "010040 3",       "010060 4", "010080 5 current"};
    BOOST_TEST(parts_of(show(of).output) == forward, boost::test_tools::per_element());
    auto backward = forward;
    std::reverse(backward.begin(), backward.end());
    BOOST_TEST(parts_of(show(of, {"--das", "word84", "--backward"}).output) == backward,
               boost::test_tools::per_element());
    backward.resize(2);
    BOOST_TEST(
        parts_of(show(of, {"--das", "word84", "--backward", "--limit", "2"}).output) == backward,
        boost::test_tools::per_element());
    auto first = forward;
    first.resize(3);
    BOOST_TEST(parts_of(show(of, {"--das", "word84", "--limit", "2"}).output) == first,
               boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(zeros_between_entries_and_around_the_wrap_are_counted_where_they_lie) {
    image of;
    of.controls(0x00010020, 0x00010000, 0x00010100);
    of.put(0x00010060, 7);
    const std::vector<std::string> expected{"010040 zeros 1", "010060 7", "010080 zeros 4",
                                            "010000 zeros 1", "010020 zeros 1 current"};
    BOOST_TEST(parts_of(show(of).output) == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(json_and_csv_have_the_same_as_text) {
    image of;
    of.controls(0x0000FFE0, 0x00010000, 0x00010080).trace(2);
    of.put(0x00010020 + 4, 0x7F407F6B);  // '" ",' in EBCDIC
    const auto json = show(of, {"--das", "word84", "--format", "json"});
    BOOST_TEST(json.status == 0);
    const auto lines = lines_of(json.output);
    for (const auto& line : lines) BOOST_TEST(json_check::valid(line), line);
    const std::string zeros(48, '0');
    const std::vector<std::string> expected{
        R"({"kind":"table","header":"020008","offset":131080,"current":"00010020",)"
        R"("first":"00010000","last":"00010080","entries":4,"next":"010040",)"
        R"("word_84":"80020008","gate":"open","notes":[],"inconsistent":[]})",
        R"({"kind":"zeros","address":"010040","offset":65600,"entries":2,"current":false})",
        R"({"kind":"entry","address":"010000","offset":65536,"current":false,)"
        R"("data":"0000000100000000)" +
            zeros + R"(","ebcdic":")" + std::string(32, '.') + "\"}",
        R"({"kind":"entry","address":"010020","offset":65568,"current":true,)"
        R"("data":"000000027f407f6b)" +
            zeros + R"(","ebcdic":"....\" \",)" + std::string(24, '.') + "\"}"};
    BOOST_TEST(lines == expected, boost::test_tools::per_element());
    // What JSON prints is what --das takes.
    BOOST_TEST(show(of, {"--das", "020008", "--format", "json"}).output == json.output);

    const auto csv = show(of, {"--das", "word84", "--format", "csv"});
    BOOST_TEST(csv.status == 0);
    BOOST_TEST(csv.output ==
               std::string(columns) +
                   "\"FILE\",table,0x020008,131080,4,,,,0x00010020,0x00010000,0x00010080,0x010040,"
                   "0x80020008,open,\n"
                   "\"FILE\",zeros,0x010040,65600,2,false,,,,,,,,,\n"
                   "\"FILE\",entry,0x010000,65536,1,false,\"0000000100000000" +
                   zeros + "\",\"" + std::string(32, '.') +
                   "\",,,,,,,\n\"FILE\",entry,0x010020,65568,1,true,\"000000027F407F6B" + zeros +
                   "\",\"....\"\" \"\"," + std::string(24, '.') + "\",,,,,,,\n");

    image beyond;
    beyond.controls(0x00020FE0, 0x00020F80, 0x00021040).put(0x00020FE0, 9);
    const auto cut = show(beyond, {"--das", "word84", "--format", "json", "--backward"});
    BOOST_TEST(cut.status == 2);
    const auto cut_lines = lines_of(cut.output);
    BOOST_TEST_REQUIRE(cut_lines.size() == 4U);
    BOOST_TEST(
        cut_lines[3] ==
        R"({"kind":"missing","address":"021000","offset":135168,"entries":2,"current":false,)"
        R"("cause":"beyond the end of the file"})");
    const auto cut_rows =
        lines_of(show(beyond, {"--das", "word84", "--format", "csv", "--backward"}).output);
    BOOST_TEST_REQUIRE(cut_rows.size() == 5U);
    BOOST_TEST(cut_rows[4] ==
               "\"FILE\",missing,0x021000,135168,2,false,,,,,,,,,\"beyond the end of the file\"");
}

BOOST_AUTO_TEST_CASE(csv_has_the_notes_the_inconsistencies_and_the_state_of_the_table) {
    image of;
    of.controls(0x00010008, 0x00010000, 0x00010050, 0x7F020008);
    const auto shown = show(of);
    const auto it = show(of, {"--das", "word84", "--format", "csv"});
    BOOST_TEST(it.status == 2);
    const auto rows = lines_of(it.output);
    BOOST_TEST_REQUIRE(rows.size() == 5U);
    BOOST_TEST(rows[0] + '\n' == columns);
    BOOST_TEST(rows[1] ==
               "\"FILE\",table,0x020008,131080,3,,,,0x00010008,0x00010000,0x00010050,,0x7F020008,"
               "closed,");
    BOOST_TEST(rows[2] == "\"FILE\",note,,,,,,,,,,,,,\"the last entry runs 16 bytes over last\"");
    BOOST_TEST(rows[3] ==
               "\"FILE\",inconsistent,,131080,,,,,,,,,,,\"the current-entry control, "
               "X'00010008', is no entry of the table: the order of entries is not known, and "
               "they are shown by address\"");
    BOOST_TEST(rows[4] == "\"FILE\",zeros,0x010000,65536,3,false,,,,,,,,,");
    // Text has the same lines.
    BOOST_TEST(has_line(shown.output, "next entry: a specification exception"));
    BOOST_TEST(has_line(shown.output, "note: the last entry runs 16 bytes over last"));
    BOOST_TEST(has_line(shown.output, "inconsistent: the current-entry control, X'00010008', is"));

    // Every row has a cell for each column; outside quotation marks commas separate them.
    const auto cells = [](const std::string& row) {
        bool quoted = false;
        std::size_t count = 1;
        for (const char c : row) {
            if (c == '"') quoted = !quoted;
            if (c == ',' && !quoted) ++count;
        }
        return count;
    };
    of.controls(0x0000FFE0, 0x00010000, 0x00010080, 0x80000010).trace(0);
    of.put(0x00010020, 0x6B7F6B7F);  // ',","' in EBCDIC
    of.put(header, 0x00010040);
    for (const auto& row : rows) BOOST_TEST(cells(row) == 15U, row);
    const auto other = lines_of(show(of, {"--das", "20008", "--format", "csv"}).output);
    BOOST_TEST(other.size() > 3U);
    for (const auto& row : other) BOOST_TEST(cells(row) == 15U, row);
    // Word 84 designates another header: no gate.
    BOOST_TEST(other[1].ends_with(",0x010060,0x80000010,,"), other[1]);
}

BOOST_AUTO_TEST_CASE(a_header_or_a_word_84_within_the_table_is_reported) {
    const std::string file = "trace-reduce: FILE: offset ";
    const auto run = [](std::uint32_t at, std::uint32_t first, std::uint32_t last,
                        const std::string& place) {
        image of;
        of.put(84, 0x80000000 | at);
        of.put(at, first).put(at + 4, first).put(at + 8, last);
        return show(of, {"--das", place});
    };
    const auto in_entry = [](const char* what, const char* entry) {
        return std::string(what) + ", lies in the table's entry " + entry +
               ": a trace to that entry overwrites it";
    };
    const auto first = in_entry("the header, X'002000'", "X'002000'");
    const auto it = run(0x2000, 0x2000, 0x2080, "2000");
    BOOST_TEST(it.status == 2);
    BOOST_TEST(it.errors == file + "8192: " + first + "\n");
    BOOST_TEST(has_line(it.output, "inconsistent: " + first));
    BOOST_TEST(has_line(it.output, "002000  00002000 00002000 00002080"));
    // In two entries, in the last one alone, and next to the table on either side.
    BOOST_TEST(run(0x2018, 0x2000, 0x2080, "2018").errors ==
               file + "8216: " + in_entry("the header, X'002018'", "X'002000'") + "\n" + file +
                   "8224: " + in_entry("the header, X'002018'", "X'002020'") + "\n");
    BOOST_TEST(run(0x2078, 0x2000, 0x2080, "2078").errors ==
               file + "8312: " + in_entry("the header, X'002078'", "X'002060'") + "\n");
    BOOST_TEST(run(0x1FF8, 0x2000, 0x2080, "1FF8").errors ==
               file + "8192: " + in_entry("the header, X'001FF8'", "X'002000'") + "\n");
    BOOST_TEST(run(0x2080, 0x2000, 0x2080, "2080").errors == "");
    BOOST_TEST(run(0x1FF0, 0x2000, 0x2080, "1FF0").errors == "");
    // The last entry runs over last.
    BOOST_TEST(run(0x2078, 0x2000, 0x2070, "2078").errors ==
               file + "8312: " + in_entry("the header, X'002078'", "X'002060'") + "\n");
    BOOST_TEST(run(0x1000, 0x0040, 0x0080, "word84").errors ==
               file + "84: " + in_entry("the word at location 84, X'000054'", "X'000040'") + "\n");
    BOOST_TEST(run(0x1000, 0x0060, 0x0080, "word84").errors == "");
}

BOOST_AUTO_TEST_CASE(one_byte_over_last_is_no_bytes) {
    image of;
    of.controls(0x00010000, 0x00010000, 0x0001005F);
    BOOST_TEST(has_line(show(of).output, "note: the last entry runs 1 byte over last"));
    BOOST_TEST(!has_line(show(of).output, "note: the last entry runs 1 bytes"));
}

BOOST_AUTO_TEST_CASE(several_files_are_shown_one_after_the_other_by_name) {
    const scratch_file a, b;
    image of;
    of.controls(0x0000FFE0, 0x00010000, 0x00010020).trace(1).save(a);
    of.put(84, 0).save(b);
    const auto it = run_trace_reduce({a.path(), b.path(), "--das", "20008"});
    BOOST_TEST(it.status == 0);
    const auto lines = lines_of(it.output);
    BOOST_TEST_REQUIRE(lines.size() == 8U);
    for (std::size_t i = 0; i < 8; ++i)
        BOOST_TEST(lines[i].starts_with((i < 4 ? a : b).path() + ": "));
    BOOST_TEST(run_trace_reduce({a.path(), b.path(), "--das", "word84"}).status == 2);
    const auto gone = run_trace_reduce({a.path(), "/nowhere/at/all", "--das", "word84"});
    BOOST_TEST(gone.status == 1);
    BOOST_TEST(gone.errors == "trace-reduce: /nowhere/at/all: No such file or directory\n");
    BOOST_TEST(lines_of(gone.output).size() == 4U);
}

BOOST_AUTO_TEST_CASE(the_storage_that_das_trace_leaves_is_read_as_das_trace_prints_it) {
    using das_example::mnemonic_of;
    const char* const runs[] = {"10 4", "2 4", "10 1", "1000 7", "2999 1000", "1 1"};
    for (const std::string run : runs) {
        const scratch_file storage, listing;
        const std::string command =
            "'" DAS_TRACE "' --image " + storage.path() + " " + run + " >" + listing.path();
        BOOST_TEST_REQUIRE(std::system(command.c_str()) == 0);
        // das_trace's own words: address, number, mnemonic.
        std::vector<std::string> expected;
        for (const auto& line : lines_of(listing.read())) {
            if (line.size() < 40 || line.find("cpu") == std::string::npos) continue;
            if (line.find("never used") != std::string::npos) continue;
            std::istringstream words(line);
            std::string address, number, mnemonic;
            words >> address >> number >> mnemonic;
            expected.push_back(address + ' ' + number + ' ' + mnemonic);
        }
        const auto it = run_trace_reduce({storage.path(), "--das", "1000"});
        BOOST_TEST(it.status == 0);
        BOOST_TEST(it.errors == "");
        std::vector<std::string> seen;
        for (const auto& line : lines_of(it.output)) {
            if (line.compare(6, 2, "  ") != 0 || line[8] == '-') continue;
            const auto number = std::stoul(line.substr(8, 8), nullptr, 16);
            const auto operation = std::stoul(line.substr(17, 4), nullptr, 16);
            const char* const name = mnemonic_of(static_cast<std::uint16_t>(operation));
            BOOST_TEST_REQUIRE(name != nullptr);
            seen.push_back(line.substr(0, 6) + ' ' + std::to_string(number) + ' ' + name);
        }
        BOOST_TEST(!seen.empty());
        BOOST_TEST(seen == expected, boost::test_tools::per_element());
    }
}

BOOST_AUTO_TEST_SUITE_END()
