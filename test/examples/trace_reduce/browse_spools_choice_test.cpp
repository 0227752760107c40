// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Which CPTRAP records trace-reduce --browse shows and finds, without a terminal: filters,
/// searches, marks, ranges, and records that come while it shows them.

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <examples/trace_reduce/browsed_spools.hpp>
#include <reduce/scratch_file.hpp>
#include <trace_reduce/browse/spools/spool_model.hpp>
#include <trace_reduce/options.hpp>

BOOST_AUTO_TEST_SUITE(browse_spools_choice)

using namespace trace_ring_test;
using namespace trace_ring_test::browsed;

BOOST_AUTO_TEST_CASE(filters_choose_types_and_codes_and_keep_the_place) {
    const auto made = thirty();
    scratch_file file;
    file.write(made.bytes);
    opened shows({&file});
    using item = spool_bytes::item;
    const auto is = [](const item& each, unsigned type) { return each.type == type; };
    const std::pair<const char*, std::function<bool(const item&)>> filters[] = {
        {"type interface", [&](const item& each) { return is(each, 0x3F); }},
        {"  type  start_io ",
         [&](const item& each) { return is(each, 0xC5) && each.code == 0x4B; }},
        {"type table_entry", [&](const item& each) { return is(each, 0xC5); }},
        {"code 0x3", [&](const item& each) { return is(each, 0x3F) && each.code == 3; }},
        {"code X'3'-X'4',0x6",
         [&](const item& each) {
             return is(each, 0x3F) && (each.code == 3 || each.code == 4 || each.code == 6);
         }},
        {"type svc_interrupt, 0xC9 code 0x1",
         [&](const item& each) {
             return (is(each, 0x3F) && each.code == 1) || is(each, 0xC9) ||
                    (is(each, 0xC5) && each.code == 2);
         }},
        {"type interface type 0xC9",
         [&](const item& each) { return is(each, 0x3F) || is(each, 0xC9); }},
        {"type 3F where length > 12 and data[0] != 0x41",
         [&](const item& each) {
             return is(each, 0x3F) && each.data.size() > 4 && each.data[0] != 'A';
         }},
        {"where page == 2 or code == 1",
         [&](const item& each) { return each.page == 2 || each.code == 1; }},
        {"code 0x7777", [](const item&) { return false; }},
        {"", [](const item&) { return true; }},
    };
    for (const auto& [text, chosen] : filters) {
        shows->clear_message();
        shows->filter(text);
        BOOST_TEST(shows->message() == "");
        BOOST_TEST(shows->filter_text() == text);
        const auto expected = made.lines(chosen);
        BOOST_TEST(begin_with(all_forward(*shows, 11, expected.size()), expected));
        BOOST_TEST(begin_with(all_backward(*shows, 11, expected.size()), expected));
    }
    // The current line stays if it is chosen; if not, the next one is.
    shows->go("9:4");
    const auto& current = made.at(9, 4);
    BOOST_REQUIRE(current.type == 0x3F);
    shows->filter(printed("code 0x%X", current.code));
    BOOST_TEST(here(*shows).starts_with(current.line()));
    shows->filter("type start_io");
    const auto next = std::find_if(made.all.begin(), made.all.end(), [&](const item& each) {
        return each.offset > current.offset && each.code == 0x4B && each.type == 0xC5;
    });
    BOOST_TEST(here(*shows).starts_with(next->line()));
    BOOST_TEST(shows->status().find("  filter type start_io") != std::string::npos);
    const auto before = shown(*shows);
    for (const auto& [wrong, why] : std::initializer_list<std::pair<const char*, const char*>>{
             {"type", "type: \"\""},
             {"type nonsense", "type: \"nonsense\""},
             {"type interface code", "code: \"\""},
             {"code 0x10000", "code: \"0x10000\""},
             {"code 0x3 interface", "\"interface\" is neither type, code nor where"},
             {"start_io", "\"start_io\" is neither type, code nor where"},
             {"type start_io where x == 1", "column 21: a record of a CPTRAP file has no 'x'"},
             {"where code ==", "column 14: "}}) {
        shows->clear_message();
        shows->filter(wrong);
        BOOST_TEST(shows->message().starts_with(why), shows->message());
        BOOST_TEST(shows->filter_text() == "type start_io");
        BOOST_TEST(shows->filter_draft() == wrong);
        BOOST_TEST(shown(*shows) == before);
    }
}

BOOST_AUTO_TEST_CASE(a_filter_that_nothing_matches_shows_nothing) {
    spool_bytes made;
    for (unsigned i = 0; i < 1000; ++i) made.interface(i, "some data");
    made.end_page();
    scratch_file file;
    file.write(made.bytes);
    opened shows({&file});
    shows->filter("type start_io");
    BOOST_TEST(shows->message() == "nothing matches type start_io");
    BOOST_TEST(shown(*shows).empty());
    BOOST_TEST(shows->here() == nullptr);
    shows->by_pages(1);
    shows->by_lines(-3);
    shows->search("x", false);
    shows->mark('a');
    shows->open_or_close();
    shows->open_or_close_all();
    shows->go("50%");
    shows->end();
    shows->home();
    shows->follow(true);
    BOOST_TEST(!shows->poll());
    shows->follow(false);
    BOOST_TEST(shown(*shows).empty());
    BOOST_TEST(shows->status().find("filter type start_io") != std::string::npos);
    shows->filter("");
    BOOST_TEST(shown(*shows).size() == 10U);
}

BOOST_AUTO_TEST_CASE(data_are_searched_as_ascii_ebcdic_and_bytes_at_any_offset_both_ways) {
    spool_bytes made;
    const std::string filler(500, '\x10');
    std::vector<std::string> with;  // lines with a needle
    for (unsigned i = 0; i < 60; ++i) {
        std::string data = filler.substr(0, i * 4);
        if (i % 10 == 3) data += ebcdic("NEEDLE 7");
        if (i % 10 == 6) data += "NEEDLE 7";
        made.interface(i, data);
        if (i % 10 == 3 || i % 10 == 6) with.push_back(made.all.back().line());
    }
    made.end_page();
    scratch_file file;
    file.write(made.bytes);
    opened shows({&file});
    for (const auto& line : with) {
        shows->search("NEEDLE 7", false);
        BOOST_TEST(here(*shows).starts_with(line));
    }
    shows->clear_message();
    shows->search_again(false);
    BOOST_TEST(shows->message() == "not found: NEEDLE 7");
    BOOST_TEST(here(*shows).starts_with(with.back()));
    for (auto line = with.rbegin() + 1; line != with.rend(); ++line) {
        shows->search_again(true);
        BOOST_TEST(here(*shows).starts_with(*line));
    }
    shows->end();
    shows->search("EDLE", true);
    BOOST_TEST(here(*shows).starts_with(with.back()));
    // Bytes: of EBCDIC, "NEED" is D5C5C5C4.
    shows->home();
    for (const char* bytes : {"X'D5C5C5C4'", "x'd5c5c5c4'", "0xD5C5C5C4", "0XD5c5C5c4"}) {
        shows->home();
        shows->search(bytes, false);
        BOOST_TEST(here(*shows).starts_with(with[0]), bytes);
        shows->search_again(false);
        BOOST_TEST(here(*shows).starts_with(with[2]), bytes);
    }
    for (const char* wrong : {"X'", "X''", "X'C1", "X'C1C'", "X'GG'", "0x", "0xC", "0xC1 C2"}) {
        shows->clear_message();
        shows->search(wrong, false);
        BOOST_TEST(shows->message().starts_with(std::string(wrong) + ": "), shows->message());
        BOOST_TEST(here(*shows).starts_with(with[2]));
    }
    shows->clear_message();
    shows->search_again(false);  // the text before is still searched for
    BOOST_TEST(here(*shows).starts_with(with[4]));
    shows->search("[x]", false);
    BOOST_TEST(shows->message() == "not found: [x] (only as ASCII: EBCDIC has no code for it)");
}

BOOST_AUTO_TEST_CASE(names_are_searched_in_types_losses_and_damage) {
    const auto made = thirty();
    scratch_file file;
    file.write(made.bytes);
    opened shows({&file});
    shows->search("records lost", false);
    BOOST_TEST(here(*shows).starts_with(made.at(5, 0).line()));
    BOOST_TEST(found_here(*shows) == "records lost/");
    shows->search("unreadable", false);
    BOOST_TEST(here(*shows).find("14:") != std::string::npos);
    shows->search_again(false);
    BOOST_TEST(here(*shows).starts_with(made.at(20, 0).line()));
    shows->home();
    shows->search("io, att", false);
    BOOST_TEST(here(*shows).find("C5 start_io, attached 4B") != std::string::npos);
    BOOST_TEST(found_here(*shows) == "io, att/");
    shows->search("C9 unk", false);
    BOOST_TEST(here(*shows).find("C9 unknown") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_hit_is_highlighted_in_the_line_and_in_the_opened_data) {
    spool_bytes made;
    made.interface(1, "first");
    made.interface(
        2, std::string(28, '\x10') + ebcdic("ABCDEFGH") + std::string(100, '\x10') + "ABCDEFGH");
    made.interface(3, "xABCDEFGHABCDEFGH");
    made.end_page();
    scratch_file file;
    file.write(made.bytes);
    opened shows({&file});
    shows->resize(20, 80);
    shows->search("ABCDEFGH", false);
    BOOST_TEST(here(*shows).starts_with(made.all[1].line()));
    BOOST_TEST(shows->message() == "found at X'001C' of its data: x shows it");
    BOOST_TEST(found_here(*shows) == "");
    // Opened, the line of the hit is the current one. The hit continues in the next line.
    shows->open_or_close();
    BOOST_TEST(here(*shows).starts_with("0010 "));
    BOOST_TEST(found_here(*shows) == "C1C2C3C4/ABCD/..../");
    auto rows = shows->rows();
    BOOST_TEST(found_in(rows[4]) == "C5C6C7C8/EFGH/..../");
    BOOST_TEST(found_in(rows[5]) == "");
    BOOST_TEST(found_in(rows[10]) == "41424344 45464748/......../ABCDEFGH/");
    shows->search_again(false);
    BOOST_TEST(here(*shows).starts_with("0080 "));
    shows->search_again(false);
    BOOST_TEST(here(*shows).starts_with(made.all[2].line()));
    BOOST_TEST(found_here(*shows).starts_with("414243 "));  // as much as the line shows
    shows->search_again(true);
    BOOST_TEST(here(*shows).starts_with("0080 "));
    shows->search_again(true);
    BOOST_TEST(here(*shows).starts_with("0010 "));
    shows->clear_message();
    shows->search_again(true);
    BOOST_TEST(shows->message() == "not found: ABCDEFGH");
    BOOST_TEST(here(*shows).starts_with("0010 "));
    // Closed, a record is one hit; a new search also finds what is in the current one.
    shows->open_or_close();
    BOOST_TEST(here(*shows).starts_with(made.all[1].line()));
    shows->search_again(false);
    BOOST_TEST(here(*shows).starts_with(made.all[2].line()));
    shows->search_again(true);
    shows->search("X'10C1C2'", false);
    BOOST_TEST(here(*shows).starts_with(made.all[1].line()));
    BOOST_TEST(shows->message() == "found at X'001B' of its data: x shows it");
    shows->open_or_close();
    BOOST_TEST(found_here(*shows) == "10 C1C2/.AB/.../");
}

BOOST_AUTO_TEST_CASE(marks_are_come_back_to_from_far_away) {
    const auto made = thirty();
    scratch_file file;
    file.write(made.bytes);
    opened shows({&file});
    shows->go("12:2");
    shows->mark('a');
    shows->go("27:1");
    shows->mark('b');
    shows->go_to_mark('a');
    BOOST_TEST(here(*shows).starts_with(made.at(12, 2).line()));
    BOOST_TEST(shows->rows()[3].marked);
    BOOST_TEST(shows->rows()[3].here);
    shows->open_or_close();
    shows->by_lines(1);
    shows->mark('c');
    const auto data = here(*shows);
    shows->go_to_mark('b');
    BOOST_TEST(here(*shows).starts_with(made.at(27, 1).line()));
    shows->go_to_mark('c');
    BOOST_TEST(here(*shows) == data);
    shows->open_or_close();
    shows->home();
    shows->clear_message();
    shows->go_to_mark('c');
    BOOST_TEST(shows->message().find("not there") != std::string::npos);
    BOOST_TEST(here(*shows).starts_with(made.at(12, 2).line()));
    shows->go_to_mark('x');
    BOOST_TEST(shows->message() == "no mark x");
}

BOOST_AUTO_TEST_CASE(the_range_of_the_command_line_bounds_what_is_shown) {
    const auto made = thirty();
    scratch_file file;
    file.write(made.bytes);
    const auto check = [&](const char* from, const char* to, const char* pages,
                           const std::function<bool(const spool_bytes::item&)>& within) {
        trace_reduce::options wanted;
        wanted.from = from;
        wanted.to = to;
        wanted.pages = pages;
        opened shows({&file}, wanted);
        std::vector<std::string> expected;
        for (const auto& each : made.all) {
            if (within(each)) expected.push_back(each.line());
        }
        BOOST_TEST(begin_with(all_forward(*shows, 9, expected.size()), expected));
        BOOST_TEST(begin_with(all_backward(*shows, 9, expected.size()), expected));
        if (expected.empty()) return;
        for (const char* outside : {"#0", "0%", "@0"}) {
            shows->go(outside);
            BOOST_TEST(here(*shows).starts_with(expected.front()), outside);
        }
        for (const char* outside : {"#29", "100%", "29:1"}) {
            shows->go(outside);
            BOOST_TEST(here(*shows).starts_with(expected.back()), outside);
        }
        shows->end();
        BOOST_TEST(here(*shows).starts_with(expected.back()));
        shows->home();
        BOOST_TEST(here(*shows).starts_with(expected.front()));
    };
    using item = spool_bytes::item;
    check("", "", "13-15", [](const item& each) { return each.page >= 13 && each.page <= 15; });
    check("5:3", "#9", "", [](const item& each) {
        return (each.page == 5 && each.index >= 3) || (each.page > 5 && each.page < 9);
    });
    const std::size_t half = made.bytes.size() / 2;
    check("50%", "@0x12345", "",
          [&](const item& each) { return each.offset >= half && each.offset < 0x12345; });
    check("25:0", "28:2", "26-", [](const item& each) {
        return each.page >= 26 && (each.page < 28 || (each.page == 28 && each.index < 2));
    });
    check("#9", "#5", "", [](const item&) { return false; });
    check("", "", "100-200", [](const item&) { return false; });
}

BOOST_AUTO_TEST_CASE(types_and_codes_of_the_command_line_are_the_first_filter) {
    const auto made = thirty();
    scratch_file file;
    file.write(made.bytes);
    trace_reduce::options wanted;
    wanted.types = {"start_io", "0xC9"};
    wanted.codes = {"0x3"};
    opened shows({&file}, wanted);
    const auto expected = made.lines([](const spool_bytes::item& each) {
        return (each.type == 0x3F && each.code == 3) || each.type == 0xC9 ||
               (each.type == 0xC5 && each.code == 0x4B);
    });
    BOOST_TEST(begin_with(all_forward(*shows, 9, expected.size()), expected));
    BOOST_TEST(shows->filter_text() == "type start_io type 0xC9 code 0x3");
    shows->filter(std::string(shows->filter_draft()));
    BOOST_TEST(begin_with(all_forward(*shows, 9, expected.size()), expected));
}

BOOST_AUTO_TEST_CASE(new_records_are_followed) {
    spool_bytes made;
    for (unsigned i = 0; i < 5; ++i) made.interface(i, "x");
    made.end_page();
    scratch_file file;
    file.write(made.bytes);
    opened shows({&file});
    shows->resize(4, 80);
    const auto append = [&](std::string_view bytes) {
        std::ofstream out(file.path(), std::ios::binary | std::ios::app);
        out << bytes;
    };
    shows->follow(true);
    BOOST_TEST(here(*shows).starts_with(made.all[4].line()));
    BOOST_TEST(!shows->poll());
    std::size_t before = made.bytes.size();
    for (unsigned i = 5; i < 9; ++i) made.interface(i, "y");
    made.end_page();
    append(std::string_view(made.bytes).substr(before));
    BOOST_TEST(shows->poll());
    BOOST_TEST(here(*shows).starts_with(made.all[8].line()));
    BOOST_TEST(shown(*shows).size() == 4U);
    BOOST_TEST(shows->status().find("  following") != std::string::npos);
    // Bit by bit: what is torn is not shown before it is whole.
    before = made.bytes.size();
    made.interface(9, std::string(20, 'z'));
    made.interface(10, std::string(20, 'z'));
    made.end_page();
    append(std::string_view(made.bytes).substr(before, 30));
    BOOST_TEST(shows->poll());
    BOOST_TEST(here(*shows).starts_with(made.all[9].line()));
    append(std::string_view(made.bytes).substr(before + 30, 20));
    BOOST_TEST(!shows->poll());
    BOOST_TEST(here(*shows).starts_with(made.all[9].line()));
    // Not followed, it is there.
    shows->by_lines(1);
    BOOST_TEST(!shows->following());
    BOOST_TEST(here(*shows).find("-- torn: ") != std::string::npos);
    BOOST_TEST(shows.all.damages().size() == 1U);
    append(std::string_view(made.bytes).substr(before + 50));
    BOOST_TEST(shows.all.damages().empty());
    shows->by_lines(1);  // at the end: what has come since
    BOOST_TEST(here(*shows).starts_with(made.all[10].line()));
    BOOST_TEST(begin_with(all_forward(*shows, 4, 11), made.lines()));
    // From an end that is torn.
    before = made.bytes.size();
    made.interface(11, "last");
    made.end_page();
    append(std::string_view(made.bytes).substr(before, 3));
    shows->end();
    BOOST_TEST(here(*shows).find("-- torn: ") != std::string::npos);
    shows->follow(true);
    BOOST_TEST(here(*shows).starts_with(made.all[10].line()));
    append(std::string_view(made.bytes).substr(before + 3));
    BOOST_TEST(shows->poll());
    BOOST_TEST(here(*shows).starts_with(made.all[11].line()));
    shows->home();
    shows->resize(50, 80);
    BOOST_TEST(begin_with(shown(*shows), made.lines()));
}

BOOST_AUTO_TEST_CASE(nothing_behind_a_torn_end_is_shown_before_what_was_missing_in_it) {
    spool_bytes made;
    for (unsigned i = 0; i < 5; ++i) made.interface(i, "x");
    made.end_page();
    const std::size_t torn = 20;
    for (unsigned i = 5; i < 10; ++i) {
        made.interface(i, "x");
        made.end_page();
    }
    scratch_file file;
    file.write(made.bytes.substr(0, torn));
    opened shows({&file});
    BOOST_TEST(shown(*shows).size() == 3U);
    BOOST_TEST(shown(*shows)[2].find("-- torn: ") != std::string::npos);
    file.write(made.bytes);
    shows->resize(20, 80);
    BOOST_TEST(shown(*shows).size() == 3U);
    shows->by_lines(10);
    BOOST_TEST(begin_with(shown(*shows), made.lines()));
}

BOOST_AUTO_TEST_CASE(new_records_that_a_filter_chooses_are_followed_and_a_torn_end_is_damage) {
    spool_bytes made;
    made.interface(1, "x");
    made.end_page();
    scratch_file file;
    file.write(made.bytes);
    trace_reduce::options wanted;
    wanted.codes = {"0x2"};
    opened shows({&file}, wanted);
    shows->follow(true);
    BOOST_TEST(shown(*shows).empty());
    const std::size_t before = made.bytes.size();
    for (unsigned i = 0; i < 2000; ++i)
        made.interface(i % 1000 == 0 ? 2 : 1, std::string(200, 'x'));
    made.end_page();
    std::ofstream out(file.path(), std::ios::binary | std::ios::app);
    out << std::string_view(made.bytes).substr(before);
    out.flush();
    BOOST_TEST(shows->poll());
    BOOST_TEST(
        begin_with(shown(*shows), made.lines([](const auto& each) { return each.code == 2; })));
    out << std::string(7, '\x3F');
    out.flush();
    BOOST_TEST(!shows->poll());
    BOOST_TEST(shows.all.damages().empty());
    shows->look_at_ends();
    BOOST_TEST(shows.all.damages().size() == 1U);
}

BOOST_AUTO_TEST_CASE(several_files_are_followed_in_the_order_in_which_they_grow) {
    spool_bytes first, second;
    first.interface(1, "first");
    first.end_page();
    second.interface(2, "second");
    second.end_page();
    scratch_file one, two;
    one.write(first.bytes);
    two.write(second.bytes);
    opened shows({&one, &two});
    shows->follow(true);
    BOOST_TEST(here(*shows).find("0002 6 bytes") != std::string::npos);
    const auto append = [](const scratch_file& to, spool_bytes& made, unsigned code) {
        const std::size_t before = made.bytes.size();
        made.interface(code, "new");
        made.end_page();
        std::ofstream out(to.path(), std::ios::binary | std::ios::app);
        out << made.bytes.substr(before);
    };
    for (const unsigned code : {3U, 4U, 5U, 6U}) {
        append(code % 2 != 0 ? one : two, code % 2 != 0 ? first : second, code);
        BOOST_TEST(shows->poll());
        BOOST_TEST(here(*shows).find(printed("%04X 3 bytes", code)) != std::string::npos);
    }
    // Afterwards they are in the order of the files again, each once.
    shows->by_lines(0);
    std::vector<std::string> codes;
    for (const auto& each : shown(*shows))
        codes.push_back(each.substr(each.find("interface") + 10, 4));
    BOOST_TEST(codes == (std::vector<std::string>{"0001", "0003", "0005", "0002", "0004", "0006"}),
               boost::test_tools::per_element());
    BOOST_TEST(here(*shows).find("0006 3 bytes") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
