// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// What trace-reduce --browse shows of CPTRAP files, without a terminal: lines, data, places,
/// several files, damage, and files that are large or become shorter.

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <examples/trace_reduce/browsed_spools.hpp>
#include <reduce/scratch_file.hpp>
#include <trace_reduce/browse/spools/spool_model.hpp>
#include <trace_reduce/options.hpp>

BOOST_AUTO_TEST_SUITE(browse_spools)

using namespace trace_ring_test;
using namespace trace_ring_test::browsed;

BOOST_AUTO_TEST_CASE(every_item_is_shown_once_forward_and_backward_on_a_screen_of_any_size) {
    const auto made = thirty();
    scratch_file file;
    file.write(made.bytes);
    const auto expected = made.lines();
    BOOST_REQUIRE(expected.size() > 300U);
    for (const std::size_t rows : {1, 4, 13, 100, 1000}) {
        opened shows({&file});
        BOOST_TEST(begin_with(all_forward(*shows, rows, expected.size()), expected));
        shows->end();
        BOOST_TEST(here(*shows).starts_with(expected.back()));
        shows->by_lines(1);
        BOOST_TEST(here(*shows).starts_with(expected.back()));
        BOOST_TEST(begin_with(all_backward(*shows, rows, expected.size()), expected));
        shows->home();
        shows->by_lines(-1);
        BOOST_TEST(here(*shows).starts_with(expected.front()));
    }
    // Line by line over the borders of spool records.
    opened shows({&file});
    for (const auto& line : expected) {
        BOOST_TEST(here(*shows).starts_with(line));
        shows->by_lines(1);
    }
    for (auto line = expected.rbegin(); line != expected.rend(); ++line) {
        BOOST_TEST(here(*shows).starts_with(*line));
        shows->by_lines(-1);
    }
}

BOOST_AUTO_TEST_CASE(lines_far_away_are_forgotten_and_read_again) {
    spool_bytes made;
    for (unsigned i = 0; i < 20'000; ++i) made.interface(i, big(i, 4) + std::string(16, '\x11'));
    made.end_page();
    scratch_file file;
    file.write(made.bytes);
    opened shows({&file});
    auto expected = made.lines();
    BOOST_TEST(begin_with(all_forward(*shows, 999, expected.size()), expected));
    BOOST_TEST(begin_with(all_backward(*shows, 999, expected.size()), expected));
    // With their data they have three lines each, wherever lines begin to be forgotten.
    expected.clear();
    for (const auto& each : made.all) {
        expected.push_back(each.line());
        expected.push_back(printed("0000 %08X 11111111 ", each.code));
        expected.emplace_back("0010 11111111 ");
    }
    shows->open_or_close_all();
    BOOST_TEST(begin_with(all_forward(*shows, 999, expected.size()), expected));
    shows->end();
    for (int i = 0; i < 10; ++i) shows->by_pages(-1);
    BOOST_TEST(begin_with(all_backward(*shows, 999, expected.size()), expected));
    // There and back, beyond what is kept in either direction.
    shows->go("#68");
    shows->resize(30, 200);
    const auto there = shown(*shows);
    for (int i = 0; i < 500; ++i) shows->by_pages(1);
    for (int i = 0; i < 500; ++i) shows->by_pages(-1);
    BOOST_TEST(shown(*shows) == there);
    for (int i = 0; i < 500; ++i) shows->by_pages(-1);
    for (int i = 0; i < 500; ++i) shows->by_pages(1);
    BOOST_TEST(shown(*shows) == there);
}

BOOST_AUTO_TEST_CASE(the_data_of_a_record_of_any_length_is_dumped) {
    for (const std::size_t size : {0, 1, 15, 16, 17, 263, 264, 4088}) {
        spool_bytes made;
        made.interface(1, "before");
        made.end_page();
        std::string data;
        for (std::size_t i = 0; i < size; ++i) {
            // A to I of EBCDIC, 1 to 9 of ASCII, and what is neither.
            data += static_cast<char>(i % 3 == 0 ? 0xC1 + i % 9 : i % 3 == 1 ? '1' + i % 9 : 0);
        }
        made.add(size <= 264 ? 0x3F : 0xC9, 0xABCD, data);
        made.end_page();
        made.interface(2, "after");
        made.end_page();
        std::vector<std::string> dump;
        for (std::size_t at = 0; at < size; at += 16) {
            std::string hex, characters, ascii;
            for (std::size_t i = at; i < std::min(at + 16, size); ++i) {
                const auto byte = static_cast<unsigned char>(data[i]);
                if (i % 4 == 0 && i != at) hex += ' ';
                hex += printed("%02X", static_cast<unsigned>(byte));
                characters += byte >= 0xC1 ? static_cast<char>('A' + byte - 0xC1) : '.';
                ascii += byte >= '1' && byte <= '9' ? static_cast<char>(byte) : '.';
            }
            hex.resize(35, ' ');
            characters += '*';
            characters.resize(17, ' ');
            dump.push_back(printed("  %04zX ", at) + hex + " *" + characters + " |" + ascii + "|");
        }
        if (size == 0) dump.emplace_back("  (no data)");
        scratch_file file;
        file.write(made.bytes);
        opened shows({&file});
        shows->resize(400, 80);
        shows->by_lines(1);
        shows->open_or_close();
        BOOST_TEST(here(*shows).starts_with(made.all[1].line()));
        const auto rows = shows->rows();
        BOOST_REQUIRE(rows.size() == 3 + dump.size());
        BOOST_TEST(text_of(rows[0]).starts_with(made.all[0].line()));
        for (std::size_t i = 0; i < dump.size(); ++i) BOOST_TEST(whole(rows[2 + i]) == dump[i]);
        BOOST_TEST(text_of(rows.back()).starts_with(made.all[2].line()));
        // As a screen with few lines has it: one goes through it by lines, and closes it anywhere.
        shows->resize(5, 80);
        shows->end();
        shows->by_lines(-1);
        const auto last = shows->rows();
        BOOST_TEST(whole(last[last.size() - 2]) == dump.back());
        BOOST_TEST(last[last.size() - 2].here);
        shows->open_or_close();
        BOOST_TEST(here(*shows).starts_with(made.all[1].line()));
        BOOST_TEST(begin_with(shown(*shows), made.lines()));
        shows->open_or_close_all();
        shows->resize(400, 80);
        BOOST_TEST(shown(*shows).size() == 3 + dump.size() + 2);
        shows->by_lines(-1);
        BOOST_TEST(here(*shows).starts_with("0000 "));
        shows->open_or_close_all();
        BOOST_TEST(begin_with(shown(*shows), made.lines()));
    }
}

BOOST_AUTO_TEST_CASE(an_opened_record_is_shown_as_far_as_there_is_room) {
    spool_bytes made;
    for (unsigned i = 0; i < 20; ++i) made.interface(i, std::string(100, 'x'));
    made.end_page();
    scratch_file file;
    file.write(made.bytes);
    opened shows({&file});
    shows->by_lines(9);  // the last line of the screen
    shows->open_or_close();
    BOOST_TEST(shown(*shows)[2].starts_with(made.all[9].line()));
    BOOST_TEST(shown(*shows)[9].starts_with("0060 78787878"));
    shows->resize(5, 80);
    shows->open_or_close();
    shows->open_or_close();
    BOOST_TEST(shown(*shows)[0].starts_with(made.all[9].line()));
}

BOOST_AUTO_TEST_CASE(the_first_bytes_of_the_data_stand_in_the_line_as_far_as_it_goes) {
    spool_bytes made;
    made.interface(3, ebcdic("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"));
    made.entry(0x4B);
    made.interface(4, "ab");
    made.interface(5, "");
    made.end_page();
    scratch_file file;
    file.write(made.bytes);
    opened shows({&file});
    BOOST_TEST(whole(shows->rows()[0]) ==
               " 00000000 0:0 3F interface          0003 36 bytes C1C2C3C4 C5 *ABCDE* |.....|");
    BOOST_TEST(whole(shows->rows()[1]) ==
               " 0000002C 0:1 C5 start_io, attached 4B   16 bytes 4B303132 33 *.....* |K0123|");
    BOOST_TEST(whole(shows->rows()[2]) ==
               " 00000044 0:2 3F interface          0004  2 bytes 6162        */.*    |ab|");
    BOOST_TEST(whole(shows->rows()[3]) ==
               " 0000004E 0:3 3F interface          0005  0 bytes             **      ||");
    for (std::size_t width = 80; width < 200; ++width) {
        shows->resize(10, width);
        const std::size_t length = whole(shows->rows()[0]).size();
        BOOST_TEST(length <= width);
        BOOST_TEST(
            (length + 5 > width || whole(shows->rows()[0]).ends_with("|....|") || length > 180));
    }
    shows->resize(10, 20);  // too few for anything: the rest is beyond the edge
    BOOST_TEST(whole(shows->rows()[0]).ends_with(" C1C2C3C4 *ABCD* |....|"));
    shows->resize(10, 80);
    for (const auto column : {spool_column::offset, spool_column::record, spool_column::code,
                              spool_column::length, spool_column::hex, spool_column::ascii}) {
        shows->toggle(column);
    }
    BOOST_TEST(whole(shows->rows()[0]) ==
               " 3F interface          *ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789*");
    BOOST_TEST(whole(shows->rows()[1]).starts_with(" C5 start_io, attached *....."));
    shows->open_or_close();
    BOOST_TEST(whole(shows->rows()[1]) == "  0000 *ABCDEFGHIJKLMNOP*");
}

BOOST_AUTO_TEST_CASE(places_are_gone_to_by_record_offset_and_share) {
    const auto made = thirty();
    scratch_file file;
    file.write(made.bytes);
    opened shows({&file});
    const auto at = [&](const std::string& place) {
        shows->clear_message();
        shows->go(place);
        BOOST_TEST(shows->message() == "");
        return here(*shows);
    };
    const auto from_offset = [&](std::size_t offset) {
        for (const auto& each : made.all) {
            if (each.offset >= offset) return each.line();
        }
        return made.all.back().line();
    };
    for (const auto& each : made.all) {
        BOOST_TEST(at(each.place()).starts_with(each.line()));
        BOOST_TEST(at("#" + each.place()).starts_with(each.line()));
        BOOST_TEST(at(printed("@0x%zX", each.offset)).starts_with(each.line()));
        BOOST_TEST(at(printed("@%zu", each.offset + 1)).starts_with(from_offset(each.offset + 1)));
    }
    BOOST_TEST(at(" #7 ").starts_with(made.at(7, 0).line()));
    BOOST_TEST(at("#21").starts_with(made.at(22, 0).line()));  // an empty spool record
    BOOST_TEST(at("7:4000").starts_with(made.at(8, 0).line()));
    BOOST_TEST(at("0%").starts_with(made.all.front().line()));
    BOOST_TEST(at("25%").starts_with(from_offset(made.bytes.size() / 4)));
    BOOST_TEST(at("99.9%").starts_with(from_offset(made.bytes.size() * 999 / 1000)));
    for (const char* beyond : {"100%", "#30", "#123456789", "29:99", "@0x7FFFFFFFFFFFFFFF"}) {
        BOOST_TEST(at(beyond).starts_with(made.all.back().line()));
    }
    (void)at("5:3");
    for (const char* wrong :
         {"", "x", "5", "5:", "5:x", "@", "@zz", "101%", "-1%", "12:34:56", "2024-01-01", "+1s"}) {
        shows->clear_message();
        shows->go(wrong);
        BOOST_TEST(shows->message().starts_with(std::string("no place: ") + wrong));
        for (const char* form : {"#5", "5:3", "@0x5000", "25%"}) {
            BOOST_TEST(shows->message().find(form) != std::string::npos, shows->message());
        }
        BOOST_TEST(here(*shows).starts_with(made.at(5, 3).line()));
    }
    BOOST_TEST(shows->status().find(printed("  5:3  @0x%zX  16.", made.at(5, 3).offset)) !=
               std::string::npos);
}

BOOST_AUTO_TEST_CASE(several_files_are_shown_one_after_the_other) {
    const auto made = thirty();
    spool_bytes other;
    for (unsigned i = 0; i < 30; ++i) other.interface(100 + i, ebcdic("OTHER"));
    other.end_page();
    scratch_file first, second, empty_page;
    first.write(made.bytes);
    second.write(other.bytes);
    empty_page.write(std::string(page_bytes, '\0'));
    opened shows({&first, &empty_page, &second});
    const auto base = [](const scratch_file& file) {
        return file.path().substr(file.path().rfind('/') + 1) + ' ';
    };
    std::vector<std::string> expected;
    for (const auto& each : made.lines()) expected.push_back(base(first) + each);
    for (const auto& each : other.lines()) expected.push_back(base(second) + each);
    for (const std::size_t rows : {7, 200}) {
        BOOST_TEST(begin_with(all_forward(*shows, rows, expected.size()), expected));
        BOOST_TEST(begin_with(all_backward(*shows, rows, expected.size()), expected));
    }
    // Places are those of the file of the current line.
    shows->home();
    shows->go("#1");
    BOOST_TEST(here(*shows).starts_with(base(first) + made.at(1, 0).line()));
    shows->go("100%");
    BOOST_TEST(here(*shows).starts_with(base(first) + made.all.back().line()));
    shows->by_lines(1);
    BOOST_TEST(here(*shows).starts_with(base(second) + other.all.front().line()));
    shows->go("0:5");
    BOOST_TEST(here(*shows).starts_with(base(second) + other.at(0, 5).line()));
    shows->search("NO 7 ", true);
    BOOST_TEST(here(*shows).starts_with(base(first)));
    shows->search("OTHER", false);
    BOOST_TEST(here(*shows).starts_with(base(second) + other.all.front().line()));
    BOOST_TEST(shows->status().find(" and 2 more") != std::string::npos);
    shows->toggle(spool_column::file);
    BOOST_TEST(here(*shows).starts_with(other.all.front().line()));
}

BOOST_AUTO_TEST_CASE(damage_that_was_met_is_counted_and_remembered) {
    const auto made = thirty();
    scratch_file file;
    file.write(made.bytes + made.bytes.substr(0, 100));
    opened shows({&file});
    BOOST_TEST(shows->status().find("damaged") == std::string::npos);
    BOOST_TEST(shows.all.damages().empty());
    shows->go("#14");
    shows->resize(200, 80);
    BOOST_TEST(shows->status().ends_with("  3 damaged so far"));
    shows->end();
    BOOST_TEST(here(*shows).find("-- torn: the file ends within the spool record") !=
               std::string::npos);
    BOOST_TEST(shows->status().ends_with("  4 damaged so far"));
    for (int i = 0; i < 3; ++i) (void)all_backward(*shows, 50, 1000);
    std::vector<std::size_t> offsets;
    for (const auto& each : made.all) {
        if (each.type == 0) offsets.push_back(each.offset);
    }
    // One of the thirty spool records is all zero, which no spool writes.
    auto damages = shows.all.damages();
    BOOST_REQUIRE(damages.size() == 4U);
    const auto zeros = std::find_if(damages.begin(), damages.end(), [](const auto& each) {
        return each.what == "a spool record of zeros: nothing was written into it";
    });
    BOOST_REQUIRE((zeros != damages.end()));
    BOOST_TEST(zeros->offset % 4096 == 0U);
    BOOST_TEST(made.bytes.substr(zeros->offset, 4096) == std::string(4096, '\0'));
    damages.erase(zeros);
    BOOST_TEST(damages[0].offset == offsets[0]);
    BOOST_TEST(damages[1].offset == offsets[1]);
    BOOST_TEST(damages[2].offset >= made.bytes.size());
    BOOST_TEST(damages[0].what == "a record of a type whose length is not known");
    BOOST_TEST(damages[2].what == "torn: the file ends within the spool record");
    // Damage can be opened: its bytes.
    shows->go(printed("@%zu", offsets[1]));
    shows->open_or_close();
    shows->by_lines(1);
    BOOST_TEST(here(*shows) ==
               "0000 3E6A6A6A 6A6A6A6A 6A6A6A6A 6A6A6A6A *................* |>jjjjjjjjjjjjjjj|");
}

BOOST_AUTO_TEST_CASE(a_file_of_a_tebibyte_is_gone_through_without_reading_what_is_not_shown) {
    // Records at the beginning, in the middle and at the end; between them, nothing.
    constexpr std::uint64_t pages = std::uint64_t{1} << 28;
    scratch_file file;
    const auto put = [&](std::uint64_t page) {
        spool_bytes one;
        for (unsigned i = 0; i < 20; ++i)
            one.interface(i,
                          ebcdic(printed("IN PAGE %llu", static_cast<unsigned long long>(page))));
        one.end_page();
        std::fstream out(file.path(), std::ios::binary | std::ios::in | std::ios::out);
        out.seekp(static_cast<std::streamoff>(page * page_bytes));
        out << one.bytes;
        BOOST_REQUIRE(out.flush().good());
    };
    for (const std::uint64_t page : {std::uint64_t{0}, pages / 2, pages - 1}) put(page);
    opened shows({&file});
    std::size_t calls = 0;
    shows->go_on = [&](double) { return ++calls < 100'000; };
    BOOST_TEST(here(*shows).starts_with("00000000 0:0 "));
    shows->end();
    // 19 records of 25 bytes are before the last one.
    BOOST_TEST(here(*shows).starts_with("FFFFFFF1DB 268435455:19 "));
    shows->go("50%");
    BOOST_TEST(here(*shows).starts_with("8000000000 134217728:0 "));
    BOOST_TEST(shows->status().find("  134217728:0  @0x8000000000  50.0%") != std::string::npos);
    shows->go("134217728:3");
    BOOST_TEST(here(*shows).find("0003 17 bytes") != std::string::npos);
    shows->go("@0xFFFFFFF000");
    BOOST_TEST(here(*shows).starts_with("FFFFFFF000 268435455:0 "));
    BOOST_TEST(calls == 0U);  // not once was anything passed over for long
    // What takes long says how far it is, and ends when it is asked to.
    shows->home();
    std::vector<double> told;
    shows->go_on = [&](double done) {
        told.push_back(done);
        return told.size() < 50;
    };
    shows->clear_message();
    shows->search("IN PAGE 9", false);
    BOOST_TEST(shows->message() == "stopped");
    BOOST_TEST(told.size() == 50U);
    BOOST_TEST(std::is_sorted(told.begin(), told.end()));
    BOOST_TEST(told.front() >= 0);
    BOOST_TEST(told.back() < 1);
    BOOST_TEST(here(*shows).starts_with("00000000 0:0 "));
    told.clear();
    shows->clear_message();
    shows->filter("code 0x7777");
    BOOST_TEST(shows->message() == "stopped");
    BOOST_TEST(told.size() == 50U);
}

BOOST_AUTO_TEST_CASE(a_file_that_becomes_shorter_is_read_as_far_as_it_goes) {
    const auto made = thirty();
    scratch_file file;
    file.write(made.bytes);
    opened shows({&file});
    shows->end();
    BOOST_REQUIRE(::truncate(file.path().c_str(), 10 * page_bytes) == 0);
    for (int i = 0; i < 5; ++i) shows->by_pages(-1);
    shows->go("#20");
    shows->by_lines(1);
    shows->end();
    std::string last;
    for (const auto& each : made.all) {
        if (each.page < 10) last = each.line();
    }
    BOOST_TEST(here(*shows).starts_with(last));
    BOOST_REQUIRE(::truncate(file.path().c_str(), 0) == 0);
    shows->home();
    BOOST_TEST(shown(*shows).empty());
    shows->end();
    shows->follow(true);
    BOOST_TEST(!shows->poll());
    BOOST_TEST(shown(*shows).empty());
}

BOOST_AUTO_TEST_SUITE_END()
