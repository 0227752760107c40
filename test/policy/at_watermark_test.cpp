// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// Watermarks by themselves, in one thread: each threshold, notified in each way, in each layout;
// when they notify, when they do not again, and when they never do.

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <tuple>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <trace_ring/policy/clock/none.hpp>
#include <trace_ring/policy/notify/at_watermark.hpp>
#include <trace_ring/policy/notify/never.hpp>

#include "kinds.hpp"

BOOST_AUTO_TEST_SUITE(watermarks)

using namespace kinds;
using namespace std::chrono_literals;
using trace_ring::loss_cause;
namespace notify = trace_ring::notify;

namespace {

// --- Requirements --------------------------------------------------------------------------------
static_assert(notify::arms<notify::at_watermark<notify::records(1)>>);
static_assert(notify::arms<notify::at_watermark<notify::circular>>);
static_assert(!notify::arms<notify::never> && !notify::hears_of_full<notify::never>);
static_assert(!notify::attaches<notify::never> && !notify::is_bounded<notify::never>);
static_assert(!notify::at_watermark<notify::circular>::watches);
static_assert(!notify::hears_of_full<notify::at_watermark<notify::circular>>);
struct deaf {
    void told(notify::line&, notify::progress);  // may throw
};
static_assert(!notify::way<deaf> && notify::way<notify::by_futex>);
constexpr notify::progress of_1000{0, 0, 10, 1000};
static_assert(notify::percent(30).distance(of_1000) == 300);
static_assert(notify::percent(1).distance({0, 0, 1, 32}) == 1);
static_assert(notify::percent(100).distance({0, 0, 1, ~std::uint64_t{0}}) == ~std::uint64_t{0});
static_assert(notify::age(3us).amount == 3000 && notify::age(-3us).amount == 0);

// --- Layouts -------------------------------------------------------------------------------------
template <class Notify>
struct in_bare : policies<record::bare<sample>, claim::single_writer, bare_here, Notify> {};
template <class Notify>
struct in_sequenced : policies<record::sequenced<sample>, sequenced_here, Notify> {};
/// Without a clock: a record after the time's upper half has changed takes 16 bytes more.
template <class Notify>
struct in_subs : policies<record::sub_buffers<sub_bytes>, storage::inline_bytes<subs * sub_bytes>,
                          trace_ring::clock::none, Notify> {};

/// Bytes that the ring has come to with so many records.
template <class Ring>
std::uint64_t bytes_with(std::uint64_t records) {
    if constexpr (requires { Ring::max_payload; }) {
        return 64 + records * 32;  // in the first sub-buffer
    } else {
        return records * Ring::stride;
    }
}

// --- Ways ----------------------------------------------------------------------------------------
volatile sig_atomic_t signals = 0;
extern "C" void count_signal(int) {
    signals = signals + 1;
}

/// Hears a ring's notifications in one way, and how many there were.
template <class Way>
struct ear;
template <>
struct ear<notify::by_futex> {
    template <class Ring>
    explicit ear(Ring& ring) : word(ring.control().notified.word) {}
    std::uint64_t heard() { return word.load(trace_ring::relaxed); }
    trace_ring::shared_atomic<std::uint32_t>& word;
};
template <>
struct ear<notify::by_callback> {
    template <class Ring>
    explicit ear(Ring& ring) {
        ring.notifier().tell(&callback);
    }
    std::uint64_t heard() const { return times; }
    std::uint64_t times = 0;
    notify::progress last{};
    notify::callback callback{[](void* self, notify::progress at) noexcept {
                                  ++static_cast<ear*>(self)->times;
                                  static_cast<ear*>(self)->last = at;
                              },
                              this};
};
template <>
struct ear<notify::by_eventfd> {
    template <class Ring>
    explicit ear(Ring& ring) : fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
        BOOST_REQUIRE(fd >= 0);
        ring.notifier().tell(fd);
    }
    ear(const ear&) = delete;
    ear& operator=(const ear&) = delete;
    ~ear() { ::close(fd); }
    std::uint64_t heard() {
        pollfd look{fd, POLLIN, 0};
        if (::poll(&look, 1, 0) == 1) {
            std::uint64_t more = 0;
            BOOST_REQUIRE(::read(fd, &more, sizeof more) == sizeof more);
            times += more;
        }
        return times;
    }
    int fd;
    std::uint64_t times = 0;
};
template <>
struct ear<notify::by_signal> {
    template <class Ring>
    explicit ear(Ring& ring) : line(ring.control().notified) {
        struct sigaction how {};
        how.sa_handler = count_signal;
        BOOST_REQUIRE(::sigaction(SIGUSR1, &how, &before) == 0);
        signals = 0;
        const auto thread = static_cast<pid_t>(::syscall(SYS_gettid));
        BOOST_REQUIRE(ring.notifier().tell(line, {::getpid(), thread, SIGUSR1}));
    }
    ear(const ear&) = delete;
    ear& operator=(const ear&) = delete;
    ~ear() { ::sigaction(SIGUSR1, &before, nullptr); }
    std::uint64_t heard() const {
        ::usleep(0);  // ThreadSanitizer delivers a signal at the next call that it knows
        return static_cast<std::uint64_t>(signals);
    }
    notify::line& line;
    struct sigaction before {};
};

void let_pass(std::chrono::nanoseconds time) {
    const timespec nap{0, static_cast<long>(time.count())};
    ::clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, nullptr);
}

/// Writes until `ear` has heard one more; with how many records in the ring.
template <class Ring, class Ear>
std::uint64_t told_with(Ring& ring, Ear& ear, std::uint64_t& written) {
    const std::uint64_t before = ear.heard();
    for (int i = 0; i < 64; ++i) {
        put(ring, ++written);
        if (ear.heard() == before) continue;
        BOOST_TEST(ear.heard() == before + 1);
        return written;
    }
    BOOST_FAIL("nobody told");
    return 0;
}

template <class Ring>
void check_told_twice(Ring& ring) {
    BOOST_TEST(ring.control().notified.word.load(trace_ring::relaxed) == 2U);
    BOOST_TEST(!ring.notifier().is_armed(ring.control().notified));
}

constexpr auto some_age = 2ms;

/// A ring that notifies at the threshold, once, and again when it was read and armed.
template <class Ring, class Way>
void tells() {
    const auto ring = std::make_unique<Ring>();
    using notifier = typename Ring::notify_policy;
    constexpr notify::threshold mark = notifier::mark;
    ear<Way> heard(*ring);
    std::uint64_t written = 0;
    const auto expected = [&](std::uint64_t from) {
        const std::uint64_t distance = mark.distance(ring->filled(0, 0));
        std::uint64_t n = from;
        do {
            ++n;
        } while (mark.of == notify::measure::records
                     ? n - from < distance
                     : bytes_with<Ring>(n) - (from == 0 ? 0 : bytes_with<Ring>(from)) < distance);
        return n;
    };
    auto consumer = ring->consumer();
    const std::uint64_t first = expected(0);
    BOOST_TEST(told_with(*ring, heard, written) == first);
    put(*ring, ++written);
    BOOST_TEST(heard.heard() == 1U);
    BOOST_TEST(!consumer.rearm());
    BOOST_TEST(numbers(consumer) == range(1, written));
    put(*ring, ++written);
    BOOST_TEST(heard.heard() == 1U);
    BOOST_TEST(numbers(consumer) == range(written, written));
    BOOST_TEST(consumer.rearm());
    if (first < 6) {  // still in the first sub-buffer
        BOOST_TEST(told_with(*ring, heard, written) == expected(first + 2));
    } else {
        told_with(*ring, heard, written);
    }
    check_told_twice(*ring);
}

/// The same for a ring that notifies when its first record has some age. False, and nothing is
/// found, if the machine was away for so long that a record had it before it was looked at.
template <class Ring, class Way>
[[nodiscard]] bool tells_by_age() {
    using clock = std::chrono::steady_clock;
    const auto ring = std::make_unique<Ring>();
    ear<Way> heard(*ring);
    std::uint64_t written = 0;
    auto consumer = ring->consumer();
    auto begin = clock::now();
    put(*ring, ++written);
    put(*ring, ++written);
    const std::uint64_t too_early = heard.heard();
    if (clock::now() - begin > some_age / 2) return false;
    BOOST_TEST(too_early == 0U);
    let_pass(some_age);
    BOOST_TEST(told_with(*ring, heard, written) == 3U);
    let_pass(some_age);
    put(*ring, ++written);
    BOOST_TEST(heard.heard() == 1U);
    BOOST_TEST(!consumer.rearm());
    BOOST_TEST(numbers(consumer) == range(1, 4));
    let_pass(some_age);
    BOOST_TEST(consumer.rearm());
    begin = clock::now();
    put(*ring, ++written);  // the age begins with this one
    const std::uint64_t once = heard.heard();
    if (clock::now() - begin > some_age / 2) return false;
    BOOST_TEST(once == 1U);
    let_pass(some_age);
    BOOST_TEST(told_with(*ring, heard, written) == 6U);
    check_told_twice(*ring);
    return true;
}

template <class Way, template <class> class Layout>
void tells_of_each_threshold() {
    tells<trace_ring::ring<Layout<notify::at_watermark<notify::records(4), Way>>>, Way>();
    tells<trace_ring::ring<Layout<notify::at_watermark<notify::bytes(130), Way>>>, Way>();
    tells<trace_ring::ring<Layout<notify::at_watermark<notify::percent(25), Way>>>, Way>();
    using by_age = trace_ring::ring<Layout<notify::at_watermark<notify::age(some_age), Way>>>;
    int tries = 0;
    while (!tells_by_age<by_age, Way>()) BOOST_REQUIRE(++tries < 1000);
}
using ways =
    std::tuple<notify::by_futex, notify::by_callback, notify::by_eventfd, notify::by_signal>;

}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(each_threshold_of_each_layout_is_told_once_for_each_crossing, Way,
                              ways) {
    tells_of_each_threshold<Way, in_bare>();
    tells_of_each_threshold<Way, in_sequenced>();
    tells_of_each_threshold<Way, in_subs>();
}

BOOST_AUTO_TEST_CASE(a_watermark_is_armed_again_when_no_more_than_the_lower_mark_is_unread) {
    const auto check = [](auto& ring, std::uint64_t lower) {
        auto& word = ring.control().notified.word;
        std::uint64_t written = 0, read = 0;
        const auto fill_to = [&](std::uint64_t count) {
            while (written < count) put(ring, ++written);
        };
        auto consumer = ring.consumer();
        for (std::uint32_t times = 1; times <= 3; ++times) {
            fill_to(read + 7);
            BOOST_TEST(word.load(trace_ring::relaxed) == times - 1);
            fill_to(read + 8);
            BOOST_TEST(word.load(trace_ring::relaxed) == times);
            while (written - read > lower) {
                BOOST_TEST(!consumer.rearm());
                BOOST_TEST(consumer.next().is_record());
                ++read;
            }
            BOOST_TEST(consumer.rearm());
        }
    };
    trace_ring::ring<in_bare<notify::at_watermark<notify::records(8)>>> bare;
    check(bare, 4);
    trace_ring::ring<in_sequenced<notify::at_watermark<notify::records(8), notify::by_futex, 25>>>
        sequenced;
    check(sequenced, 2);
    trace_ring::ring<in_subs<notify::at_watermark<notify::records(8), notify::by_futex, 0>>> sub;
    check(sub, 0);
    trace_ring::ring<in_subs<notify::at_watermark<notify::records(8), notify::by_futex, 99>>> most;
    check(most, 7);
}

BOOST_AUTO_TEST_CASE(circular_is_never_told_nor_is_a_threshold_above_the_maximum) {
    const auto check = [](auto& ring) {
        for (std::uint64_t i = 1; i <= 10 * table_slots; ++i) {
            put(ring, i);
            if (i % 7 == 0) BOOST_TEST(ring.consumer().rearm());
        }
        BOOST_TEST(ring.control().notified.word.load(trace_ring::relaxed) == 0U);
        BOOST_TEST(ring.notifier().is_armed(ring.control().notified));
    };
    trace_ring::ring<in_bare<notify::at_watermark<notify::circular>>> circular;
    check(circular);
    trace_ring::ring<in_sequenced<notify::at_watermark<notify::records(table_slots + 1)>>> records;
    check(records);
    trace_ring::ring<in_bare<notify::at_watermark<notify::bytes(bare_bytes + 1)>>> bytes;
    check(bytes);
    trace_ring::ring<in_bare<notify::at_watermark<notify::records(table_slots)>>> at_the_maximum;
    for (std::uint64_t i = 1; i <= table_slots; ++i) put(at_the_maximum, i);
    BOOST_TEST(at_the_maximum.control().notified.word.load(trace_ring::relaxed) == 1U);
}

BOOST_AUTO_TEST_CASE(writers_that_fence_tell_as_others) {
    trace_ring::ring<in_sequenced<notify::at_watermark<notify::records(4)>>> ring;
    auto& line = ring.control().notified;
    line.fenced.store(1, trace_ring::relaxed);
    auto consumer = ring.consumer();
    std::uint64_t written = 0;
    for (std::uint32_t times = 1; times <= 5; ++times) {
        for (int i = 0; i < 3; ++i) put(ring, ++written);
        BOOST_TEST(line.word.load(trace_ring::relaxed) == times - 1);
        put(ring, ++written);
        put(ring, ++written);
        BOOST_TEST(line.word.load(trace_ring::relaxed) == times);
        BOOST_TEST(numbers(consumer).size() == 5U);
        BOOST_TEST(consumer.rearm());
        BOOST_TEST(line.mark.load(trace_ring::relaxed) == 0U);  // each record looks
    }
}

BOOST_AUTO_TEST_CASE(a_record_that_is_late_is_told_of_to_a_reader_that_waits_for_it) {
    trace_ring::ring<in_sequenced<notify::at_watermark<notify::records(4)>>> ring;
    const auto told = [&] { return ring.control().notified.word.load(trace_ring::relaxed); };
    auto late = ring.try_reserve();
    for (std::uint64_t i = 2; i <= 6; ++i) put(ring, i);
    BOOST_TEST(told() == 1U);
    auto consumer = ring.consumer();
    BOOST_TEST(consumer.next().is_pending());
    BOOST_TEST(consumer.rearm());  // for that very one
    put(ring, 7);
    put(ring, 8);
    BOOST_TEST(told() == 1U);
    *late = sample(1);
    late.commit();
    BOOST_TEST(told() == 2U);
    BOOST_TEST(numbers(consumer) == range(1, 8));
    BOOST_TEST(consumer.rearm());

    auto dropped = ring.try_reserve();  // 9
    for (std::uint64_t i = 10; i <= 13; ++i) put(ring, i);
    BOOST_TEST(told() == 3U);
    BOOST_TEST(consumer.next().is_pending());
    BOOST_TEST(consumer.rearm());
    dropped.discard();
    BOOST_TEST(told() == 4U);
    BOOST_TEST(numbers(consumer) == range(10, 13));
    BOOST_TEST(consumer.rearm());

    auto stalled = ring.try_reserve();  // 14
    for (std::uint64_t i = 15; i <= 18; ++i) put(ring, i);
    BOOST_TEST(told() == 5U);
    BOOST_TEST(consumer.next().is_pending());
    BOOST_TEST(consumer.rearm());
    // It is overtaken: there is nothing to wait for.
    for (std::uint64_t i = 19; ring.produced() < 14 + table_slots; ++i) put(ring, i);
    BOOST_TEST(told() == 6U);
    BOOST_TEST(!stalled.commit());
}

BOOST_AUTO_TEST_CASE(a_writer_that_finds_no_room_tells) {
    // Of long records a ring of sub-buffers holds fewer than the threshold.
    struct discards : policies<record::sub_buffers<sub_bytes>, full::discard_newest,
                               storage::inline_bytes<subs * sub_bytes>,
                               notify::at_watermark<notify::records(20), notify::by_callback>> {};
    trace_ring::ring<discards> ring;
    ear<notify::by_callback> heard(ring);
    const std::uint64_t payload[50]{};
    const auto write = [&] { return ring.write_bytes(1, std::as_bytes(std::span(payload))); };
    for (std::uint64_t i = 0; i < subs; ++i) BOOST_TEST(write());
    BOOST_TEST(heard.times == 0U);
    BOOST_TEST(!write());
    BOOST_TEST(heard.times == 1U);
    BOOST_TEST(heard.last.bytes == subs * sub_bytes);
    BOOST_TEST(!write());
    BOOST_TEST(heard.times == 1U);
    auto consumer = ring.consumer();
    while (consumer.next()) {
    }
    BOOST_TEST(consumer.rearm());
    while (write()) {
    }
    BOOST_TEST(heard.times == 2U);

    struct waits : policies<record::sequenced<sample>, full::block<1ms>, sequenced_here,
                            notify::at_watermark<notify::percent(100)>> {};
    trace_ring::ring<waits> blocked;
    for (std::uint64_t i = 1; i <= table_slots; ++i) put(blocked, i);
    auto reader = blocked.consumer();
    BOOST_TEST(reader.next().is_record());
    static_cast<void>(blocked.notifier().arm(blocked.control().notified, [] {
        return notify::standing{{0, 0}, {0, 0, table_slots, 2 * sequenced_bytes}};
    }));
    put(blocked, 17);
    BOOST_TEST(blocked.control().notified.word.load(trace_ring::relaxed) == 1U);
    BOOST_TEST(!put(blocked, 18));
    BOOST_TEST(blocked.control().notified.word.load(trace_ring::relaxed) == 2U);
}

BOOST_AUTO_TEST_CASE(what_passes_a_mark_before_it_is_armed_is_seen_by_a_second_look) {
    trace_ring::ring<in_bare<notify::at_watermark<notify::records(4)>>> ring;
    auto consumer = ring.consumer();
    int looks = 0;
    const auto written_meanwhile = [&] {
        const auto now = consumer.standing();
        // No reader is notified of these: the mark is armed only after them.
        if (looks++ == 0) {
            for (std::uint64_t i = 1; i <= 6; ++i) put(ring, i);
        }
        return now;
    };
    BOOST_TEST(!ring.notifier().arm(ring.control().notified, written_meanwhile));
    BOOST_TEST(looks == 2);
    // Without them it is armed.
    while (consumer.next().is_record()) {
    }
    BOOST_TEST(ring.notifier().arm(ring.control().notified, [&] { return consumer.standing(); }));
}

BOOST_AUTO_TEST_CASE(a_callback_may_record_itself) {
    struct watched : policies<record::bare<sample>, claim::single_writer, bare_here,
                              notify::at_watermark<notify::records(2), notify::by_callback>> {};
    static trace_ring::ring<watched> ring;
    static const notify::callback record{
        [](void*, notify::progress at) noexcept { put(ring, 1000 + at.records); }, nullptr};
    ring.notifier().tell(&record);
    put(ring, 1);
    put(ring, 2);
    put(ring, 3);
    auto consumer = ring.consumer();
    BOOST_TEST(numbers(consumer) == (std::vector<std::uint64_t>{1, 2, 1002, 3}));
    BOOST_TEST(consumer.rearm());
    ring.notifier().tell(nullptr);
    put(ring, 4);
    put(ring, 5);
    BOOST_TEST(numbers(consumer) == (std::vector<std::uint64_t>{4, 5}));
    BOOST_TEST(ring.lost().total() == 0U);
}

BOOST_AUTO_TEST_CASE(what_tells_leaves_errno_as_it_was) {
    trace_ring::ring<in_bare<notify::at_watermark<notify::records(1), notify::by_eventfd>>> file;
    file.notifier().tell(1 << 20);  // no file
    trace_ring::ring<in_bare<notify::at_watermark<notify::records(1), notify::by_signal>>> sent;
    auto& line = sent.control().notified;
    BOOST_TEST(sent.notifier().tell(line, {(1 << 28) - 1, 0, SIGUSR1}));  // nobody
    errno = E2BIG;
    put(file, 1);
    put(sent, 1);
    BOOST_TEST(errno == E2BIG);
    BOOST_TEST(line.word.load(trace_ring::relaxed) == 1U);
}

BOOST_AUTO_TEST_CASE(a_signal_goes_to_one_process_or_thread_and_never_to_more) {
    trace_ring::ring<in_bare<notify::at_watermark<notify::records(1), notify::by_signal>>> ring;
    auto& line = ring.control().notified;
    for (const notify::signalled& wrong : {notify::signalled{0, 0, SIGUSR1},
                                           {-1, 0, SIGUSR1},
                                           {1 << 28, 0, SIGUSR1},
                                           {::getpid(), -1, SIGUSR1},
                                           {::getpid(), 0, 0},
                                           {::getpid(), 0, 128}}) {
        BOOST_TEST(!ring.notifier().tell(line, wrong));
        BOOST_TEST(line.whom.load(trace_ring::relaxed) == 0U);
    }
    ear<notify::by_signal> heard(ring);
    line.whom.store(std::uint64_t{SIGUSR1} << 56,
                    trace_ring::relaxed);  // by a hostile hand: kill(0)
    put(ring, 1);
    BOOST_TEST(heard.heard() == 0U);
    BOOST_TEST(ring.notifier().tell(line, {::getpid(), 0, SIGUSR1}));
    auto consumer = ring.consumer();
    BOOST_TEST(numbers(consumer) == range(1, 1));
    BOOST_TEST(consumer.rearm());
    put(ring, 2);
    BOOST_TEST(heard.heard() == 1U);
    ring.notifier().quiet(line);
    BOOST_TEST(numbers(consumer) == range(2, 2));
    BOOST_TEST(consumer.rearm());
    put(ring, 3);
    BOOST_TEST(heard.heard() == 1U);
}

BOOST_AUTO_TEST_CASE(an_eventfd_wakes_who_polls_it) {
    trace_ring::ring<in_subs<notify::at_watermark<notify::records(3), notify::by_eventfd>>> ring;
    ear<notify::by_eventfd> heard(ring);
    pollfd look{heard.fd, POLLIN, 0};
    put(ring, 1);
    put(ring, 2);
    BOOST_TEST(::poll(&look, 1, 0) == 0);
    put(ring, 3);
    BOOST_TEST(::poll(&look, 1, 0) == 1);
    BOOST_TEST(look.revents == POLLIN);
    ring.notifier().tell(-1);
}

BOOST_AUTO_TEST_CASE(marks_are_counted_from_where_a_ring_begins) {
    trace_ring::ring<in_sequenced<notify::at_watermark<notify::records(4)>>> ring;
    ring.begin_after(1000);
    for (std::uint64_t i = 1; i <= 3; ++i) put(ring, i);
    BOOST_TEST(ring.control().notified.word.load(trace_ring::relaxed) == 0U);
    put(ring, 4);
    BOOST_TEST(ring.control().notified.word.load(trace_ring::relaxed) == 1U);
}

BOOST_AUTO_TEST_CASE(a_ring_that_refuses_is_not_smaller_than_its_threshold) {
    struct queue : policies<record::sequenced<sample>, full::discard_newest, storage::heap,
                            notify::at_watermark<notify::records(64)>> {};
    BOOST_CHECK_NO_THROW((trace_ring::ring<queue>(64 * 32U)));
    BOOST_CHECK_THROW((trace_ring::ring<queue>(63 * 32U)), trace_ring::setup_error);
    struct recent : policies<record::sequenced<sample>, storage::heap,
                             notify::at_watermark<notify::records(64)>> {};
    BOOST_CHECK_NO_THROW((trace_ring::ring<recent>(63 * 32U)));
}

BOOST_AUTO_TEST_CASE(a_share_is_one_of_what_a_growing_ring_has_by_now) {
    struct grows : policies<full::extend<bare_bytes, full::discard_newest>, record::bare<sample>,
                            claim::single_writer, storage::mapped,
                            notify::at_watermark<notify::percent(50)>> {};
    trace_ring::ring<grows> ring(bare_bytes, 4 * bare_bytes);
    auto consumer = ring.consumer();
    auto& word = ring.control().notified.word;
    const std::uint64_t small = ring.capacity();
    for (std::uint64_t i = 1; i <= small; ++i) put(ring, i);
    BOOST_TEST(word.load(trace_ring::relaxed) == 1U);
    for (std::uint64_t i = 1; i <= small; ++i) put(ring, i);
    const std::uint64_t large = ring.capacity();
    BOOST_TEST(large > small);
    BOOST_TEST(numbers(consumer).size() == 2 * small);
    BOOST_TEST(consumer.rearm());
    for (std::uint64_t i = 1; i < (large + 1) / 2; ++i) put(ring, i);
    BOOST_TEST(word.load(trace_ring::relaxed) == 1U);
    put(ring, 0);
    BOOST_TEST(word.load(trace_ring::relaxed) == 2U);
}

BOOST_AUTO_TEST_SUITE_END()
