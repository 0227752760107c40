// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// Reading CPTRAP spool files: forward, backward, from any place, what is chosen, what is damaged.

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <trace_ring/cptrap/record.hpp>
#include <trace_ring/cptrap/selection.hpp>
#include <trace_ring/cptrap/spool_reader.hpp>
#include <trace_ring/cptrap/spool_record.hpp>
#include <trace_ring/reduce/source/format_error.hpp>

#include <proof.hpp>

#include "reduce/scratch_file.hpp"

BOOST_AUTO_TEST_SUITE(spool_reader)

namespace record = trace_ring::record;
namespace reduce = trace_ring::reduce;
using kind = reduce::spool_item::kind;

namespace {

constexpr std::size_t page_bytes = record::spool_record_bytes;

/// A file in the making; its bytes lie on a boundary of 8.
class image {
public:
    void add(record::cptrap_type type, std::uint16_t code, std::size_t length) {
        std::byte one[record::cptrap_most_bytes];
        std::byte data[record::cptrap_most_data];
        std::fill_n(data, length, static_cast<std::byte>(code + 1));
        const std::size_t size = record::put_cptrap(one, type, code, std::span(data, length));
        const std::span<const std::byte> whole(one, size);
        if (page_.add(whole)) return;
        end_page();
        BOOST_REQUIRE(page_.add(whole));
    }
    void end_page() {
        words_.resize(words_.size() + page_bytes / 8);
        std::memcpy(words_.data() + words_.size() - page_bytes / 8, page_.bytes().data(),
                    page_bytes);
        page_.clear();
    }
    [[nodiscard]] std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(words_)); }
    [[nodiscard]] std::byte& at(std::uint64_t offset) {
        return bytes()[static_cast<std::size_t>(offset)];
    }
    [[nodiscard]] reduce::spool_reader reader() { return reduce::spool_reader::from(bytes()); }

private:
    std::vector<std::uint64_t> words_;
    record::spool_page page_;
};

/// Records of random lengths with the codes 0 to `count` - 1.
image numbered(std::uint16_t count, unsigned seed = 1) {
    image out;
    std::mt19937 random(seed);
    for (std::uint16_t code = 0; code < count; ++code)
        out.add(record::cptrap_type::cp_interface, code, random() % 265);
    out.end_page();
    return out;
}

/// What was read, in a line each.
struct seen {
    kind what;
    std::uint64_t offset;
    std::size_t size;
    unsigned code;
    friend bool operator==(const seen&, const seen&) = default;
};
seen told(const reduce::spool_item& item) {
    return {item.what, item.offset, item.bytes.size(), item.record.code};
}
std::vector<seen> forward(reduce::spool_reader& reader) {
    std::vector<seen> out;
    while (const auto item = reader.next()) out.push_back(told(item));
    return out;
}
std::vector<seen> backward(reduce::spool_reader& reader) {
    std::vector<seen> out;
    while (const auto item = reader.previous()) out.push_back(told(item));
    return out;
}
std::vector<seen> reversed(std::vector<seen> what) {
    std::reverse(what.begin(), what.end());
    return what;
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_record_comes_once_in_order_and_backward_the_same_in_reverse) {
    auto file = numbered(500);
    auto reader = file.reader();
    BOOST_TEST(reader.spool_records() == file.bytes().size() / page_bytes);
    BOOST_TEST(reader.spool_records() > 10U);
    const auto all = forward(reader);
    BOOST_TEST(all.size() == 500U);
    for (std::size_t i = 0; i < all.size(); ++i) {
        BOOST_TEST(all[i].code == i);
        BOOST_TEST((all[i].what == kind::record));
        BOOST_TEST(std::to_integer<unsigned>(file.at(all[i].offset)) == 0x3FU);
    }
    BOOST_TEST(!reader.next());
    BOOST_TEST((backward(reader) == reversed(all)));
    BOOST_TEST(!reader.previous());
    BOOST_TEST((forward(reader) == all));
    reader.go_to_end();
    BOOST_TEST(!reader.next());
    BOOST_TEST((backward(reader) == reversed(all)));
}

BOOST_AUTO_TEST_CASE(a_reader_turns_round_wherever_it_is) {
    auto file = numbered(100);
    auto reader = file.reader();
    const auto all = forward(reader);
    for (std::size_t stop = 1; stop <= all.size(); ++stop) {
        reader.go_to(0);
        for (std::size_t i = 0; i < stop; ++i) BOOST_TEST((told(reader.next()) == all[i]));
        BOOST_TEST((told(reader.previous()) == all[stop - 1]));
        BOOST_TEST((told(reader.next()) == all[stop - 1]));
    }
}

BOOST_AUTO_TEST_CASE(reading_begins_at_any_spool_record_in_either_direction) {
    auto file = numbered(300);
    auto reader = file.reader();
    const auto all = forward(reader);
    const std::uint64_t pages = reader.spool_records();
    for (std::uint64_t number = 0; number <= pages + 1; ++number) {
        const auto first = std::find_if(all.begin(), all.end(), [&](const seen& one) {
            return one.offset >= number * page_bytes;
        });
        reader.go_to(number);
        BOOST_TEST(reader.at() == std::min(number, pages));
        BOOST_TEST((forward(reader) == std::vector<seen>(first, all.end())));
        reader.go_to(number);
        BOOST_TEST((backward(reader) == reversed({all.begin(), first})));
    }
    reader.go_to(~std::uint64_t{0});
    BOOST_TEST(!reader.next());
    BOOST_TEST((backward(reader) == reversed(all)));
}

BOOST_AUTO_TEST_CASE(each_item_knows_its_place_whatever_is_chosen) {
    auto file = numbered(300);
    auto reader = file.reader();
    reader.select(record::cptrap_selection().codes(100, 200));
    auto plain = file.reader();
    std::uint64_t page = 0;
    std::size_t index = 0, met = 0;
    auto chosen = reader.next();
    while (const auto item = plain.next()) {
        if (item.number != page) index = 0;
        page = item.number;
        BOOST_TEST(item.index == index++);
        if (!chosen || item.offset != chosen.offset) continue;
        BOOST_TEST(chosen.number == item.number);
        BOOST_TEST(chosen.index == item.index);
        ++met;
        chosen = reader.next();
    }
    BOOST_TEST(met == 101U);
    file.at(page_bytes) = std::byte{0x3E};
    reader.go_to(1);
    const auto unreadable = reader.next();
    BOOST_TEST((unreadable.what == kind::unreadable));
    BOOST_TEST(unreadable.index == 0U);
}

BOOST_AUTO_TEST_CASE(only_chosen_records_come_and_always_what_is_lost) {
    image file;
    for (std::uint16_t code = 0; code < 200; ++code) {
        file.add(record::cptrap_type::cp_interface, code, 100);
        if (code % 50 == 49) file.add(record::cptrap_type::lost, 2, 8);
        file.add(record::cptrap_type{0xC0}, code, 9);
    }
    file.end_page();
    auto reader = file.reader();
    reader.select(record::cptrap_selection().codes(10, 12).code(150));
    std::vector<unsigned> codes;
    unsigned lost = 0;
    while (const auto item = reader.next()) {
        if (item.record.lost()) {
            ++lost;
        } else {
            BOOST_TEST((item.record.type == record::cptrap_type::cp_interface));
            codes.push_back(item.record.code);
        }
    }
    BOOST_TEST((codes == std::vector<unsigned>{10, 11, 12, 150}));
    BOOST_TEST(lost == 4U);
    BOOST_TEST(backward(reader).size() == 8U);
    reader.select(record::cptrap_selection().type(record::cptrap_type{0xC0}));
    BOOST_TEST(forward(reader).size() == 204U);
    reader.select_everything();
    BOOST_TEST(backward(reader).size() == 404U);
}

BOOST_AUTO_TEST_CASE(a_type_that_is_not_known_ends_its_spool_record_and_is_named) {
    auto file = numbered(100);
    auto before = file.reader();
    const auto all = forward(before);
    const auto victim = all[all.size() / 2];
    file.at(victim.offset) = std::byte{0x3E};
    const std::uint64_t page_end = (victim.offset / page_bytes + 1) * page_bytes;
    std::vector<seen> expected;
    for (const auto& one : all) {
        if (one.offset < victim.offset || one.offset >= page_end) expected.push_back(one);
        if (one.offset == victim.offset) {
            expected.push_back({kind::unreadable, victim.offset,
                                static_cast<std::size_t>(page_end - victim.offset), 0});
        }
    }
    auto reader = file.reader();
    BOOST_TEST((forward(reader) == expected));
    BOOST_TEST((backward(reader) == reversed(expected)));
    reader.select({});
    const auto item = reader.next();
    BOOST_TEST((item.what == kind::unreadable));
    BOOST_TEST(std::string(item.cause()) == "a record of a type whose length is not known");
    // Who knows better says so.
    reader.select_everything();
    reader.lengths(record::cptrap_lengths().by_header(record::cptrap_type{0x3E}));
    reader.go_to(0);
    BOOST_TEST((forward(reader) == all));
}

BOOST_AUTO_TEST_CASE(a_file_cut_at_every_byte_gives_what_is_whole_and_names_what_is_torn) {
    auto file = numbered(60);
    auto whole = file.reader();
    const auto all = forward(whole);
    const trace_ring_test::scratch_file cut_file;
    const std::string text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
    for (std::size_t cut = 0; cut < text.size(); ++cut) {
        const std::size_t pages = cut / page_bytes;
        std::vector<seen> expected;
        std::uint64_t end = pages * page_bytes;
        for (const auto& one : all) {
            if (one.offset + one.size > cut) break;
            expected.push_back(one);
            end = std::max(end, one.offset + one.size);
        }
        if (cut % page_bytes != 0) {
            expected.push_back({kind::torn, end, static_cast<std::size_t>(cut - end), 0});
        }
        auto reader = reduce::spool_reader::from(file.bytes().first(cut));
        const auto found = forward(reader);
        if (found != expected) BOOST_ERROR("cut at " << cut);
        if (backward(reader) != reversed(expected)) BOOST_ERROR("backward, cut at " << cut);
        if (cut % 97 != 0) continue;
        cut_file.write(std::string_view(text).substr(0, cut));
        auto of_file = reduce::spool_reader::open(cut_file.path());
        BOOST_TEST((forward(of_file) == expected));
    }
    trace_ring_test::proof("hostile", text.size(), "damaged files");
}

BOOST_AUTO_TEST_CASE(a_file_that_grows_gives_each_record_once_and_a_torn_one_when_it_is_whole) {
    auto file = numbered(60);
    auto whole = file.reader();
    const auto all = forward(whole);
    const trace_ring_test::scratch_file live;
    const std::string text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
    live.write("");
    auto reader = reduce::spool_reader::open(live.path());
    BOOST_TEST(!reader.next());
    std::vector<seen> found;
    for (std::size_t there = 0; there <= text.size(); there += 512) {
        live.write(std::string_view(text).substr(0, there));
        for (const auto& one : forward(reader)) {
            if (one.what == kind::record) found.push_back(one);
        }
    }
    BOOST_TEST((found == all));
    // And one that is cut while it is read.
    live.write(std::string_view(text).substr(0, page_bytes));
    const auto left = backward(reader);
    BOOST_TEST(left.size() <= all.size());
    BOOST_TEST((left.back() == all.front()));
}

BOOST_AUTO_TEST_CASE(any_bytes_at_all_are_read_to_the_end_both_ways_with_the_same_items) {
    auto sound = numbered(60);
    std::mt19937 random(7);
    const unsigned rounds = trace_ring_test::repeats(3000);
    for (unsigned i = 0; i < rounds; ++i) {
        auto file = sound;
        for (unsigned flips = 1 + random() % 8; flips != 0; --flips)
            file.bytes()[random() % file.bytes().size()] = static_cast<std::byte>(random());
        auto reader = file.reader();
        const auto items = forward(reader);
        std::uint64_t at = 0;
        for (const auto& one : items) {
            if (one.offset < at || one.offset + one.size > file.bytes().size())
                BOOST_ERROR("an item out of its place, round " << i);
            at = one.offset + one.size;
        }
        if (backward(reader) != reversed(items)) BOOST_ERROR("backward differs, round " << i);
    }
    trace_ring_test::proof("hostile", rounds, "damaged files");
}

BOOST_AUTO_TEST_CASE(what_passes_over_many_spool_records_can_be_stopped_and_goes_on) {
    auto file = numbered(2000);
    auto reader = file.reader();
    reader.select(record::cptrap_selection().code(1990));  // far from both ends of the part that is
                                                           // read
    volatile std::sig_atomic_t asked = 1;
    reader.stop_when(asked);
    BOOST_TEST(!reader.next());
    BOOST_TEST(reader.at() == 0U);  // not a spool record further
    BOOST_TEST(!reader.next());
    asked = 0;
    const auto found = reader.next();
    BOOST_REQUIRE(found);
    BOOST_TEST(found.record.code == 1990);
    asked = 1;
    reader.select(record::cptrap_selection().code(3));
    BOOST_TEST(!reader.previous());
    BOOST_TEST(reader.at() == found.number);
    asked = 0;
    const auto first = reader.previous();
    BOOST_REQUIRE(first);
    BOOST_TEST(first.record.code == 3);
    // What is chosen in the spool record that is being read is not kept back.
    asked = 1;
    reader.select_everything();
    const auto next = reader.next();
    BOOST_REQUIRE(next);
    BOOST_TEST(next.record.code == 3);
}

BOOST_AUTO_TEST_CASE(what_is_no_file_is_refused_by_name) {
    BOOST_CHECK_THROW(static_cast<void>(reduce::spool_reader::open("/nonexistent/spool")),
                      std::system_error);
    BOOST_CHECK_EXCEPTION(static_cast<void>(reduce::spool_reader::open("/tmp")),
                          trace_ring::format_error, [](const trace_ring::format_error& error) {
                              return error.file() == "/tmp" && error.cause() == "a directory";
                          });
}

BOOST_AUTO_TEST_SUITE_END()
