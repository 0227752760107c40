// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Copying and walking a sub-buffer that may hold anything: built word by word here, so that no
/// writer's habits are taken for granted.

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include <trace_ring/format/records.hpp>

BOOST_AUTO_TEST_SUITE(sub_buffer)

namespace tr = trace_ring;

namespace {

constexpr std::size_t bytes = 512;

struct built {
    alignas(64) std::array<std::uint64_t, bytes / 8> words{};
    std::uint32_t end = sizeof(tr::sub_buffer_header);
    std::uint32_t records = 0;

    built() {
        header().magic.store(tr::sub_buffer_magic, tr::relaxed);
        header().lane.store(7, tr::relaxed);
        header().first_position.store(100, tr::relaxed);
        header().base_time.store(0x5'0000'0010, tr::relaxed);
        header().previous.store(3, tr::relaxed);
        set_state(9, tr::sub_buffer_state::active);
        commit();
    }
    tr::sub_buffer_header& header() {
        return *reinterpret_cast<tr::sub_buffer_header*>(words.data());
    }
    void set_state(tr::position at, tr::sub_buffer_state state) {
        header().state.store(tr::stamped{at, static_cast<unsigned>(state)}.word(), tr::relaxed);
    }
    void commit() { header().commit.store(tr::commit_word::pack(records, end), tr::relaxed); }
    void add(std::uint32_t id, std::size_t length, std::uint32_t time, std::uint32_t flags = 0) {
        words[end / 8] = time | std::uint64_t{tr::record_word::pack(id, length, flags)} << 32;
        end += static_cast<std::uint32_t>(length);
        ++records;
        commit();
    }
    void add_time(std::uint64_t time) {
        words[end / 8] = (time & 0xFFFF'FFFF) |
                         std::uint64_t{tr::record_word::pack(0, tr::time_record_bytes)} << 32;
        words[end / 8 + 1] = time;
        end += tr::time_record_bytes;
        commit();
    }
    tr::copy_result copy(tr::sub_buffer_copy& head) {
        return tr::copy_sub_buffer(words.data(), into, head);
    }

    std::array<std::uint64_t, bytes / 8> into{};
};

struct seen {
    std::size_t word;
    std::uint64_t time;
    std::uint32_t header;
    friend bool operator==(const seen&, const seen&) = default;
};

std::pair<std::uint32_t, std::vector<seen>> walk(built& b, const tr::sub_buffer_copy& head) {
    std::vector<seen> out;
    const auto fault = tr::walk_records(
        b.into, head, [&](std::size_t word, std::uint64_t time, std::uint32_t header) {
            out.push_back({word, time, header});
        });
    return {fault, out};
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_copy_holds_the_header_and_what_was_committed) {
    built b;
    b.add(1, 16, 0x20);
    b.header().refused.store(4, tr::relaxed);
    b.header().too_long.store(5, tr::relaxed);
    b.header().nested.store(6, tr::relaxed);
    tr::sub_buffer_copy head;
    BOOST_REQUIRE((b.copy(head) == tr::copy_result::copied));
    BOOST_TEST(head.state.pos == 9U);
    BOOST_TEST(head.lane == 7U);
    BOOST_TEST(head.first_position == 100U);
    BOOST_TEST(head.base_time == 0x5'0000'0010U);
    BOOST_TEST(head.previous == 3U);
    BOOST_TEST(head.records == 1U);
    BOOST_TEST(head.refused == 4U);
    BOOST_TEST(head.too_long == 5U);
    BOOST_TEST(head.nested == 6U);
    BOOST_TEST(head.bytes == 80U);
}

BOOST_AUTO_TEST_CASE(only_active_closed_and_reading_ones_can_be_copied) {
    const std::pair<unsigned, tr::copy_result> expected[] = {
        {0, tr::copy_result::vacant},  {1, tr::copy_result::vacant}, {2, tr::copy_result::copied},
        {3, tr::copy_result::copied},  {4, tr::copy_result::copied}, {5, tr::copy_result::damaged},
        {6, tr::copy_result::damaged}, {7, tr::copy_result::damaged}};
    for (const auto& [state, result] : expected) {
        built b;
        b.set_state(9, static_cast<tr::sub_buffer_state>(state));
        tr::sub_buffer_copy head;
        BOOST_TEST((b.copy(head) == result), "state " << state);
    }
}

BOOST_AUTO_TEST_CASE(what_is_copied_while_it_is_open_has_no_end_even_if_it_was_closed_meanwhile) {
    built b;
    // As a copier sees it that read the commit word before the last records and the end after it.
    b.header().end_time.store(99, tr::relaxed);
    tr::sub_buffer_copy head;
    b.set_state(5, tr::sub_buffer_state::active);
    BOOST_REQUIRE((b.copy(head) == tr::copy_result::copied));
    BOOST_TEST(head.end_time == 0U);
    b.set_state(5, tr::sub_buffer_state::closed);
    BOOST_REQUIRE((b.copy(head) == tr::copy_result::copied));
    BOOST_TEST(head.end_time == 99U);
}

BOOST_AUTO_TEST_CASE(a_commit_word_that_points_anywhere_else_is_damage) {
    for (const std::uint32_t end : {0U, 8U, 56U, 63U, 65U, 68U, 513U, 520U, 0xFFF8U, 0xFFFFU}) {
        built b;
        b.header().commit.store(tr::commit_word::pack(0, end), tr::relaxed);
        tr::sub_buffer_copy head;
        BOOST_TEST((b.copy(head) == tr::copy_result::damaged), "offset " << end);
    }
    built whole;
    whole.header().commit.store(tr::commit_word::pack(0, 512), tr::relaxed);
    tr::sub_buffer_copy head;
    BOOST_TEST((whole.copy(head) == tr::copy_result::copied));
}

BOOST_AUTO_TEST_CASE(a_wrong_magic_is_damage) {
    built b;
    b.header().magic.store(1, tr::relaxed);
    tr::sub_buffer_copy head;
    BOOST_TEST((b.copy(head) == tr::copy_result::damaged));
}

BOOST_AUTO_TEST_CASE(records_are_walked_in_order_with_full_times) {
    built b;
    b.add(1, 8, 0x20);
    b.add(2, 24, 0xFFFF'FFFF, tr::record_word::begin);
    b.add_time(0x6'0000'0001);
    b.add(3, 16, 2, tr::record_word::cut);
    tr::sub_buffer_copy head;
    BOOST_REQUIRE((b.copy(head) == tr::copy_result::copied));
    head.records = 3;  // the time record does not count
    const auto [fault, records] = walk(b, head);
    BOOST_TEST(fault == 0U);
    const std::vector<seen> expected{
        {8, 0x5'0000'0020, tr::record_word::pack(1, 8)},
        {9, 0x5'FFFF'FFFF, tr::record_word::pack(2, 24, tr::record_word::begin)},
        {14, 0x6'0000'0002, tr::record_word::pack(3, 16, tr::record_word::cut)}};
    BOOST_TEST((records == expected));
}

BOOST_AUTO_TEST_CASE(owner_records_tell_time_and_owner_and_do_not_count) {
    for (const bool named : {false, true}) {
        const std::size_t length = named ? tr::named_owner_record_bytes : tr::owner_record_bytes;
        built b;
        b.add(1, 8, 0x20);
        b.add(tr::record_word::time_id, length, 0x30);
        b.words[10] = 0x6'0000'0030;
        b.words[11] = tr::owner_record{77, 5, 2}.word();
        if (named) b.words[12] = 0x6562;
        b.add(2, 8, 0x40);
        tr::sub_buffer_copy head;
        BOOST_REQUIRE((b.copy(head) == tr::copy_result::copied));
        head.records = 2;
        std::vector<std::uint64_t> times;
        std::vector<tr::owner_record> owners;
        const auto fault = tr::walk_records(
            b.into, head,
            [&](std::size_t, std::uint64_t time, std::uint32_t) { times.push_back(time); },
            [&](const tr::owner_record& owner) { owners.push_back(owner); });
        BOOST_TEST(fault == 0U);
        BOOST_TEST((times == std::vector<std::uint64_t>{0x5'0000'0020, 0x6'0000'0040}));
        BOOST_REQUIRE(owners.size() == 1U);
        BOOST_TEST(owners[0].thread == 77U);
        BOOST_TEST(owners[0].process == 5U);
        BOOST_TEST(owners[0].depth == 2U);
        BOOST_TEST(owners[0].named == named);
        BOOST_TEST(owners[0].name[0] == (named ? 0x6562U : 0U));
    }
}

BOOST_AUTO_TEST_CASE(every_word_of_a_copy_is_as_it_was_whatever_the_length) {
    for (std::uint32_t end = 64; end <= bytes; end += 8) {
        built b;
        for (std::size_t i = 8; i < b.words.size(); ++i) b.words[i] = i * 0x0123'4567'89AB'CDEFU;
        b.header().commit.store(tr::commit_word::pack(0, end), tr::relaxed);
        tr::sub_buffer_copy head;
        BOOST_REQUIRE((b.copy(head) == tr::copy_result::copied));
        const auto middle = end / 8;
        BOOST_TEST(std::equal(b.words.begin() + 8, b.words.begin() + middle, b.into.begin() + 8));
        // and what was not committed was not touched
        BOOST_TEST(std::all_of(b.into.begin() + middle, b.into.end(),
                               [](std::uint64_t word) { return word == 0; }));
    }
}

BOOST_AUTO_TEST_CASE(a_stretch_ends_where_anything_but_the_time_changes_or_time_goes_back) {
    for (std::uint32_t like = 1; like <= 7; ++like) {  // blocks of four, and what is left of them
        built b;
        const auto some = [&](std::uint32_t id, std::size_t length, std::uint32_t time,
                              std::uint32_t flags = 0) {
            for (std::uint32_t i = 0; i < like; ++i) b.add(id, length, time + i / 2, flags);
        };
        some(1, 8, 0x20);
        some(2, 8, 0x40);     // another event
        some(2, 8, 0x10);     // an earlier time
        some(2, 8, 0x90, 1);  // other flags
        b.add_time(0x6'0000'0000);
        some(2, 8, 0x95, 1);  // another upper half
        some(2, 16, 0xFFFF'FFF0, 1);
        tr::sub_buffer_copy head;
        BOOST_REQUIRE((b.copy(head) == tr::copy_result::copied));
        std::vector<std::uint32_t> begins;
        std::size_t told = 0;
        bool forward = true;
        const auto fault = tr::walk_stretches(
            b.into, head,
            [&](const tr::stretch& found) {
                BOOST_TEST(found.count == like);
                BOOST_TEST(found.high == (begins.size() < 4 ? 0x5'0000'0000U : 0x6'0000'0000U));
                BOOST_TEST(found.stride() == (begins.size() < 5 ? 1U : 2U));
                begins.push_back(found.begin);
            },
            [&](std::size_t words) {
                forward = forward && words >= told;
                told = words;
            });
        BOOST_TEST(fault == 0U);
        const std::vector<std::uint32_t> expected{
            8, 8 + like, 8 + 2 * like, 8 + 3 * like, 10 + 4 * like, 10 + 5 * like};
        BOOST_TEST(begins == expected, boost::test_tools::per_element());
        BOOST_TEST(forward);
        BOOST_TEST(told == head.bytes / 8);
        const auto [again, records] = walk(b, head);
        BOOST_TEST(again == 0U);
        BOOST_REQUIRE(records.size() == 6 * like);
        BOOST_TEST(records[like - 1].time == 0x5'0000'0020U + (like - 1) / 2);
    }
}

BOOST_AUTO_TEST_CASE(an_empty_one_has_no_records) {
    built b;
    tr::sub_buffer_copy head;
    BOOST_REQUIRE((b.copy(head) == tr::copy_result::copied));
    const auto [fault, records] = walk(b, head);
    BOOST_TEST(fault == 0U);
    BOOST_TEST(records.empty());
}

BOOST_AUTO_TEST_CASE(a_record_without_length_ends_the_walk_where_it_stands) {
    built b;
    b.add(1, 16, 1);
    b.add(2, 16, 2);
    b.words[10] = std::uint64_t{2} << 32;  // the second one's length: none
    tr::sub_buffer_copy head;
    BOOST_REQUIRE((b.copy(head) == tr::copy_result::copied));
    const auto [fault, records] = walk(b, head);
    BOOST_TEST(fault == 80U);
    BOOST_TEST(records.size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_record_that_reaches_past_the_commit_ends_the_walk) {
    built b;
    b.add(1, 16, 1);
    b.words[8] = std::uint64_t{tr::record_word::pack(1, 24)} << 32;
    tr::sub_buffer_copy head;
    BOOST_REQUIRE((b.copy(head) == tr::copy_result::copied));
    const auto [fault, records] = walk(b, head);
    BOOST_TEST(fault == 64U);
    BOOST_TEST(records.empty());
}

BOOST_AUTO_TEST_CASE(a_time_record_of_the_wrong_length_ends_the_walk) {
    for (const std::size_t length : {8U, 32U}) {
        built b;
        b.add(0, length, 1);
        b.records = 0;
        b.commit();
        tr::sub_buffer_copy head;
        BOOST_REQUIRE((b.copy(head) == tr::copy_result::copied));
        const auto [fault, records] = walk(b, head);
        BOOST_TEST(fault == 64U);
        BOOST_TEST(records.empty());
    }
}

BOOST_AUTO_TEST_CASE(a_count_that_differs_from_the_records_is_told) {
    for (const std::uint32_t claimed : {1U, 3U}) {
        built b;
        b.add(1, 16, 1);
        b.add(2, 16, 2);
        b.records = claimed;
        b.commit();
        tr::sub_buffer_copy head;
        BOOST_REQUIRE((b.copy(head) == tr::copy_result::copied));
        const auto [fault, records] = walk(b, head);
        BOOST_TEST(fault != 0U);
        BOOST_TEST(records.size() == std::min(claimed, 2U));
    }
}

BOOST_AUTO_TEST_CASE(a_full_one_ends_exactly_at_its_end) {
    built b;
    while (b.end < bytes) b.add(5, 8, b.end);
    tr::sub_buffer_copy head;
    BOOST_REQUIRE((b.copy(head) == tr::copy_result::copied));
    const auto [fault, records] = walk(b, head);
    BOOST_TEST(fault == 0U);
    BOOST_TEST(records.size() == (bytes - 64) / 8);
}

BOOST_AUTO_TEST_CASE(no_content_leads_the_walk_out_of_the_copy) {
    std::mt19937_64 random(20240229);
    std::size_t sound = 0;
    for (int round = 0; round < 20'000; ++round) {
        built b;
        // Mostly plausible headers, so that walks get somewhere.
        for (std::size_t i = 8; i < b.words.size(); ++i) {
            b.words[i] = random() & (random() % 4 == 0 ? ~std::uint64_t{0} : 0x0007'000F'FFFF'FFFF);
        }
        b.header().commit.store(
            tr::commit_word::pack(static_cast<std::uint32_t>(random() % 40),
                                  static_cast<std::uint32_t>(random() % 58 + 8) * 8),
            tr::relaxed);
        tr::sub_buffer_copy head;
        if (b.copy(head) != tr::copy_result::copied) continue;
        const auto [fault, records] = walk(b, head);
        BOOST_REQUIRE(records.size() <= head.records);
        for (const auto& r : records) {
            BOOST_REQUIRE(r.word >= 8);
            BOOST_REQUIRE(r.word * 8 + tr::record_word::bytes(r.header) <= head.bytes);
        }
        if (fault == 0) ++sound;
    }
    BOOST_TEST(sound > 0U);
}

BOOST_AUTO_TEST_CASE(the_longest_record_leaves_room_for_a_time_record) {
    for (std::size_t size = tr::min_sub_buffer_bytes; size <= tr::max_sub_buffer_bytes; size *= 2) {
        BOOST_TEST(tr::valid_sub_buffer_bytes(size));
        BOOST_TEST(!tr::valid_sub_buffer_bytes(size + 8));
        BOOST_TEST(tr::max_record_bytes(size) + sizeof(tr::sub_buffer_header) +
                       tr::time_record_bytes ==
                   size);
        // ... and its length fits in a record's header.
        BOOST_TEST(tr::record_word::bytes(tr::record_word::pack(1, tr::max_record_bytes(size))) ==
                   tr::max_record_bytes(size));
    }
    BOOST_TEST(!tr::valid_sub_buffer_bytes(0));
    BOOST_TEST(!tr::valid_sub_buffer_bytes(tr::min_sub_buffer_bytes / 2));
    BOOST_TEST(!tr::valid_sub_buffer_bytes(tr::max_sub_buffer_bytes * 2));
}

BOOST_AUTO_TEST_SUITE_END()
