// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// Records of variable length: lengths and their limits, the ends of sub-buffers, time records, loss
// reported in its place, and consuming.

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "kinds.hpp"

BOOST_AUTO_TEST_SUITE(sub_buffers)

using namespace kinds;
using trace_ring::loss_cause;
using trace_ring::record_word;

namespace {

template <class Ring>
bool say(Ring& ring, std::string_view text, std::uint16_t id = 1) {
    return ring.write_bytes(id, std::as_bytes(std::span(text)));
}
std::string text_of(const trace_ring::sub_buffer_item& item) {
    return std::string(reinterpret_cast<const char*>(item.payload.data()), item.payload.size() * 8);
}

/// A clock that the test sets.
struct hand_clock {
    using family = trace_ring::family::clock;
    static constexpr std::uint32_t kind =
        static_cast<std::uint32_t>(trace_ring::clock_kind::monotonic);
    static inline std::uint64_t time = 0;
    static inline bool right = true;
    static std::uint64_t now() noexcept { return time; }
    static bool usable() noexcept { return right; }
    static double ticks_per_second() noexcept { return 1e9; }
};
struct timed : policies<record::sub_buffers<sub_bytes>, hand_clock,
                        storage::inline_bytes<subs * sub_bytes>> {};
struct timed_ring : trace_ring::ring<timed> {
    timed_ring() {
        hand_clock::right = true;
        hand_clock::time = 100;
    }
};

constexpr std::size_t payload_room = sub_bytes - sizeof(trace_ring::sub_buffer_header);

}  // namespace

BOOST_AUTO_TEST_CASE(payloads_come_back_filled_up_to_eight_bytes_with_zeros) {
    const auto ring = make<varying>();
    const std::string text = "seventeen letters";
    for (std::size_t n = 0; n <= text.size(); ++n)
        BOOST_REQUIRE(say(*ring, std::string_view(text).substr(0, n), 7));
    auto reader = ring->reader();
    for (std::size_t n = 0; n <= text.size(); ++n) {
        const auto item = reader.next();
        BOOST_REQUIRE(item.is_record());
        std::string expected = text.substr(0, n);
        expected.resize((n + 7) / 8 * 8);
        BOOST_TEST(text_of(item) == expected);
        BOOST_TEST(item.id == 7U);
        BOOST_TEST(item.at == n + 1);
    }
    BOOST_TEST(!reader.next());
}

BOOST_AUTO_TEST_CASE(values_are_stored_one_after_the_other) {
    const auto ring = make<varying>();
    BOOST_REQUIRE(ring->write(9, std::uint8_t{1}, std::uint32_t{2}, std::uint64_t{3}, 'x'));
    auto reader = ring->reader();
    const auto item = reader.next();
    BOOST_REQUIRE(item.is_record());
    const auto* bytes = reinterpret_cast<const unsigned char*>(item.payload.data());
    const unsigned char expected[16] = {1, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 'x', 0, 0};
    BOOST_TEST(std::memcmp(bytes, expected, 16) == 0);
}

BOOST_AUTO_TEST_CASE(flags_and_ids_come_back) {
    const auto ring = make<varying>();
    auto slot = ring->try_reserve(8, 0xFFFF, record_word::begin | record_word::cut);
    slot.put(0, std::uint64_t{5});
    BOOST_TEST(slot.size() == 8U);
    BOOST_TEST(slot.commit());
    auto reader = ring->reader();
    const auto item = reader.next();
    BOOST_TEST(item.id == 0xFFFFU);
    BOOST_TEST(item.flags == (record_word::begin | record_word::cut));
}

BOOST_AUTO_TEST_CASE(the_longest_record_fits_and_one_byte_more_is_counted_too_long) {
    const auto ring = make<varying>();
    constexpr std::size_t most = trace_ring::ring<varying>::max_payload;
    const std::string text(most + 1, 'x');
    BOOST_TEST(say(*ring, std::string_view(text).substr(1)));
    BOOST_TEST(!say(*ring, text));
    BOOST_TEST(!say(*ring, std::string(100'000, 'y')));
    BOOST_TEST(!ring->try_reserve(~std::size_t{0}));
    BOOST_TEST(ring->lost()[loss_cause::too_long] == 3U);
    auto reader = ring->reader();
    BOOST_TEST(text_of(reader.next()).substr(0, most) == text.substr(1));
    const auto gap = reader.next();
    BOOST_REQUIRE(gap.is_loss());
    const trace_ring::loss expected{2, 3, loss_cause::too_long};
    BOOST_CHECK(gap.lost == expected);
    BOOST_TEST(!reader.next());
    BOOST_TEST(say(*ring, "short"));
    BOOST_TEST(reader.next().is_record());
}

BOOST_AUTO_TEST_CASE(a_record_that_ends_exactly_at_the_end_leaves_no_hole) {
    // Rests of 0, of one record header, and of one header and a word.
    for (const std::size_t rest : {0U, 8U, 16U}) {
        timed_ring ring;
        const std::string first(payload_room / 2 - 8, 'a');
        const std::string second(payload_room - 16 - first.size() - rest, 'b');
        BOOST_REQUIRE(say(ring, first));
        BOOST_REQUIRE(say(ring, second));
        BOOST_TEST(ring.produced() == 1U);
        BOOST_REQUIRE(say(ring, rest == 16 ? "12345678" : rest == 8 ? "" : "1"));
        BOOST_TEST(ring.produced() == (rest == 0 ? 2U : 1U));
        BOOST_REQUIRE(say(ring, "last"));
        BOOST_TEST(ring.produced() == 2U);
        auto reader = ring.reader();
        std::size_t read = 0;
        while (const auto item = reader.next()) read += item.is_record() ? 1 : 0;
        BOOST_TEST(read == 4U);
        BOOST_TEST(reader.lost().total() == 0U);
    }
}

BOOST_AUTO_TEST_CASE(whole_sub_buffers_are_overwritten_and_their_records_counted) {
    timed_ring ring;
    std::uint64_t written = 0;
    while (ring.produced() <= 2 * subs) BOOST_REQUIRE(put(ring, ++written));
    // 14 records of 32 bytes fit one sub-buffer.
    const std::uint64_t each = payload_room / (sizeof(sample) + 8);
    const std::uint64_t gone = (2 * subs + 1 - subs) * each;
    BOOST_TEST(ring.lost()[loss_cause::overwritten] == gone);
    auto reader = ring.reader();
    BOOST_TEST(numbers(reader) == range(gone + 1, written));
    BOOST_TEST(reader.lost()[loss_cause::overwritten] == gone);
    BOOST_TEST(reader.read() + reader.lost().total() == written);
    auto back = ring.backward_reader();
    BOOST_TEST(numbers(back) == range(written, gone + 1));
    BOOST_TEST(back.lost()[loss_cause::overwritten] == gone);
}

BOOST_AUTO_TEST_CASE(a_reader_that_is_overtaken_says_how_many_records_it_missed) {
    timed_ring ring;
    auto reader = ring.reader();
    std::uint64_t written = 0;
    for (int i = 0; i < 5; ++i) BOOST_REQUIRE(put(ring, ++written));
    for (std::uint64_t i = 1; i <= 3; ++i) BOOST_TEST(sample_of(reader.next()).number == i);
    while (ring.produced() <= subs + 1) BOOST_REQUIRE(put(ring, ++written));
    // The reader has a copy of the first sub-buffer as it was: five records.
    BOOST_TEST(sample_of(reader.next()).number == 4U);
    BOOST_TEST(sample_of(reader.next()).number == 5U);
    const auto gap = reader.next();
    BOOST_REQUIRE(gap.is_loss());
    BOOST_TEST(gap.lost.at == 6U);
    const auto rest = numbers(reader);
    BOOST_REQUIRE(!rest.empty());
    BOOST_TEST(rest == range(gap.lost.at + gap.lost.count, written));
    BOOST_TEST(reader.read() + reader.lost().total() == written);
}

BOOST_AUTO_TEST_CASE(a_change_of_the_clocks_high_half_costs_16_bytes_once) {
    timed_ring ring;
    hand_clock::time = 0x1'FFFF'FFF0;
    BOOST_REQUIRE(put(ring, 1));
    hand_clock::time = 0x2'0000'0010;
    BOOST_REQUIRE(put(ring, 2));
    hand_clock::time = 0x2'0000'0020;
    BOOST_REQUIRE(put(ring, 3));
    hand_clock::time = 0x7'0000'0000;
    BOOST_REQUIRE(put(ring, 4));
    BOOST_TEST(ring.produced() == 1U);
    auto reader = ring.reader();
    for (const std::uint64_t expected :
         {0x1'FFFF'FFF0U, 0x2'0000'0010U, 0x2'0000'0020U, 0x7'0000'0000U}) {
        const auto item = reader.next();
        BOOST_REQUIRE(item.is_record());
        BOOST_TEST(item.time == expected);
    }
    BOOST_TEST(!reader.next());
    auto back = ring.backward_reader();
    BOOST_TEST(back.next().time == 0x7'0000'0000U);
}

BOOST_AUTO_TEST_CASE(a_time_record_that_no_longer_fits_begins_a_new_sub_buffer) {
    timed_ring ring;
    // Room for one more record of 8 + 8 bytes, not for a time record as well.
    const std::string most(payload_room - 8 - 16, 'm');
    BOOST_REQUIRE(say(ring, most));
    hand_clock::time = 0x1'0000'0000;
    BOOST_REQUIRE(say(ring, "12345678"));
    BOOST_TEST(ring.produced() == 2U);
    auto reader = ring.reader();
    BOOST_TEST(reader.next().time == 100U);
    BOOST_TEST(reader.next().time == 0x1'0000'0000U);
}

BOOST_AUTO_TEST_CASE(a_clock_that_is_not_usable_is_replaced_by_the_monotonic_one) {
    timed_ring ring;
    hand_clock::right = false;
    hand_clock::time = 1;
    const std::uint64_t before = trace_ring::clock::monotonic::now();
    for (std::uint64_t i = 1; i <= 100; ++i) BOOST_REQUIRE(put(ring, i));
    const std::uint64_t after = trace_ring::clock::monotonic::now();
    auto reader = ring.reader();
    std::uint64_t last = before;
    std::uint64_t read = 0;
    while (const auto item = reader.next()) {
        if (!item.is_record()) continue;
        BOOST_TEST(item.time >= last);
        BOOST_TEST(item.time <= after);
        last = item.time;
        ++read;
    }
    BOOST_TEST(read + reader.lost().total() == 100U);
    BOOST_TEST(read >= 40U);
    hand_clock::right = true;
}

BOOST_AUTO_TEST_CASE(refused_and_nested_records_are_told_where_they_are_missing) {
    struct small : policies<record::sub_buffers<sub_bytes>, full::discard_newest,
                            storage::inline_bytes<2 * sub_bytes>> {};
    trace_ring::ring<small> ring;
    auto consumer = ring.consumer();
    std::uint64_t written = 0;
    while (put(ring, written + 1)) ++written;
    BOOST_TEST(!put(ring, 666));
    BOOST_TEST(ring.lost()[loss_cause::refused] == 2U);
    BOOST_TEST(numbers(consumer) == range(1, written));
    const std::uint64_t before = written;
    {
        BOOST_REQUIRE(put(ring, ++written));
        auto open = ring.try_reserve(sizeof(sample));
        BOOST_TEST(!put(ring, 666));
        open.put(0, sample(++written));
        BOOST_TEST(open.commit());
    }
    const auto gap = consumer.next();
    BOOST_REQUIRE(gap.is_loss());
    const trace_ring::loss expected{before + 1, 2, loss_cause::refused};
    BOOST_CHECK(gap.lost == expected);
    BOOST_TEST(consumer.next().at == before + 1);
    BOOST_TEST(consumer.next().at == before + 2);
    const auto nested = consumer.next();
    BOOST_REQUIRE(nested.is_loss());
    BOOST_CHECK(nested.lost.cause == loss_cause::nested);
    BOOST_TEST(nested.lost.count == 1U);
    BOOST_TEST(!consumer.next());
}

BOOST_AUTO_TEST_CASE(consuming_frees_whole_sub_buffers_and_loses_nothing) {
    const auto ring = make<varying_discard>();
    std::uint64_t written = 0;
    std::uint64_t next = 1;
    for (int round = 0; round < 20; ++round) {
        while (put(*ring, written + 1)) ++written;
        auto consumer = ring->consumer();  // a new one each time: it continues where the last one
                                           // stopped
        bool gap = false;
        while (const auto item = consumer.next()) {
            if (item.is_loss()) {
                BOOST_CHECK(item.lost.cause == loss_cause::refused);
                gap = true;
                continue;
            }
            // A sub-buffer that was still being filled is read again from its beginning.
            const std::uint64_t number = sample_of(item).number;
            BOOST_TEST(number <= next);
            if (number == next) ++next;
        }
        BOOST_TEST(gap == (round > 0));
        BOOST_TEST(next == written + 1);
        BOOST_TEST(ring->lost()[loss_cause::overwritten] == 0U);
    }
    BOOST_TEST(written > 10 * subs);
}

BOOST_AUTO_TEST_CASE(a_growing_ring_of_sub_buffers_stops_at_its_limit) {
    const auto ring = make<varying_extend>();
    std::uint64_t written = 0;
    while (put(*ring, written + 1)) ++written;
    BOOST_TEST(ring->capacity() == 2 * subs);
    BOOST_TEST(ring->produced() == 2 * subs);
    BOOST_TEST(ring->stopped());
    BOOST_TEST(!put(*ring, 666));
    BOOST_TEST(ring->lost()[loss_cause::refused] == 2U);
    BOOST_TEST(ring->lost()[loss_cause::overwritten] == 0U);
    BOOST_TEST(numbers(ring->reader()) == range(1, written));
    BOOST_TEST(numbers(ring->backward_reader()) == range(written, 1));
}

BOOST_AUTO_TEST_CASE(what_lies_before_damage_is_read_and_the_rest_counted) {
    const std::uint64_t each = payload_room / (sizeof(sample) + 8);
    for (const std::uint64_t sub : {0U, 1U, 2U}) {
        timed_ring ring;
        std::uint64_t written = 0;
        while (ring.produced() <= 2) BOOST_REQUIRE(put(ring, ++written));
        while (written < 3 * each) BOOST_REQUIRE(put(ring, ++written));
        // The length of the fifth record of a sub-buffer, impossible now.
        std::memset(ring.slot_at(sub) + sizeof(trace_ring::sub_buffer_header) + 4 * 32 + 4, 0xFF,
                    4);
        std::vector<std::uint64_t> expected = range(1, sub * each + 4);
        for (std::uint64_t i = (sub + 1) * each + 1; i <= written; ++i) expected.push_back(i);
        // No later sub-buffer shows how many records the last one had: at least one.
        const std::uint64_t gone = sub == 2 ? 1 : each - 4;
        auto reader = ring.reader();
        BOOST_TEST(numbers(reader) == expected);
        BOOST_TEST(reader.lost()[loss_cause::damaged] == gone);
        BOOST_TEST(reader.lost().total() == gone);
        auto back = ring.backward_reader();
        BOOST_TEST(numbers(back) == std::vector(expected.rbegin(), expected.rend()));
        BOOST_TEST(back.lost()[loss_cause::damaged] == gone);
        BOOST_TEST(back.lost().total() == gone);
    }
}

BOOST_AUTO_TEST_CASE(a_header_that_makes_no_sense_costs_its_sub_buffer) {
    const std::uint64_t each = payload_room / (sizeof(sample) + 8);
    for (const std::uint64_t sub : {0U, 1U}) {
        timed_ring ring;
        std::uint64_t written = 0;
        while (ring.produced() <= 2) BOOST_REQUIRE(put(ring, ++written));
        std::memset(ring.slot_at(sub), 0, 4);  // the magic
        std::vector<std::uint64_t> expected = sub == 0 ? range(each + 1, written) : range(1, each);
        if (sub == 1) expected.push_back(written);
        auto reader = ring.reader();
        BOOST_TEST(numbers(reader) == expected);
        BOOST_TEST(reader.lost()[loss_cause::damaged] == each);
        auto back = ring.backward_reader();
        BOOST_TEST(numbers(back) == std::vector(expected.rbegin(), expected.rend()));
        BOOST_TEST(back.lost()[loss_cause::damaged] == each);
        BOOST_TEST(back.lost().total() == each);
    }
}

BOOST_AUTO_TEST_SUITE_END()
