// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// What trace-reduce --browse shows of CPTRAP files, without a terminal. The files are made byte by
/// byte, and what is in them is kept in a list that no reader has made.

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <reduce/scratch_file.hpp>
#include <trace_reduce/browse/spools/spool_choice.hpp>
#include <trace_reduce/browse/spools/spool_model.hpp>
#include <trace_reduce/browse/spools/spools.hpp>
#include <trace_reduce/cptrap/range.hpp>
#include <trace_reduce/options.hpp>
#include <trace_ring/reduce/source.hpp>

BOOST_AUTO_TEST_SUITE(browse_spools)

using namespace trace_ring_test;
using namespace trace_reduce::browse;

namespace {

constexpr std::size_t page_bytes = 4096;

std::string printed(const char* format, auto... values) {
    char text[160];
    return {text, static_cast<std::size_t>(std::snprintf(text, sizeof text, format, values...))};
}
/// Capital letters, digits and blanks in EBCDIC.
std::string ebcdic(std::string_view text) {
    std::string out;
    for (const char c : text) {
        unsigned code = 0x40;
        if (c >= 'A' && c <= 'I') code = 0xC1U + static_cast<unsigned>(c - 'A');
        if (c >= 'J' && c <= 'R') code = 0xD1U + static_cast<unsigned>(c - 'J');
        if (c >= 'S' && c <= 'Z') code = 0xE2U + static_cast<unsigned>(c - 'S');
        if (c >= '0' && c <= '9') code = 0xF0U + static_cast<unsigned>(c - '0');
        out += static_cast<char>(code);
    }
    return out;
}
std::string big(std::uint64_t value, std::size_t bytes) {
    std::string out;
    while (bytes-- > 0) out += static_cast<char>(value >> 8 * bytes);
    return out;
}

/// A file, and the items that it has.
struct spool_bytes {
    struct item {
        std::size_t page, index, offset;
        unsigned type;  ///< 0: damage
        unsigned code;
        std::string data;
        std::string told;  ///< the rest of the line, if it is no record

        [[nodiscard]] std::string place() const { return printed("%zu:%zu", page, index); }
        /// The beginning of its line.
        [[nodiscard]] std::string line() const {
            const std::string begin = printed("%08zX ", offset) + place() + ' ';
            if (!told.empty()) return begin + told;
            const std::size_t size = data.size();
            const char* const unit = size == 1 ? "byte" : "bytes";
            if (type != 0xC5) {
                const char* const name = type == 0x3F ? "interface" : "unknown";
                return begin + printed("%02X %s %04X %zu %s", type, name, code, size, unit);
            }
            const char* const event = (code & 0xBFU) == 0x0B ? "start_io" : "svc_interrupt";
            const char* const attached = (code & 0x40U) != 0 ? ", attached" : "";
            return begin + printed("C5 %s%s %02X %zu %s", event, attached, code, size, unit);
        }
    };

    std::string bytes;
    std::vector<item> all;

    void raw(unsigned type, unsigned code, const std::string& data) {
        bytes += big(type, 1) + big(0, 1) + big(code, 2) + big(data.size() + 8, 2) + big(0, 2);
        bytes += data;
    }
    void add(unsigned type, unsigned code, std::string data) {
        if (bytes.size() % page_bytes + 8 + data.size() > page_bytes) end_page();
        note(type, code, data, {});
        raw(type, code, data);
        if (bytes.size() % page_bytes == 0) index = 0;
    }
    void interface(unsigned code, std::string data) { add(0x3F, code, std::move(data)); }
    void entry(unsigned code) {
        std::string data = big(code, 1) + "0123456789abcde";
        add(0xC5, code, std::move(data));
    }
    void lost(unsigned count) {
        note(0xD3, 2, big(count, 8), printed("-- %u records lost: refused", count));
        raw(0xD3, 2, big(count, 8));
    }
    void damage() {
        const std::size_t rest = page_bytes - bytes.size() % page_bytes;
        const std::string junk = "\x3E" + std::string(20, 'j') + std::string(rest - 21, '\0');
        note(0, 0, junk,
             printed("-- %zu bytes unreadable: a record of a type whose length is not known (3E)",
                     rest));
        bytes += junk;
        index = 0;
    }
    void end_page() {
        if (bytes.size() % page_bytes != 0)
            bytes.resize((bytes.size() / page_bytes + 1) * page_bytes);
        index = 0;
    }
    /// The lines of the items for which this holds, and of losses and damage.
    [[nodiscard]] std::vector<std::string> lines(const std::function<bool(const item&)>& chosen =
                                                     [](const item&) { return true; }) const {
        std::vector<std::string> out;
        for (const auto& each : all) {
            if (!each.told.empty() || chosen(each)) out.push_back(each.line());
        }
        return out;
    }
    [[nodiscard]] const item& at(std::size_t page, std::size_t number) const {
        return *std::find_if(all.begin(), all.end(), [&](const item& each) {
            return each.page == page && each.index == number;
        });
    }

private:
    void note(unsigned type, unsigned code, const std::string& data, const std::string& told) {
        all.push_back({bytes.size() / page_bytes, index++, bytes.size(), type, code, data, told});
    }
    std::size_t index = 0;
};

/// Thirty spool records with records of all lengths, a loss in the fifth, damage in the middle, a
/// spool record that is only damage, and an empty one.
spool_bytes thirty() {
    spool_bytes made;
    unsigned number = 0;
    while (made.bytes.size() < 30 * page_bytes) {
        const std::size_t page = made.bytes.size() / page_bytes;
        const std::size_t within = made.bytes.size() % page_bytes;
        if (within > page_bytes - 1100 && page != 14) {
            made.end_page();
            continue;
        }
        if (page == 5 && within == 0) made.lost(17);
        if (page == 14 && within > 1000) {
            made.damage();
            continue;
        }
        if (page == 20 && within == 0) {
            made.damage();
            made.bytes.resize(made.bytes.size() + page_bytes);
            continue;
        }
        ++number;
        if (number % 5 == 0) {
            made.entry(number % 10 == 0 ? 0x4B : 0x02);
        } else if (number % 31 == 0) {
            made.add(0xC9, number, std::string(number % 1000 + 1, 'z'));
        } else {
            made.interface(number % 7,
                           ebcdic(printed("NO %u ", number)) + std::string(number * 13 % 250, 'd'));
        }
    }
    made.end_page();
    return made;
}

std::string text_of(const row& of) {
    std::string text;
    for (const auto& cell : of.cells) {
        const std::size_t begin = cell.text.find_first_not_of(' ');
        if (begin == std::string::npos) continue;
        if (!text.empty()) text += ' ';
        text += cell.text.substr(begin, cell.text.find_last_not_of(' ') + 1 - begin);
    }
    return text;
}
std::vector<std::string> shown(spool_model& of) {
    std::vector<std::string> all;
    for (const auto& each : of.rows()) all.push_back(text_of(each));
    return all;
}
std::string here(spool_model& of) {
    for (const auto& each : of.rows()) {
        if (each.here) return text_of(each);
    }
    return "none";
}
/// A row, as the screen shows it.
std::string whole(const row& of) {
    std::string text;
    for (const auto& cell : of.cells) text += ' ' + cell.text;
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
}
std::string found_in(const row& of) {
    std::string text;
    for (const auto& cell : of.cells) {
        for (const auto& part : cell.found) {
            text += cell.text.substr(part.begin, part.end - part.begin) + '/';
        }
    }
    return text;
}
std::string found_here(spool_model& of) {
    for (const auto& each : of.rows()) {
        if (each.here) return found_in(each);
    }
    return "none";
}
/// Rows begin with these lines; the data of records follow.
bool begin_with(const std::vector<std::string>& rows, const std::vector<std::string>& lines) {
    if (rows.size() != lines.size()) return false;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (!rows[i].starts_with(lines[i])) {
            BOOST_TEST_MESSAGE(rows[i] + " is not " + lines[i]);
            return false;
        }
    }
    return true;
}

/// A model of files in memory of the disk.
struct opened {
    spools all;
    std::optional<spool_model> model;

    explicit opened(std::initializer_list<const scratch_file*> files,
                    const trace_reduce::options& wanted = {}) {
        for (const auto* each : files) {
            auto from = trace_ring::reduce::source::open(each->path());
            const trace_reduce::spool_range range(wanted, from.size());
            all.add(std::move(from), range);
        }
        model.emplace(all, spool_choice::of(wanted), "");
        model->resize(10, 80);
    }
    spool_model* operator->() { return &*model; }
    spool_model& operator*() { return *model; }
};

/// All lines, page by page forward.
std::vector<std::string> all_forward(spool_model& of, std::size_t rows, std::size_t count) {
    std::vector<std::string> all;
    of.resize(rows, 200);
    of.home();
    for (;;) {
        const auto page = shown(of);  // the last one is full, too
        const std::size_t fresh = std::min(page.size(), count - std::min(count, all.size()));
        all.insert(all.end(), page.end() - static_cast<std::ptrdiff_t>(fresh), page.end());
        if (page.size() < rows || all.size() >= count) return all;
        of.by_pages(1);
    }
}
std::vector<std::string> all_backward(spool_model& of, std::size_t rows, std::size_t count) {
    std::vector<std::string> all;
    of.resize(rows, 200);
    of.end();
    for (;;) {
        const auto page = shown(of);
        const std::size_t fresh = std::min(page.size(), count - std::min(count, all.size()));
        all.insert(all.begin(), page.begin(), page.begin() + static_cast<std::ptrdiff_t>(fresh));
        if (page.size() < rows || all.size() >= count) return all;
        of.by_pages(-1);
    }
}

}  // namespace

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
    for (unsigned i = 0; i < 40'000; ++i) made.interface(i, big(i, 4));
    made.end_page();
    scratch_file file;
    file.write(made.bytes);
    opened shows({&file});
    const auto expected = made.lines();
    BOOST_TEST(begin_with(all_forward(*shows, 999, expected.size()), expected));
    BOOST_TEST(begin_with(all_backward(*shows, 999, expected.size()), expected));
    shows->open_or_close_all();  // two lines a record
    shows->home();
    std::size_t number = 0;
    for (bool same = true; same && number < expected.size();) {
        const auto page = shown(*shows);
        for (std::size_t i = 0; i < page.size(); i += 2) {
            same = same && page[i].starts_with(expected[number++]);
        }
        BOOST_REQUIRE(same);
        shows->resize(1000, 80);
        shows->by_pages(1);
        if (number + 500 > expected.size()) break;
    }
    BOOST_TEST(number == 40'000U - 40'000U % 500U);
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
             {"code 0x3 interface", "\"interface\" is neither type nor code"},
             {"start_io", "\"start_io\" is neither type nor code"},
             {"type start_io where x == 1", "where: "}}) {
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
    BOOST_TEST(shows->status().ends_with("  2 damaged so far"));
    shows->end();
    BOOST_TEST(here(*shows).find("-- torn: the file ends within the spool record") !=
               std::string::npos);
    BOOST_TEST(shows->status().ends_with("  3 damaged so far"));
    for (int i = 0; i < 3; ++i) (void)all_backward(*shows, 50, 1000);
    std::vector<std::size_t> offsets;
    for (const auto& each : made.all) {
        if (each.type == 0) offsets.push_back(each.offset);
    }
    const auto damages = shows.all.damages();
    BOOST_REQUIRE(damages.size() == 3U);
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

BOOST_AUTO_TEST_CASE(new_records_are_followed) {
    spool_bytes made;
    for (unsigned i = 0; i < 5; ++i) made.interface(i, "x");
    made.end_page();
    scratch_file file;
    file.write(made.bytes);
    opened shows({&file});
    shows->resize(4, 80);
    const auto grow = [&](std::size_t bytes) { file.write(made.bytes.substr(0, bytes)); };
    const auto append = [&](std::string_view bytes) {
        std::ofstream out(file.path(), std::ios::binary | std::ios::app);
        out << bytes;
    };
    (void)grow;
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
