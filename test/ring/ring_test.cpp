// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// What every kind of ring does, by one list of kinds: write, read forward and backward, wrap,
// refuse, stop, wait, grow, discard, and count what is lost.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "kinds.hpp"

BOOST_AUTO_TEST_SUITE(rings)

using namespace kinds;
using trace_ring::loss_cause;

namespace {

/// Every position is a record read, a loss, or vacant.
template <class Ring, class Reader>
void check_that_positions_add_up(const Ring& ring, const Reader& reader) {
    BOOST_TEST(reader.read() + reader.lost().total() + reader.vacant() == ring.produced());
}

}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(a_new_ring_is_empty_both_ways, Kind, all) {
    const auto ring = make<Kind>();
    BOOST_TEST(ring->produced() == 0U);
    BOOST_TEST(numbers(ring->reader()).empty());
    BOOST_TEST(numbers(ring->backward_reader()).empty());
    BOOST_TEST(ring->lost().total() == 0U);
    BOOST_TEST(ring->capacity() == (is_varying<Kind> ? subs : table_slots));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(records_are_read_in_order_and_back, Kind, all) {
    const auto ring = make<Kind>();
    for (std::uint64_t i = 1; i <= 10; ++i) BOOST_REQUIRE(put(*ring, i));
    BOOST_TEST(numbers(ring->reader()) == range(1, 10));
    BOOST_TEST(numbers(ring->backward_reader()) == range(10, 1));
    auto reader = ring->reader();
    for (std::uint64_t i = 1; i <= 10; ++i) {
        const auto item = reader.next();
        BOOST_REQUIRE(item.is_record());
        BOOST_TEST(item.at == i);
        BOOST_TEST(sample_of(item).whole());
    }
    BOOST_TEST(!reader.next());
    BOOST_REQUIRE(put(*ring, 11));  // and as new ones come
    BOOST_TEST(numbers(reader) == range(11, 11));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_full_table_overwrites_the_oldest_and_counts_them, Kind,
                              overwriting_tables) {
    const auto ring = make<Kind>();
    auto early = ring->reader();
    for (std::uint64_t i = 1; i <= 50; ++i) BOOST_REQUIRE(put(*ring, i));
    BOOST_TEST(numbers(ring->reader()) == range(35, 50));
    auto reader = ring->backward_reader();
    BOOST_TEST(numbers(reader) == range(50, 35));
    BOOST_TEST(reader.lost()[loss_cause::overwritten] == 34U);
    const auto gap = early.next();
    BOOST_REQUIRE(gap.is_loss());
    const trace_ring::loss expected{1, 34, loss_cause::overwritten};
    BOOST_CHECK(gap.lost == expected);
    BOOST_TEST(numbers(early) == range(35, 50));
    BOOST_TEST(ring->lost()[loss_cause::overwritten] == 34U);
    check_that_positions_add_up(*ring, early);
    check_that_positions_add_up(*ring, reader);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_record_that_ends_at_the_very_end_is_no_special_case, Kind,
                              overwriting_tables) {
    for (std::uint64_t last = table_slots - 1; last <= table_slots + 1; ++last) {
        const auto ring = make<Kind>();
        for (std::uint64_t i = 1; i <= last; ++i) BOOST_REQUIRE(put(*ring, i));
        const std::uint64_t first = last > table_slots ? last - table_slots + 1 : 1;
        BOOST_TEST(numbers(ring->reader()) == range(first, last));
        BOOST_TEST(numbers(ring->backward_reader()) == range(last, first));
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(positions_pass_the_32_bits, Kind, overwriting_tables) {
    const auto ring = make<Kind>();
    const std::uint64_t before = (std::uint64_t{1} << 32) - 5;
    ring->begin_after(before);
    for (std::uint64_t i = 1; i <= 9; ++i) BOOST_REQUIRE(put(*ring, i));
    auto reader = ring->reader();
    for (std::uint64_t i = 1; i <= 9; ++i) {
        const auto item = reader.next();
        BOOST_REQUIRE(item.is_record());
        BOOST_TEST(item.at == before + i);
        BOOST_TEST(sample_of(item).number == i);
    }
    BOOST_TEST(!reader.next());
    BOOST_TEST(numbers(ring->backward_reader()) == range(9, 1));
    BOOST_TEST(ring->lost().total() == 0U);
    for (std::uint64_t i = 10; i <= 30; ++i) BOOST_REQUIRE(put(*ring, i));
    BOOST_TEST(numbers(ring->reader()) == range(15, 30));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(positions_near_their_end_are_numbers_like_others, Kind,
                              overwriting_tables) {
    // Sequenced slots keep 61 bits of a position, bare ones all 64.
    constexpr bool sequenced =
        ring_policies<Kind>::record_policy::kind == record::layout::sequenced;
    const std::uint64_t before = sequenced ? (std::uint64_t{1} << 61) - 40 : ~std::uint64_t{0} - 40;
    const auto ring = make<Kind>();
    ring->begin_after(before);
    for (std::uint64_t i = 1; i <= 35; ++i) BOOST_REQUIRE(put(*ring, i));
    auto reader = ring->reader();
    BOOST_TEST(numbers(reader) == range(20, 35));
    BOOST_TEST(reader.at() == before + 36);
    BOOST_TEST(numbers(ring->backward_reader()) == range(35, 20));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_discarded_record_is_not_read, Kind, all) {
    const auto ring = make<Kind>();
    BOOST_REQUIRE(put(*ring, 1));
    {
        auto slot = [&] {
            if constexpr (is_varying<Kind>) {
                return ring->try_reserve(sizeof(sample));
            } else {
                return ring->try_reserve();
            }
        }();
        BOOST_REQUIRE(slot);
        auto moved = std::move(slot);  // nothing is lost by moving it about
        BOOST_TEST(!slot);
        BOOST_TEST(!slot.commit());
        if constexpr (!is_varying<Kind>) *moved = sample(666);
    }
    BOOST_REQUIRE(put(*ring, 2));
    auto reader = ring->reader();
    std::vector<std::uint64_t> got = numbers(reader);
    // A bare table of many writers has no mark for it: the entry reads as zeros.
    std::erase(got, 0U);
    BOOST_TEST(got == range(1, 2));
    BOOST_TEST(reader.lost().total() == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_full_table_that_does_not_overwrite_counts_the_record_as_refused,
                              Kind, refusing_tables) {
    const auto ring = make<Kind>();
    for (std::uint64_t i = 1; i <= table_slots; ++i) BOOST_REQUIRE(put(*ring, i));
    BOOST_TEST(!put(*ring, 17));
    BOOST_TEST(!put(*ring, 18));
    BOOST_TEST(ring->lost()[loss_cause::refused] == 2U);
    BOOST_TEST(ring->lost().total() == 2U);
    BOOST_TEST(numbers(ring->reader()) == range(1, table_slots));
    BOOST_TEST(ring->stopped() == ring_policies<Kind>::full_policy::stops);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(consuming_makes_room_while_the_ring_is_full, Kind, refusing_tables) {
    const auto ring = make<Kind>();
    auto consumer = ring->consumer();
    std::uint64_t written = 0;
    std::uint64_t next = 1;
    for (int round = 0; round < 5; ++round) {
        while (put(*ring, written + 1)) ++written;
        BOOST_REQUIRE(written - (next - 1) == table_slots);
        if constexpr (ring_policies<Kind>::full_policy::stops) {
            // It stays stopped, even with room, until it is resumed.
            BOOST_REQUIRE(consumer.next().record.number == next++);
            BOOST_TEST(!put(*ring, written + 1));
            ring->restart();
            BOOST_TEST(put(*ring, ++written));
        }
        for (int i = 0; i < 7; ++i) {
            const auto item = consumer.next();
            BOOST_REQUIRE(item.is_record());
            BOOST_TEST(item.record.number == next++);
        }
        ring->restart();
    }
    while (const auto item = consumer.next()) BOOST_TEST(item.record.number == next++);
    BOOST_TEST(next == written + 1);
    BOOST_TEST(consumer.lost().total() == 0U);
    // The next consumer continues where this one stopped.
    BOOST_TEST(put(*ring, ++written));
    BOOST_TEST(numbers(ring->consumer()) == range(written, written));
}

BOOST_AUTO_TEST_CASE(a_blocked_writer_goes_on_when_room_is_made) {
    const auto ring = make<block_one>();
    for (std::uint64_t i = 1; i <= table_slots; ++i) BOOST_REQUIRE(put(*ring, i));
    std::uint64_t consumed = 0;  // Boost.Test is for one thread
    std::thread reader([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        auto consumer = ring->consumer();
        consumed = consumer.next().record.number;
    });
    BOOST_TEST(put(*ring, table_slots + 1));
    reader.join();
    BOOST_TEST(consumed == 1U);
    BOOST_TEST(ring->lost().total() == 0U);
}

BOOST_AUTO_TEST_CASE(a_blocked_writer_gives_up_at_its_limit) {
    struct brief : policies<full::block<std::chrono::milliseconds{30}>, record::bare<sample>,
                            claim::single_writer, bare_here> {};
    const auto ring = make<brief>();
    for (std::uint64_t i = 1; i <= table_slots; ++i) BOOST_REQUIRE(put(*ring, i));
    const auto start = std::chrono::steady_clock::now();
    BOOST_TEST(!put(*ring, 17));
    const auto waited = std::chrono::steady_clock::now() - start;
    BOOST_CHECK(waited >= std::chrono::milliseconds(30));
    BOOST_TEST(ring->lost()[loss_cause::refused] == 1U);
    BOOST_TEST(numbers(ring->reader()) == range(1, table_slots));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_growing_ring_grows_by_steps_to_its_limit, Kind, growing_tables) {
    const auto ring = make<Kind>();
    const std::uint64_t most = 2 * bytes_of<Kind>() / trace_ring::ring<Kind>::stride;
    std::uint64_t seen = ring->capacity();
    int steps = 0;
    std::uint64_t i = 1;
    for (; i <= most; ++i) {
        BOOST_REQUIRE(put(*ring, i));
        if (ring->capacity() != seen) {
            BOOST_TEST(ring->capacity() > seen);
            BOOST_TEST(ring->capacity() >= i);
            seen = ring->capacity();
            ++steps;
        }
    }
    BOOST_TEST(steps >= 2);
    BOOST_TEST(seen == most);
    BOOST_TEST(numbers(ring->reader()) == range(1, most));
    BOOST_TEST(ring->lost().total() == 0U);
    // At the limit: what the user chose.
    const bool more = put(*ring, i) && put(*ring, i + 1);
    BOOST_TEST(more == ring_policies<Kind>::full_policy::overwrites);
    BOOST_TEST(numbers(ring->reader()) == (more ? range(3, most + 2) : range(1, most)));
    BOOST_TEST(numbers(ring->backward_reader()) == (more ? range(most + 2, 3) : range(most, 1)));
    BOOST_TEST(ring->lost()[more ? loss_cause::overwritten : loss_cause::refused] ==
               (more ? 2U : 1U));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(one_writer_has_one_open_record_and_counts_nested_ones, Kind,
                              one_writer) {
    const auto ring = make<Kind>();
    BOOST_REQUIRE(put(*ring, 1));
    {
        auto open = [&] {
            if constexpr (is_varying<Kind>) {
                return ring->try_reserve(sizeof(sample));
            } else {
                return ring->try_reserve();
            }
        }();
        BOOST_REQUIRE(open);
        BOOST_TEST(!put(*ring, 666));  // as a handler would
        BOOST_TEST(!put(*ring, 667));
        const sample two(2);
        if constexpr (is_varying<Kind>) {
            open.put(0, two);
        } else {
            *open = two;
        }
        BOOST_TEST(open.commit());
    }
    BOOST_REQUIRE(put(*ring, 3));
    BOOST_TEST(ring->lost()[loss_cause::nested] == 2U);
    BOOST_TEST(numbers(ring->reader()) == range(1, 3));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_record_left_by_longjmp_is_closed_by_abandon, Kind, one_writer) {
    const auto ring = make<Kind>();
    alignas(16) unsigned char frame[256];
    const auto leave = [&] {  // a reservation whose destructor never runs
        if constexpr (is_varying<Kind>) {
            new (frame) auto(ring->try_reserve(sizeof(sample)));
        } else {
            new (frame) auto(ring->try_reserve());
        }
    };
    leave();
    BOOST_TEST(!put(*ring, 666));
    ring->abandon();
    BOOST_TEST(put(*ring, 1));
    BOOST_TEST(numbers(ring->reader()) == range(1, 1));
}

BOOST_AUTO_TEST_CASE(a_closed_gate_lets_nothing_through_and_counts_nothing) {
    struct gated : policies<record::bare<sample>, bare_here, trace_ring::gate::flag> {};
    const auto ring = make<gated>();
    ring->gate().close();
    BOOST_TEST(!put(*ring, 1));
    ring->gate().open();
    BOOST_TEST(put(*ring, 2));
    BOOST_TEST(numbers(ring->reader()) == range(2, 2));
    BOOST_TEST(ring->lost().total() == 0U);
}

BOOST_AUTO_TEST_CASE(a_ring_in_static_storage_needs_no_constructor) {
    static constinit trace_ring::ring<bare_swap> table;
    static constinit trace_ring::ring<varying> records;
    BOOST_TEST(put(table, 1));
    BOOST_TEST(put(records, 1));
    BOOST_TEST(numbers(table.reader()) == range(1, 1));
    BOOST_TEST(numbers(records.reader()) == range(1, 1));
}

BOOST_AUTO_TEST_CASE(rings_are_neither_copied_nor_moved) {
    using ring = trace_ring::ring<bare_swap>;
    static_assert(!std::is_copy_constructible_v<ring> && !std::is_move_constructible_v<ring>);
    static_assert(!std::is_copy_assignable_v<ring> && !std::is_move_assignable_v<ring>);
    static_assert(!std::is_constructible_v<ring, int>);
    using slot = typename ring::reservation_type;
    static_assert(!std::is_copy_constructible_v<slot> && std::is_move_constructible_v<slot>);
    BOOST_TEST(true);
}

BOOST_AUTO_TEST_CASE(a_table_of_any_stride_has_no_byte_of_the_library_among_its_records) {
    struct odd {
        unsigned char bytes[5];
    };
    struct odd_trace
        : policies<record::bare<odd>, claim::single_writer, storage::inline_bytes<5 * 7>> {};
    trace_ring::ring<odd_trace> ring;
    BOOST_TEST(ring.capacity() == 7U);
    for (unsigned char i = 1; i <= 9; ++i) {
        auto slot = ring.try_reserve();
        BOOST_REQUIRE(slot);
        for (auto& byte : slot->bytes) byte = i;
        slot.commit();
    }
    const auto* bytes = reinterpret_cast<const unsigned char*>(ring.slot_at(0));
    for (int slot = 0; slot < 7; ++slot) {
        const int expected = slot < 2 ? slot + 8 : slot + 1;
        for (int i = 0; i < 5; ++i) BOOST_TEST(bytes[slot * 5 + i] == expected);
    }
}

/// Slots of `Stride` bytes: each has a separate place, and two consecutive ones have no line in
/// common, but where the ring ends or a block does.
template <std::uint64_t Stride>
void check_places() {
    using trace_ring::table_slots::apart;
    constexpr std::uint64_t width = trace_ring::table_slots::sharing_a_line(Stride);
    constexpr std::uint64_t block = width * trace_ring::table_slots::lines_apart;
    for (const std::uint64_t count :
         {std::uint64_t{1}, std::uint64_t{2}, block - 1, block, block + 1, 3 * block + 7}) {
        std::vector<bool> taken(static_cast<std::size_t>(count));
        for (std::uint64_t i = 0; i < count; ++i) {
            const std::uint64_t at = apart<Stride>(i, count);
            BOOST_REQUIRE(at < count);
            const auto place = static_cast<std::size_t>(at);
            BOOST_REQUIRE(!taken[place]);
            taken[place] = true;
            const bool in_a_block = i / block < count / block;
            BOOST_TEST((in_a_block || at == i));
            if (width == 1 || !in_a_block || (i + 1) % trace_ring::table_slots::lines_apart == 0)
                continue;
            const std::uint64_t next = apart<Stride>(i + 1, count);
            BOOST_TEST((at * Stride + Stride - 1) / 64 < next * Stride / 64, Stride << ": " << i);
        }
    }
}

BOOST_AUTO_TEST_CASE(slots_of_many_writers_share_no_line_with_the_next) {
    check_places<8>();
    check_places<16>();
    check_places<24>();
    check_places<32>();
    check_places<40>();
    check_places<56>();
    check_places<64>();
    check_places<72>();
    check_places<104>();
    check_places<4096>();

    struct three {
        std::uint64_t word[3];
    };
    struct many
        : policies<record::sequenced<three>, claim::fetch_add, storage::inline_bytes<256 * 32>> {};
    const auto ring = std::make_unique<trace_ring::ring<many>>();
    BOOST_TEST(ring->index_of(1) == 0U);
    BOOST_TEST(ring->index_of(2) == 2U);
    BOOST_TEST(ring->index_of(65) == 1U);
    BOOST_TEST(ring->index_of(129) == 128U);
    BOOST_TEST(ring->index_of(257) == 0U);
    // One writer writes line by line.
    struct one : policies<record::sequenced<three>, claim::single_writer,
                          storage::inline_bytes<256 * 32>> {};
    BOOST_TEST(std::make_unique<trace_ring::ring<one>>()->index_of(2) == 1U);
    // And the historic entries lie as they did.
    struct bare : policies<record::bare<three>, claim::fetch_add, storage::inline_bytes<256 * 24>> {
    };
    BOOST_TEST(std::make_unique<trace_ring::ring<bare>>()->index_of(2) == 1U);
}

BOOST_AUTO_TEST_CASE(records_longer_than_a_register_file_are_copied_in_words) {
    struct big {
        std::uint64_t word[40];
    };
    struct big_trace : policies<record::sequenced<big>, storage::inline_bytes<8 * 328>> {};
    trace_ring::ring<big_trace> ring;
    BOOST_TEST(ring.capacity() == 8U);
    auto slot = ring.try_reserve();
    for (std::uint64_t i = 0; i < 40; ++i) slot->word[i] = i * i;
    BOOST_TEST(slot.commit());
    const auto item = ring.reader().next();
    BOOST_REQUIRE(item.is_record());
    for (std::uint64_t i = 0; i < 40; ++i) BOOST_TEST(item.record.word[i] == i * i);
}

BOOST_AUTO_TEST_SUITE_END()
