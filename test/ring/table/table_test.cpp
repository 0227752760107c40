// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// The corners of tables: writers that stall or die, laps, late commits, readers that are overtaken.
// Interleavings are forced, by doing one side's steps between the other's.

#include <csignal>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "kinds.hpp"

BOOST_AUTO_TEST_SUITE(tables)

using namespace kinds;
using trace_ring::loss_cause;
using trace_ring::position;

namespace {

template <class Ring>
void put_range(Ring& ring, std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t i = from; i <= to; ++i) BOOST_REQUIRE(put(ring, i));
}

/// With all writers done: each position was committed, or is vacant.
template <class Ring>
void check_fates(const Ring& ring, std::uint64_t committed) {
    BOOST_TEST(committed + ring.vacant() == ring.produced());
}

}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(a_stalled_writer_costs_its_own_slot_alone, Kind, sequenced_tables) {
    const auto ring = make<Kind>();
    put_range(*ring, 1, 3);
    auto stalled = ring->try_reserve();  // position 4
    BOOST_REQUIRE(stalled);
    *stalled = sample(666);
    put_range(*ring, 5, 40);  // laps pass: positions 20 and 36 fall on its slot, and are vacant
    BOOST_TEST(ring->vacant() == 2U);
    BOOST_TEST(ring->produced() == 42U);
    auto reader = ring->reader();
    BOOST_TEST(numbers(reader) == range(26, 40));  // 15 records: the slot of the sixteenth is held
    BOOST_TEST(reader.vacant() == 1U);
    BOOST_TEST(numbers(ring->backward_reader()) == range(40, 26));

    BOOST_TEST(!stalled.commit());  // too late: lost, and it knows
    BOOST_TEST(numbers(ring->reader()) == range(26, 40));
    put_range(*ring, 41, 60);  // the slot is used again
    BOOST_TEST(numbers(ring->reader()) == range(45, 60));
    check_fates(*ring, 3 + 36 + 20);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_writer_that_is_late_but_not_lapped_is_in_time, Kind,
                              sequenced_tables) {
    const auto ring = make<Kind>();
    auto slow = ring->try_reserve();
    *slow = sample(1);
    put_range(*ring, 2, table_slots);
    auto reader = ring->reader();
    const auto waits = reader.next();
    BOOST_TEST(waits.is_pending());
    BOOST_TEST(waits.at == 1U);
    BOOST_TEST(!reader.next());  // still
    BOOST_TEST(slow.commit());
    BOOST_TEST(numbers(reader) == range(1, table_slots));
    check_fates(*ring, table_slots);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_reader_may_pass_a_stalled_writer_over, Kind, sequenced_tables) {
    const auto ring = make<Kind>();
    put_range(*ring, 1, 2);
    auto stalled = ring->try_reserve();
    *stalled = sample(3);
    put_range(*ring, 4, 6);
    auto reader = ring->reader();
    BOOST_TEST(numbers(reader) == range(1, 2));
    BOOST_REQUIRE(reader.next().is_pending());
    const auto gap = reader.pass_over();
    const trace_ring::loss expected{3, 1, loss_cause::abandoned};
    BOOST_CHECK(gap.lost == expected);
    BOOST_TEST(numbers(reader) == range(4, 6));
    // Backward nobody waits.
    auto back = ring->backward_reader();
    BOOST_TEST(numbers(back) == (std::vector<std::uint64_t>{6, 5, 4, 2, 1}));
    BOOST_TEST(back.lost()[loss_cause::abandoned] == 1U);
    BOOST_TEST(stalled.commit());
    BOOST_TEST(numbers(ring->backward_reader()) == range(6, 1));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(all_slots_held_by_stalled_writers_refuse_and_recover, Kind,
                              sequenced_tables) {
    const auto ring = make<Kind>();
    std::vector<typename trace_ring::ring<Kind>::reservation_type> held;
    for (std::uint64_t i = 0; i < table_slots; ++i) {
        held.push_back(ring->try_reserve());
        BOOST_REQUIRE(held.back());
    }
    BOOST_TEST(!ring->try_reserve());
    BOOST_TEST(ring->lost()[loss_cause::refused] == 1U);
    const std::uint64_t passed = ring->vacant();
    BOOST_TEST(passed >= table_slots);
    held.clear();  // discarded, all of them, and late
    BOOST_TEST(ring->vacant() == passed + table_slots);
    const position before = ring->produced();
    put_range(*ring, 1, 20);
    BOOST_TEST(numbers(ring->reader()) == range(5, 20));
    BOOST_TEST(ring->produced() == before + 20);
}

BOOST_AUTO_TEST_CASE(a_consumer_passes_a_dead_writer_over_while_the_ring_is_full) {
    const auto ring = make<discard_swap>();
    auto consumer = ring->consumer();
    put_range(*ring, 1, 4);
    auto dead = ring->try_reserve();  // position 5, never committed
    put_range(*ring, 6, table_slots);
    BOOST_TEST(!put(*ring, 666));  // full
    BOOST_TEST(numbers(consumer) == range(1, 4));
    BOOST_REQUIRE(consumer.next().is_pending());
    put_range(*ring, 17, 20);  // room for four, then full again at the tail that is stalled
    BOOST_TEST(!put(*ring, 666));
    BOOST_TEST(consumer.pass_over().is_loss());
    BOOST_TEST(ring->lost()[loss_cause::abandoned] == 1U);
    BOOST_TEST(numbers(consumer) == range(6, 20));
    // Position 21 falls on the dead writer's slot: passed, and the consumer knows without waiting.
    put_range(*ring, 22, 35);
    BOOST_TEST(ring->vacant() == 1U);
    BOOST_TEST(numbers(consumer) == range(22, 35));
    BOOST_TEST(consumer.vacant() == 1U);
    BOOST_TEST(consumer.read() + consumer.lost().total() + consumer.vacant() == ring->produced());
    BOOST_TEST(!dead.commit());
    put_range(*ring, 36, 70 - 19);
    BOOST_TEST(numbers(consumer) == range(36, 51));
}

BOOST_AUTO_TEST_CASE(a_consumer_that_stops_waiting_makes_room_for_others) {
    // The ring is full, its oldest record is stalled, and everybody is refused: one pass unblocks.
    const auto ring = make<discard_swap>();
    auto dead = ring->try_reserve();
    put_range(*ring, 2, table_slots);
    BOOST_TEST(!put(*ring, 666));
    auto consumer = ring->consumer();
    BOOST_REQUIRE(consumer.next().is_pending());
    BOOST_TEST(!put(*ring, 666));
    BOOST_TEST(consumer.pass_over().is_loss());
    // There is room for one now, but its slot is the dead writer's: it has to be passed as well.
    BOOST_TEST(!put(*ring, 666));
    BOOST_TEST(numbers(consumer) == range(2, table_slots));
    put_range(*ring, 101, 115);
    BOOST_TEST(numbers(consumer) == range(101, 115));
    dead.discard();
}

using several_at_a_time = std::tuple<discard_swap, discard_one>;
BOOST_AUTO_TEST_CASE_TEMPLATE(writers_are_told_of_room_several_records_at_a_time, Kind,
                              several_at_a_time) {
    const auto ring = make<Kind>();
    std::uint64_t next = 1;
    const auto consume = [&](auto& consumer, std::uint64_t count) {
        for (std::uint64_t i = 0; i < count; ++i)
            BOOST_TEST(consumer.next().record.number == next++);
    };
    put_range(*ring, 1, table_slots);
    {
        auto consumer = ring->consumer(4);
        consume(consumer, 3);
        BOOST_TEST(!put(*ring, 666));
        consume(consumer, 1);
        put_range(*ring, 17, 20);
        BOOST_TEST(!put(*ring, 666));
        consume(consumer, 2);
        auto moved = std::move(consumer);
        consume(moved, 1);
        BOOST_TEST(!put(*ring, 666));
    }  // reported at its end
    put_range(*ring, 21, 23);
    BOOST_TEST(!put(*ring, 666));
    auto rest = ring->consumer(1000);
    consume(rest, table_slots - 1);
    BOOST_TEST(!put(*ring, 666));
    consume(rest, 1);
    BOOST_TEST(!rest.next());  // nothing left: reported
    put_range(*ring, 24, 23 + table_slots);
    // 0 would make a writer wait forever, so it is informed of each record.
    consume(rest, table_slots);
    BOOST_TEST(!rest.next());
    put_range(*ring, next, next);
    auto each = ring->consumer(0);
    put_range(*ring, next + 1, next + table_slots - 1);
    BOOST_TEST(!put(*ring, 666));
    consume(each, 1);
    BOOST_TEST(put(*ring, next + table_slots - 1));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_position_discarded_is_vacant_to_readers, Kind, sequenced_tables) {
    const auto ring = make<Kind>();
    put_range(*ring, 1, 2);
    ring->try_reserve().discard();
    { auto dropped = ring->try_reserve(); }
    put_range(*ring, 5, 6);
    auto reader = ring->reader();
    BOOST_TEST(numbers(reader) == (std::vector<std::uint64_t>{1, 2, 5, 6}));
    BOOST_TEST(reader.vacant() == 2U);
    auto back = ring->backward_reader();
    BOOST_TEST(numbers(back) == (std::vector<std::uint64_t>{6, 5, 2, 1}));
    BOOST_TEST(back.vacant() == 2U);
    check_fates(*ring, 4);
}

BOOST_AUTO_TEST_CASE(one_writer_that_discards_gives_its_position_to_the_next) {
    const auto ring = make<sequenced_one>();
    put_range(*ring, 1, 2);
    ring->try_reserve().discard();
    BOOST_TEST(ring->produced() == 2U);
    put_range(*ring, 3, 3);
    BOOST_TEST(ring->vacant() == 0U);
    BOOST_TEST(numbers(ring->reader()) == range(1, 3));
}

BOOST_AUTO_TEST_CASE(what_one_writer_has_begun_to_replace_in_place_is_no_longer_read) {
    const auto ring = make<bare_one>();
    put_range(*ring, 1, table_slots);
    {
        auto open = ring->try_reserve();  // in the slot of record 1
        open->number = 666;               // half filled
        auto reader = ring->reader();
        const auto gap = reader.next();
        BOOST_REQUIRE(gap.is_loss());
        BOOST_CHECK(gap.lost.cause == loss_cause::overrun);
        BOOST_TEST(gap.lost.count == 1U);
        BOOST_TEST(numbers(reader) == range(2, table_slots));
    }
    // Discarded: but record 1 is gone all the same.
    BOOST_TEST(numbers(ring->reader()) == range(2, table_slots));
    BOOST_TEST(numbers(ring->backward_reader()) == range(table_slots, 2));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_reader_that_is_overtaken_in_mid_lap_says_so, Kind,
                              overwriting_tables) {
    const auto ring = make<Kind>();
    put_range(*ring, 1, table_slots);
    auto reader = ring->reader();
    for (std::uint64_t i = 1; i <= 5; ++i) BOOST_TEST(sample_of(reader.next()).number == i);
    put_range(*ring, 17, 26);  // positions up to 10 are gone
    const auto gap = reader.next();
    const trace_ring::loss expected{6, 5, loss_cause::overwritten};
    BOOST_CHECK(gap.lost == expected);
    BOOST_TEST(numbers(reader) == range(11, 26));
    BOOST_TEST(reader.read() + reader.lost().total() == ring->produced());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_backward_reader_that_is_overtaken_says_so, Kind,
                              overwriting_tables) {
    const auto ring = make<Kind>();
    put_range(*ring, 1, 20);
    auto reader = ring->backward_reader();
    BOOST_TEST(sample_of(reader.next()).number == 20U);
    put_range(*ring, 21, 30);  // 15 is the oldest now
    BOOST_TEST(numbers(reader) == range(19, 15));
    BOOST_TEST(reader.lost()[loss_cause::overwritten] == 14U);
    BOOST_TEST(!reader.next());
    BOOST_TEST(reader.read() + reader.lost().total() == 20U);
}

// The sequence word alone, each move.
BOOST_AUTO_TEST_CASE(a_slot_has_one_holder_and_a_position_one_fate) {
    using trace_ring::table_slots::found;
    using trace_ring::table_slots::sequence;
    alignas(8) std::byte slot[8 + sizeof(sample)]{};
    sequence word(slot);
    sample out;
    const auto look = [&](position p) {
        return trace_ring::table_slots::read_sequenced(slot, p, out);
    };
    BOOST_CHECK(look(1) == found::pending);
    BOOST_TEST(word.hold(1));
    BOOST_CHECK(look(1) == found::pending);
    BOOST_TEST(!word.hold(1));  // the same ticket twice cannot be
    BOOST_TEST(!word.hold(17));
    BOOST_CHECK(look(1) == found::newer);
    BOOST_CHECK(look(17) == found::vacant);
    BOOST_TEST(!word.hold(9));   // slept a lap: 17 has been there
    BOOST_TEST(!word.hold(33));  // the lap after: still held
    BOOST_CHECK(look(33) == found::vacant);
    BOOST_TEST(!word.settle(1, true));  // late
    BOOST_CHECK(look(33) == found::vacant);
    BOOST_CHECK(look(49) == found::pending);
    BOOST_TEST(word.hold(49));  // free again
    trace_ring::table_slots::store(slot + 8, sample(49));
    BOOST_TEST(word.settle(49, true));
    BOOST_CHECK(look(49) == found::record);
    BOOST_TEST(out.number == 49U);
    BOOST_TEST(!word.hold(33));  // slept a lap: the newer record is unchanged
    BOOST_TEST(!word.hold(49));
    BOOST_CHECK(look(49) == found::record);
    BOOST_CHECK(look(33) == found::newer);
    BOOST_TEST(word.hold(65));
    BOOST_TEST(!word.settle(65, false));
    BOOST_CHECK(look(65) == found::vacant);
}

namespace {
trace_ring::ring<sequenced_one>* handled = nullptr;
std::uint64_t in_handler = 0;
void record_in_handler(int) {
    if (put(*handled, 1000)) ++in_handler;
}
}  // namespace

BOOST_AUTO_TEST_CASE(a_signal_handler_records_between_records_and_is_nested_within_one) {
    const auto ring = make<sequenced_one>();
    handled = ring.get();
    in_handler = 0;
    std::signal(SIGUSR1, record_in_handler);
    BOOST_REQUIRE(put(*ring, 1));
    std::raise(SIGUSR1);
    BOOST_TEST(in_handler == 1U);
    {
        auto open = ring->try_reserve();
        std::raise(SIGUSR1);
        *open = sample(2);
        BOOST_TEST(open.commit());
    }
    std::signal(SIGUSR1, SIG_DFL);
    BOOST_TEST(in_handler == 1U);
    BOOST_TEST(ring->lost()[loss_cause::nested] == 1U);
    BOOST_TEST(numbers(ring->reader()) == (std::vector<std::uint64_t>{1, 1000, 2}));
}

BOOST_AUTO_TEST_SUITE_END()
