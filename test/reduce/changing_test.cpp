// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Reading a file while another thread changes its bytes.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <random>
#include <thread>
#include <utility>

#include <boost/test/unit_test.hpp>

#include <trace_ring/atomic.hpp>
#include <trace_ring/position.hpp>
#include <trace_ring/reduce/trace_file.hpp>

#include <reduce/everything.hpp>
#include <reduce/file_builder.hpp>

BOOST_AUTO_TEST_SUITE(changing_files)

using namespace trace_ring_test;
namespace reduce = trace_ring::reduce;

BOOST_AUTO_TEST_CASE(memory_that_changes_under_the_reader_does_no_harm) {
    auto b = everything();
    const auto sound = everything();
    std::atomic<bool> stop{false};
    // Words go back and forth between what they were, what is plausible, and anything.
    std::thread scribbler([&] {
        std::mt19937_64 random(1);
        const auto first = static_cast<std::size_t>(b.plan().ring / 8);
        const std::size_t words = b.bytes().size() / 8 - first;
        while (!stop.load()) {
            const std::size_t at = (first + static_cast<std::size_t>(random() % words)) * 8;
            std::uint64_t value = sound.get(at, 8);
            if (random() % 4 == 0) value = random();
            if (random() % 4 == 0) value ^= std::uint64_t{1} << random() % 64;
            // relaxed: the reader must accept anything
            trace_ring::word_at<std::uint64_t>(b.bytes().data(), at)
                .store(value, trace_ring::relaxed);
        }
    });
    unsigned read = 0;
    for (int round = 0; round < 100; ++round) {
        try {
            auto file = reduce::trace_file::from(std::as_const(b).bytes());
            auto forward = file.forward();
            for (int i = 0; i < 100'000 && forward.next() != nullptr; ++i) ++read;
            auto backward = file.backward();
            for (int i = 0; i < 100'000 && backward.next() != nullptr; ++i) ++read;
            auto follow = file.follow();
            for (int i = 0; i < 50; ++i) (void)follow.next();
        } catch (const trace_ring::format_error&) {
        }
    }
    stop = true;
    scribbler.join();
    BOOST_TEST(read > 0U);
}

BOOST_AUTO_TEST_CASE(a_reading_that_is_replaced_meanwhile_is_never_a_mixture) {
    file_builder b({.clocks = 3});
    b.clock_reading(1, 3, 5);
    std::atomic<bool> stop{false};
    std::thread writer([&] {
        const auto word = [&](std::uint64_t slot, std::size_t field) -> auto& {
            return trace_ring::word_at<std::uint64_t>(
                b.bytes().data(), static_cast<std::size_t>(b.plan().clocks + slot * 64 + field));
        };
        // As a recorder does it. relaxed, to the end: ordered by the fence and the last store
        for (std::uint64_t n = 2; !stop.load(); ++n) {
            const std::uint64_t slot = 1 + n % 2;
            word(slot, 0).store(0, trace_ring::relaxed);
            trace_ring::thread_fence(trace_ring::release);
            word(slot, 8).store(n, trace_ring::relaxed);
            word(slot, 16).store(n * 3, trace_ring::relaxed);
            word(slot, 24).store(n * 5, trace_ring::relaxed);
            word(slot, 0).store(n, trace_ring::release);
            for (std::uint64_t rest = n % 64; rest != 0; --rest)
                trace_ring::signal_fence(trace_ring::seq_cst);
        }
    });
    unsigned seen = 0;
    unsigned mixed = 0;
    for (int round = 0; round < 20'000; ++round) {
        const auto file = reduce::trace_file::from(std::as_const(b).bytes());
        for (const auto& reading : file.time().snapshots()) {
            seen += reading.ticks > 1;
            mixed +=
                reading.monotonic != reading.ticks * 3 || reading.realtime != reading.ticks * 5;
        }
    }
    stop = true;
    writer.join();
    BOOST_TEST(seen > 0U);
    BOOST_TEST(mixed == 0U);
}

// The first look at a header may read its first word before a claim and the others after it.
BOOST_AUTO_TEST_CASE(a_sub_buffer_that_begins_meanwhile_is_not_damaged) {
    file_builder b({.sub_buffers = 2});
    const auto process = b.process(7);
    const auto lane = b.lane(process, 8);
    const std::uint64_t at = b.slot_at(b.open(lane, 1000));
    const auto limit = b.plan().sub_buffer_limit;
    std::atomic<bool> stop{false};
    std::thread writer([&] {
        const auto word = [&](std::uint64_t offset) -> auto& {
            return trace_ring::word_at<std::uint64_t>(b.bytes().data(),
                                                      static_cast<std::size_t>(offset));
        };
        const std::uint64_t first = word(at).load(trace_ring::relaxed);
        auto state = trace_ring::stamped::from(word(at + 8).load(trace_ring::relaxed));
        const auto become = [&](trace_ring::sub_buffer_state next) {
            state.state = static_cast<unsigned>(next);
            word(at + 8).store(state.word(), trace_ring::release);
        };
        const std::uint64_t cursor =
            b.plan().ring + offsetof(trace_ring::layout::ring_state, cursor);
        while (!stop.load()) {
            state.pos += limit;
            // relaxed: each reader looks at it once more before it believes in a fault
            word(cursor).store(state.pos, trace_ring::relaxed);
            become(trace_ring::sub_buffer_state::reset);
            trace_ring::thread_fence(trace_ring::release);
            // As in a slot that is claimed for the first time. relaxed: see above
            word(at).store(0, trace_ring::relaxed);
            word(at).store(first, trace_ring::relaxed);
            become(trace_ring::sub_buffer_state::active);
        }
    });
    for (int round = 0; round < 10'000; ++round) {
        const auto file = reduce::trace_file::from(std::as_const(b).bytes());
        for (auto cursor = file.forward(); const auto* item = cursor.next();) {
            const auto* const loss = std::get_if<reduce::loss_item>(item);
            if (loss != nullptr && loss->cause == trace_ring::loss_cause::damaged)
                BOOST_ERROR(loss->what);
        }
    }
    stop = true;
    writer.join();
}

BOOST_AUTO_TEST_SUITE_END()
