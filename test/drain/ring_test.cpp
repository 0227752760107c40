// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// Rings of sub-buffers, drained in place.

#include <boost/test/unit_test.hpp>

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include <trace_ring/drain/session.hpp>
#include <trace_ring/ring/drain.hpp>

#include <recorder/scratch.hpp>

#include "kinds.hpp"

BOOST_AUTO_TEST_SUITE(drain_ring)

using namespace kinds;
using trace_ring::loss_cause;
namespace drain = trace_ring::drain;

namespace {

constexpr std::uint64_t eight = 8 * sub_bytes;
struct discarding
    : policies<record::sub_buffers<sub_bytes>, full::discard_newest, storage::inline_bytes<eight>> {
};
struct stopping
    : policies<record::sub_buffers<sub_bytes>, full::stop, storage::inline_bytes<eight>> {};
struct waiting : policies<record::sub_buffers<sub_bytes>, full::block<std::chrono::seconds{60}>,
                          storage::inline_bytes<eight>> {};
struct shared : policies<record::sub_buffers<sub_bytes>, full::discard_newest, storage::mapped> {};
struct overwriting : policies<record::sub_buffers<sub_bytes>, storage::inline_bytes<eight>> {};

static_assert(drain::leads_to_drainable<trace_ring::ring<discarding>>);
static_assert(drain::drainable_while_open<trace_ring::sub_buffer_drain<waiting>>);
static_assert(!drain::leads_to_drainable<trace_ring::ring<overwriting>>);
static_assert(!drain::leads_to_drainable<trace_ring::ring<bare_one>>);

/// What was handed over: numbers, each greater by one than the last.
struct counting {
    std::uint64_t next = 0;
    std::uint64_t strange = 0;

    void operator()(const trace_ring::drained_record& record) {
        if (record.at != next || record.payload.size() != 1 || record.payload[0] != next) ++strange;
        ++next;
    }
};

/// As long as there is room: how many.
template <class Ring>
std::uint64_t fill(Ring& ring, std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t n = from; n < to; ++n) {
        if (!ring.write(1, n)) return n - from;
    }
    return to - from;
}

}  // namespace

BOOST_AUTO_TEST_CASE(room_that_was_consumed_is_used_again_and_what_was_refused_is_told) {
    auto ring = std::make_unique<trace_ring::ring<discarding>>();
    drain::session session(*ring);
    counting got;
    std::uint64_t written = 0;
    for (std::uint64_t round = 1; round <= 10; ++round) {
        written += fill(*ring, written, 100'000);
        BOOST_TEST(!ring->write(1, written));  // the second time
        session.for_each_record(got);
        BOOST_TEST(got.strange == 0U);
        // The sub-buffer that is full, but not closed, is still the writer's.
        BOOST_TEST(got.next < written);
    }
    session.finish_records(got);
    BOOST_TEST(got.next == written);
    BOOST_TEST(got.strange == 0U);
    BOOST_TEST(session.records() == written);
    BOOST_TEST(session.lost()[loss_cause::refused] == 20U);
    BOOST_TEST(session.lost().total() == 20U);
}

BOOST_AUTO_TEST_CASE(a_writer_that_waits_loses_nothing) {
    const std::uint64_t count = test::repeated(500'000, 5000);
    auto ring = std::make_unique<trace_ring::ring<waiting>>();
    std::atomic<bool> ended{false};
    std::thread writer([&] {
        fill(*ring, 0, count);
        ended = true;
    });
    counting got;
    drain::session session(*ring);
    while (!ended.load()) {
        if (session.for_each_record(got) == 0) std::this_thread::yield();
    }
    writer.join();
    session.finish_records(got);
    BOOST_TEST(got.next == count);
    BOOST_TEST(got.strange == 0U);
    BOOST_TEST(session.lost().total() == 0U);
}

BOOST_AUTO_TEST_CASE(a_ring_that_stopped_is_emptied_and_started_again) {
    auto ring = std::make_unique<trace_ring::ring<stopping>>();
    counting got;
    const std::uint64_t first = fill(*ring, 0, 100'000);
    BOOST_TEST(!ring->write(1, first));
    drain::session session(*ring);
    session.finish_records(got);
    BOOST_TEST(got.next == first);
    BOOST_TEST(session.lost()[loss_cause::refused] == 2U);
    ring->restart();
    BOOST_TEST(fill(*ring, first, first + 10) == 10U);
    session.finish_records(got);
    BOOST_TEST(got.next == first + 10);
    BOOST_TEST(got.strange == 0U);
}

BOOST_AUTO_TEST_CASE(what_is_held_is_neither_written_nor_consumed) {
    auto ring = std::make_unique<trace_ring::ring<discarding>>();
    const std::uint64_t written = fill(*ring, 0, 100'000);
    {
        drain::session session(*ring);
        auto first = session.take();
        auto second = session.take();
        BOOST_REQUIRE((first && second));
        BOOST_TEST((*first)->first() == 0U);
        BOOST_TEST((*second)->first() == (*first)->records());
        second->consume();
        BOOST_TEST(fill(*ring, written, written + 1) == 0U);  // the first is before it
        first->consume();
        BOOST_TEST(fill(*ring, written, written + 1) == 1U);
        auto third = session.take();
        BOOST_REQUIRE(third);
        third->keep();
    }
    drain::session session(*ring);
    counting got;
    auto third = session.take();
    BOOST_REQUIRE(third);
    got.next = (*third)->first();
    (*third)->visit(got);
    third->consume();
    session.finish_records(got);
    BOOST_TEST(got.next == written + 1);
    BOOST_TEST(got.strange == 0U);
}

BOOST_AUTO_TEST_CASE(records_of_the_sub_buffer_that_is_being_filled_come_once) {
    auto ring = std::make_unique<trace_ring::ring<discarding>>();
    counting got;
    for (std::uint64_t n = 0; n < 6; ++n) {
        drain::session session(*ring);
        fill(*ring, n * 10, n * 10 + 10);
        session.finish_records(got);
        BOOST_TEST(got.next == n * 10 + 10);
        fill(*ring, n * 10 + 10, n * 10 + 10);
        session.finish_records(got);
        BOOST_TEST(got.next == n * 10 + 10);
    }
    BOOST_TEST(got.strange == 0U);
}

BOOST_AUTO_TEST_CASE(a_second_session_is_refused_and_one_after_a_killed_one_has_all) {
    trace_ring::ring<shared> ring(eight + storage::control_bytes);
    const std::uint64_t written = fill(ring, 0, 100'000);
    int pipe[2];
    BOOST_REQUIRE(::pipe(pipe) == 0);
    const pid_t child = test::start_child([&] {
        drain::session session(ring);
        auto held = session.take();
        if (!held || ::write(pipe[1], "x", 1) != 1) return 1;
        for (;;) ::pause();
    });
    char byte = 0;
    ::close(pipe[1]);
    BOOST_REQUIRE(::read(pipe[0], &byte, 1) == 1);
    ::close(pipe[0]);
    BOOST_CHECK_EXCEPTION(drain::session another(ring), trace_ring::setup_error,
                          [&](const trace_ring::setup_error& error) {
                              return error.code().value() == EBUSY &&
                                     std::string(error.what()).find(std::to_string(child)) !=
                                         std::string::npos;
                          });
    ::kill(child, SIGKILL);
    BOOST_TEST(test::wait_for(child) == -SIGKILL);
    drain::session session(ring);
    BOOST_CHECK_THROW(drain::session another(ring), trace_ring::setup_error);
    counting got;
    session.finish_records(got);
    BOOST_TEST(got.next == written);
    BOOST_TEST(got.strange == 0U);
}

BOOST_AUTO_TEST_CASE(damage_costs_its_own_records_and_is_told) {
    auto ring = std::make_unique<trace_ring::ring<discarding>>();
    const std::uint64_t written = fill(*ring, 0, 100'000);
    auto& second = *reinterpret_cast<trace_ring::sub_buffer_header*>(ring->slot_at(1));
    const std::uint64_t in_it =
        trace_ring::commit_word::records(second.commit.load(trace_ring::relaxed));
    second.commit.store(trace_ring::commit_word::one_record + 7, trace_ring::relaxed);
    drain::session session(*ring);
    BOOST_TEST(session.finish_records([](const auto&) {}) == written - in_it);
    BOOST_TEST(session.lost()[loss_cause::damaged] == in_it);
}

BOOST_AUTO_TEST_SUITE_END()
