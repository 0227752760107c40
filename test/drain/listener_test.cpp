// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// Readers that sleep until they are notified: in another thread, in another process, of readers and
// sessions. That no order of steps loses a wake-up is shown by test/model; here it is tried.

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <trace_ring/drain/listener.hpp>
#include <trace_ring/drain/session.hpp>
#include <trace_ring/policy/notify/at_watermark.hpp>
#include <trace_ring/ring/drain.hpp>

#include <kinds.hpp>
#include <proof.hpp>
#include <recorder/scratch.hpp>

BOOST_AUTO_TEST_SUITE(listeners)

using namespace kinds;
using namespace std::chrono_literals;
using trace_ring::loss_cause;
namespace drain = trace_ring::drain;
namespace notify = trace_ring::notify;

namespace {

struct queue : policies<record::sequenced<sample>, full::discard_newest, sequenced_here,
                        notify::at_watermark<notify::records(4)>> {};
struct blocks : policies<record::sequenced<sample>, full::block<20s>, sequenced_here,
                         notify::at_watermark<notify::percent(50)>> {};
struct in_subs
    : policies<record::sub_buffers<sub_bytes>, full::block<20s>,
               storage::inline_bytes<subs * sub_bytes>, notify::at_watermark<notify::percent(25)>> {
};
struct aged : policies<record::sequenced<sample>, full::discard_newest, sequenced_here,
                       notify::at_watermark<notify::age(5ms)>> {};
struct silent : policies<record::sequenced<sample>, full::discard_newest, sequenced_here,
                         notify::at_watermark<notify::circular>> {};
struct in_file : policies<record::sequenced<sample>, full::block<20s>, storage::shared_file,
                          notify::at_watermark<notify::records(8)>> {};
struct subs_in_file : policies<record::sub_buffers<sub_bytes>, full::block<20s>,
                               storage::shared_file, notify::at_watermark<notify::percent(50)>> {};

static_assert(drain::listened_to<trace_ring::ring<queue>>);
static_assert(!drain::listened_to<trace_ring::ring<sequenced_one>>);
static_assert(drain::rearmable<trace_ring::sub_buffer_drain<in_subs>>);
static_assert(!drain::rearmable<trace_ring::sub_buffer_drain<varying_discard>>);

constexpr auto for_ever = 1h;

/// Until a listener sleeps on the ring's word, or is about to.
template <class Ring>
void await_listener(Ring& ring) {
    while (ring.control().notified.waiters.load(trace_ring::acquire) == 0)
        std::this_thread::yield();
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_listener_is_told_at_the_threshold_and_not_before) {
    trace_ring::ring<queue> ring;
    auto consumer = ring.consumer();
    drain::listener listener(ring, consumer);
    BOOST_TEST(!listener.wait(0s));
    put(ring, 1);
    BOOST_TEST(!listener.wait(1ms));
    put(ring, 2);
    put(ring, 3);
    put(ring, 4);
    BOOST_TEST(listener.wait(for_ever));  // more than the lower mark is unread
    BOOST_TEST(numbers(consumer) == range(1, 4));
    BOOST_TEST(!listener.wait(1ms));
    std::thread writer([&] {
        await_listener(ring);
        for (std::uint64_t i = 5; i <= 8; ++i) put(ring, i);
    });
    BOOST_TEST(listener.wait(for_ever));
    writer.join();
    BOOST_TEST(numbers(consumer) == range(5, 8));
    BOOST_TEST(ring.control().notified.waiters.load(trace_ring::relaxed) == 0U);
}

BOOST_AUTO_TEST_CASE(nobody_who_does_not_wait_costs_a_system_call) {
    // As far as that can be seen: the word changes, and no waiter is there to be called.
    trace_ring::ring<queue> ring;
    auto consumer = ring.consumer();
    drain::listener listener(ring, consumer);
    BOOST_TEST(!listener.wait(0s));
    BOOST_TEST(!ring.notifier().is_armed(ring.control().notified));
    for (std::uint64_t i = 1; i <= 8; ++i) put(ring, i);
    BOOST_TEST(ring.control().notified.word.load(trace_ring::relaxed) == 0U);
}

BOOST_AUTO_TEST_CASE(a_wake_up_without_a_crossing_is_slept_through) {
    trace_ring::ring<queue> ring;
    auto consumer = ring.consumer();
    drain::listener listener(ring, consumer);
    std::atomic<bool> woken{false};
    std::thread sleeper([&] { woken = listener.wait(for_ever); });
    await_listener(ring);
    auto& word = ring.control().notified.word;
    for (int i = 0; i < 100; ++i) {
        word.fetch_add(1, trace_ring::release);
        notify::wake_all_on(word, false);
        std::this_thread::yield();
    }
    BOOST_TEST(!woken.load());
    for (std::uint64_t i = 1; i <= 4; ++i) put(ring, i);
    sleeper.join();
    BOOST_TEST(woken.load());
}

BOOST_AUTO_TEST_CASE(a_listener_is_woken_by_the_record_that_was_late) {
    trace_ring::ring<queue> ring;
    auto consumer = ring.consumer();
    drain::listener listener(ring, consumer);
    auto late = ring.try_reserve();
    for (std::uint64_t i = 2; i <= 9; ++i) put(ring, i);
    BOOST_TEST(consumer.next().is_pending());
    BOOST_TEST(!listener.wait(1ms));
    std::thread writer([&] {
        await_listener(ring);
        *late = sample(1);
        late.commit();
    });
    BOOST_TEST(listener.wait(for_ever));
    writer.join();
    BOOST_TEST(numbers(consumer) == range(1, 9));
}

BOOST_AUTO_TEST_CASE(a_record_that_nobody_follows_is_told_by_its_age) {
    trace_ring::ring<aged> ring;
    auto consumer = ring.consumer();
    drain::listener listener(ring, consumer);
    BOOST_TEST(!listener.wait(0s));
    std::thread writer([&] {
        await_listener(ring);
        put(ring, 1);
    });
    const auto before = std::chrono::steady_clock::now();
    BOOST_TEST(listener.wait(for_ever));
    BOOST_TEST((std::chrono::steady_clock::now() - before >= 5ms));
    writer.join();
    BOOST_TEST(numbers(consumer) == range(1, 1));
    BOOST_TEST(!listener.wait(6ms));
    BOOST_TEST(ring.control().notified.word.load(trace_ring::relaxed) == 1U);
}

BOOST_AUTO_TEST_CASE(circular_ends_only_with_the_time) {
    trace_ring::ring<silent> ring;
    auto consumer = ring.consumer();
    drain::listener listener(ring, consumer);
    for (std::uint64_t i = 1; i <= table_slots; ++i) put(ring, i);
    BOOST_TEST(!listener.wait(2ms));
    BOOST_TEST(!listener.wait(2ms));
    BOOST_TEST(numbers(consumer) == range(1, table_slots));
}

BOOST_AUTO_TEST_CASE(a_reader_that_makes_no_room_listens_too) {
    struct recent : policies<record::sequenced<sample>, sequenced_here,
                             notify::at_watermark<notify::records(4)>> {};
    trace_ring::ring<recent> ring;
    auto reader = ring.reader();
    drain::listener listener(ring, reader);
    BOOST_TEST(!listener.wait(0s));
    std::thread writer([&] {
        await_listener(ring);
        for (std::uint64_t i = 1; i <= 40; ++i) put(ring, i);
    });
    BOOST_TEST(listener.wait(for_ever));
    writer.join();
    static_cast<void>(numbers(reader));
    BOOST_TEST(reader.read() + reader.lost().total() == 40U);
}

BOOST_AUTO_TEST_CASE(many_writers_that_wait_for_room_and_a_listener_lose_nothing) {
    const std::uint64_t each = test::scaled(100'000);
    constexpr std::uint32_t writers = 3;
    trace_ring::ring<blocks> ring;
    std::vector<std::thread> threads;
    for (std::uint32_t w = 0; w < writers; ++w) {
        threads.emplace_back([&, w] {
            for (std::uint64_t i = 1; i <= each; ++i) put(ring, i, w);
        });
    }
    auto consumer = ring.consumer();
    drain::listener listener(ring, consumer);
    std::uint64_t next[writers] = {1, 1, 1};
    bool sound = true;
    while (consumer.read() < writers * each) {
        while (const auto item = consumer.next()) {
            sound = sound && item.is_record() && item.record.whole() &&
                    item.record.number == next[item.record.writer]++;
        }
        if (writers * each - consumer.read() >= 8) listener.wait();
    }
    for (auto& each_one : threads) each_one.join();
    BOOST_TEST(sound);
    BOOST_TEST(ring.lost().total() == 0U);
    trace_ring_test::proof("progress", writers * each, "records reported to a sleeping reader");
}

BOOST_AUTO_TEST_CASE(a_session_over_sub_buffers_sleeps_until_one_is_complete) {
    const std::uint64_t count = test::scaled(200'000);
    trace_ring::ring<in_subs> ring;
    std::thread writer([&] {
        for (std::uint64_t i = 1; i <= count; ++i) put(ring, i);
    });
    drain::session session(ring);
    drain::listener listener(ring, session.source());
    std::uint64_t next = 1;
    const auto look = [&](const auto& record) { next += record.payload[0] == next ? 1 : 0; };
    while (session.records() + 14 * subs < count) {  // records of a sub-buffer
        session.for_each_record(look);
        if (session.records() + 14 * subs < count) listener.wait();
    }
    writer.join();
    session.finish_records(look);
    BOOST_TEST(next == count + 1);
    BOOST_TEST(session.lost().total() == 0U);
    BOOST_TEST(session.source().rearm());
}

using in_files = std::tuple<in_file, subs_in_file>;
BOOST_AUTO_TEST_CASE_TEMPLATE(a_listener_in_another_process_is_woken, Kind, in_files) {
    const test::folder here;
    const std::uint64_t count = test::scaled(50'000, 1000);
    trace_ring::ring<Kind> ring(here / "ring", bytes_of<Kind>());
    const pid_t child = test::start_child([&] {
        // Attached anew, as any other process would.
        trace_ring::ring<Kind> other(here / "ring", storage::as_reader);
        auto consumer = other.consumer();
        drain::listener listener(other, consumer);
        std::uint64_t next = 1;
        while (next <= count) {
            for (auto item = consumer.next(); item; item = consumer.next()) {
                if (!item.is_record() || sample_of(item).number != next++) return 1;
            }
            if (next <= count && !listener.wait(20s)) return 2;
        }
        return 0;
    });
    await_listener(ring);
    for (std::uint64_t i = 1; i <= count; ++i) put(ring, i);
    // No writer reports records below the threshold: the child's last wait is for this.
    auto& notifier = ring.notifier();
    auto& line = ring.control().notified;
    int status = 0;
    while (::waitpid(child, &status, WNOHANG) == 0) {
        if (notifier.is_armed(line)) notifier.full(line, {});
        ::usleep(100);
    }
    BOOST_TEST(WIFEXITED(status));
    BOOST_TEST(WEXITSTATUS(status) == 0);
    BOOST_TEST(ring.lost().total() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
