// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// Concurrent writers and a reader, on rings so small that the reader is overtaken all the time:
// nothing torn, nothing out of order, and every record written is read or counted.

#include <array>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "kinds.hpp"

BOOST_AUTO_TEST_SUITE(threads)

using namespace kinds;
using trace_ring::loss_cause;

namespace {

constexpr std::uint32_t records_each = 40'000;

/// Of each writer, what was read last: its records must come in the order it wrote them.
class order {
public:
    void check(const sample& s) {
        BOOST_REQUIRE(s.whole());
        BOOST_REQUIRE(s.writer < last_.size());
        BOOST_REQUIRE(s.number > last_[s.writer]);
        last_[s.writer] = s.number;
    }

private:
    std::array<std::uint64_t, 4> last_{};
};

/// Runs `writers` threads that each call write(writer, number), and read() on this one until they
/// are done and once more. Returns how many calls of write said true.
template <class Write, class Read>
std::uint64_t run(std::uint32_t writers, const Write& write, const Read& read,
                  std::uint32_t each = records_each) {
    std::atomic<std::uint32_t> running{writers};
    std::atomic<std::uint64_t> written{0};
    std::vector<std::thread> threads;
    for (std::uint32_t w = 0; w < writers; ++w) {
        threads.emplace_back([&, w] {
            std::uint64_t mine = 0;
            for (std::uint32_t i = 1; i <= each; ++i) mine += write(w, i) ? 1 : 0;
            written += mine;
            --running;
        });
    }
    while (running != 0) read();
    for (auto& thread : threads) thread.join();
    read();
    return written;
}

using shared_tables = std::tuple<sequenced_swap, sequenced_add, file_add>;
using single_tables = std::tuple<bare_one, sequenced_one, mapped_one>;
using bare_tables = std::tuple<bare_swap, bare_add>;
using shared_queues = std::tuple<discard_swap, block_swap>;
using single_queues = std::tuple<discard_one, block_one, varying_discard, varying_block>;

}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(many_writers_and_a_reader_that_is_overtaken, Kind, shared_tables) {
    const auto ring = make<Kind>();
    auto reader = ring->reader();
    order order;
    const std::uint64_t written = run(
        4, [&](std::uint32_t w, std::uint64_t i) { return put(*ring, i, w); },
        [&] {
            while (const auto item = reader.next()) {
                if (item.is_record()) order.check(item.record);
            }
        });
    BOOST_TEST(reader.lost().total() > 0U);
    // Each position has one fate, to the writers ...
    BOOST_TEST(written + ring->vacant() == ring->produced());
    // ... and to the reader.
    BOOST_TEST(reader.read() + reader.lost().total() + reader.vacant() == ring->produced());
    BOOST_TEST(reader.read() + reader.lost().total() ==
               written + (ring->vacant() - reader.vacant()));
    // What was not recorded at all was counted.
    BOOST_TEST(written + ring->lost()[loss_cause::refused] <= 4U * records_each);
    auto back = ring->backward_reader();
    while (const auto item = back.next()) {
        if (item.is_record()) BOOST_TEST(item.record.whole());
    }
    BOOST_TEST(back.read() + back.vacant() == table_slots);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(one_writer_and_a_reader_that_is_overtaken, Kind, single_tables) {
    const auto ring = make<Kind>();
    auto reader = ring->reader();
    order order;
    const std::uint64_t written = run(
        1, [&](std::uint32_t w, std::uint64_t i) { return put(*ring, i, w); },
        [&] {
            while (const auto item = reader.next()) {
                if (!item.is_record()) continue;
                order.check(item.record);
                BOOST_REQUIRE(item.record.number == item.at);
            }
        });
    BOOST_TEST(written == records_each);
    BOOST_TEST(ring->produced() == written);
    BOOST_TEST(reader.read() + reader.lost().total() == written);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(bare_tables_of_many_writers_keep_their_counts, Kind, bare_tables) {
    // What is read may be torn, by name; the positions still add up.
    const auto ring = make<Kind>();
    auto reader = ring->reader();
    const std::uint64_t written = run(
        2, [&](std::uint32_t w, std::uint64_t i) { return put(*ring, i, w); },
        [&] {
            while (reader.next()) {
            }
        });
    BOOST_TEST(written == 2U * records_each);
    BOOST_TEST(ring->produced() == written);
    BOOST_TEST(reader.read() + reader.lost().total() == written);
    for (const std::uint64_t number : numbers(ring->reader()))
        BOOST_TEST((number >= 1 && number <= records_each));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(what_many_writers_were_not_refused_is_consumed, Kind, shared_queues) {
    const auto ring = make<Kind>();
    auto consumer = ring->consumer();
    order order;
    const std::uint64_t written = run(
        2, [&](std::uint32_t w, std::uint64_t i) { return put(*ring, i, w); },
        [&] {
            while (const auto item = consumer.next()) {
                BOOST_REQUIRE(item.is_record());
                order.check(item.record);
            }
        });
    BOOST_TEST(consumer.read() == written);
    BOOST_TEST(consumer.lost().total() == 0U);
    BOOST_TEST(written + ring->lost()[loss_cause::refused] == 2U * records_each);
    if (ring_policies<Kind>::full_policy::waits) BOOST_TEST(written == 2U * records_each);
}

using told_late = std::tuple<discard_one, block_one, discard_swap>;
BOOST_AUTO_TEST_CASE_TEMPLATE(nothing_is_lost_where_writers_are_told_of_room_late, Kind,
                              told_late) {
    const auto ring = make<Kind>();
    auto consumer = ring->consumer(5);
    order order;
    const std::uint64_t written = run(
        1, [&](std::uint32_t w, std::uint64_t i) { return put(*ring, i, w); },
        [&] {
            while (const auto item = consumer.next()) {
                BOOST_REQUIRE(item.is_record());
                order.check(item.record);
            }
        });
    BOOST_TEST(consumer.read() == written);
    BOOST_TEST(written + ring->lost()[loss_cause::refused] == records_each);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(what_one_writer_was_not_refused_is_consumed, Kind, single_queues) {
    const auto ring = make<Kind>();
    auto consumer = ring->consumer();
    order order;
    std::uint64_t told = 0;
    const std::uint64_t written = run(
        1, [&](std::uint32_t w, std::uint64_t i) { return put(*ring, i, w); },
        [&] {
            while (const auto item = consumer.next()) {
                if (item.is_record()) {
                    order.check(sample_of(item));
                } else {
                    BOOST_REQUIRE(item.lost.cause == loss_cause::refused);
                    told += item.lost.count;
                }
            }
        });
    BOOST_TEST(consumer.read() == written);
    BOOST_TEST(written + ring->lost()[loss_cause::refused] == records_each);
    BOOST_TEST(told <= ring->lost()[loss_cause::refused]);
    if (ring_policies<Kind>::full_policy::waits) BOOST_TEST(written == records_each);
}

BOOST_AUTO_TEST_CASE(sub_buffers_and_a_reader_that_is_overtaken) {
    const auto ring = make<varying>();
    auto reader = ring->reader();
    order order;
    const std::uint64_t written = run(
        1, [&](std::uint32_t w, std::uint64_t i) { return put(*ring, i, w); },
        [&] {
            while (const auto item = reader.next()) {
                if (!item.is_record()) continue;
                const sample s = sample_of(item);
                order.check(s);
                BOOST_REQUIRE(s.number == item.at);
            }
        });
    BOOST_TEST(written == records_each);
    BOOST_TEST(reader.read() + reader.lost().total() == written);
    BOOST_TEST(reader.lost()[loss_cause::damaged] == 0U);
}

// Long records and next to no slots, so that readers are overtaken in the middle of a copy.
namespace {
struct wide {
    std::uint64_t word[48];
    wide() = default;
    explicit wide(std::uint64_t n) {
        for (auto& w : word) w = n;
    }
};
template <class Words>
bool all_the_same(const Words& words) {
    for (const std::uint64_t w : words) {
        if (w != words[0]) return false;
    }
    return true;
}
}  // namespace

BOOST_AUTO_TEST_CASE(a_reader_overtaken_in_the_middle_of_a_copy_does_not_use_it) {
    struct tiny : policies<record::sequenced<wide>, claim::fetch_add,
                           storage::inline_bytes<2 * (sizeof(wide) + 8)>> {};
    trace_ring::ring<tiny> ring;
    auto reader = ring.reader();
    const std::uint64_t written = run(
        2, [&](std::uint32_t, std::uint64_t i) { return ring.write(i); },
        [&] {
            while (const auto item = reader.next()) {
                if (item.is_record()) BOOST_REQUIRE(all_the_same(item.record.word));
            }
        });
    BOOST_TEST(written + ring.vacant() == ring.produced());
    BOOST_TEST(reader.read() + reader.lost().total() + reader.vacant() == ring.produced());
}

BOOST_AUTO_TEST_CASE(a_sub_buffer_overwritten_in_the_middle_of_a_copy_is_not_used) {
    struct tiny : policies<record::sub_buffers<sub_bytes>, trace_ring::clock::none,
                           storage::inline_bytes<2 * sub_bytes>> {};
    constexpr std::uint32_t many = 1'500'000;  // without a clock, over in a moment
    trace_ring::ring<tiny> ring;
    auto reader = ring.reader();
    const std::uint64_t written = run(
        1, [&](std::uint32_t, std::uint64_t i) { return ring.write(1, wide(i)); },
        [&] {
            while (const auto item = reader.next()) {
                if (item.is_record()) BOOST_REQUIRE(all_the_same(item.payload));
            }
        },
        many);
    BOOST_TEST(written == many);
    BOOST_TEST(reader.read() + reader.lost().total() == written);
    BOOST_TEST(reader.lost()[loss_cause::damaged] == 0U);
}

BOOST_AUTO_TEST_CASE(several_writers_grow_a_ring_together) {
    constexpr std::uint64_t most = 4096;
    const std::uint64_t step = 64 * trace_ring::ring<extend_add>::stride;
    struct grows : policies<full::extend<step, full::discard_newest>, record::sequenced<sample>,
                            storage::mapped> {};
    trace_ring::ring<grows> ring(step, most * trace_ring::ring<grows>::stride);
    auto reader = ring.reader();
    order order;
    const std::uint64_t written = run(
        4, [&](std::uint32_t w, std::uint64_t i) { return put(ring, i, w); },
        [&] {
            while (const auto item = reader.next()) {
                BOOST_REQUIRE(item.is_record());
                order.check(item.record);
            }
        });
    BOOST_TEST(written == most);
    BOOST_TEST(ring.capacity() == most);
    BOOST_TEST(reader.read() == most);
    BOOST_TEST(ring.vacant() == 0U);
    BOOST_TEST(ring.lost()[loss_cause::refused] == 4U * records_each - most);
}

BOOST_AUTO_TEST_SUITE_END()
