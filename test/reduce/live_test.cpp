// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Reading a trace in both directions, again and again, while it is recorded: no part of a healthy
/// trace is called damaged, and each record has the position at which its thread recorded it.

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <proof.hpp>
#include <recorder/scratch.hpp>
#include <trace_reduce/reading/threads.hpp>
#include <trace_ring/recorder/recorder.hpp>
#include <trace_ring/reduce/trace_file.hpp>

BOOST_AUTO_TEST_SUITE(live_traces)

namespace reduce = trace_ring::reduce;

namespace {

struct step : trace_ring::event<"step", trace_ring::field<"n", std::uint64_t>> {};

/// Threads that each do `work(recorder, over)` until `over`, while `look(trace, round)` is called
/// on the file, opened anew each time.
template <class Work, class Look>
void read_beside(unsigned rounds, const Work& work, const Look& look) {
    const test::folder folder;
    trace_ring::recorder recorder{{.file = folder / "a.trace", .size = 64 << 10}};
    std::atomic<bool> over{false};
    std::vector<std::thread> writers;
    for (int w = 0; w < 4; ++w) writers.emplace_back([&] { work(recorder, over); });
    for (unsigned round = 0; round < rounds; ++round) {
        const auto trace = reduce::trace_file::open(folder / "a.trace");
        look(trace, round);
    }
    over = true;
    for (auto& each : writers) each.join();
}

/// Reads all of it. `visit(record)` gets each record.
template <class Visit>
void read_all(reduce::cursor cursor, const Visit& visit) {
    while (const reduce::item* const one = cursor.next()) {
        if (const auto* record = std::get_if<reduce::record_view>(one)) {
            visit(*record);
            for (const auto& like : cursor.records()) visit(like);
        } else if (const auto* loss = std::get_if<reduce::loss_item>(one)) {
            BOOST_TEST((loss->cause != trace_ring::loss_cause::damaged), loss->what);
        }
    }
}

}  // namespace

BOOST_AUTO_TEST_CASE(each_record_has_its_number_as_its_position_both_ways) {
    std::uint64_t records = 0, misplaced = 0;
    read_beside(
        trace_ring_test::repeats(test::scale > 10 ? 100 : 1000),
        [](trace_ring::recorder& to, const std::atomic<bool>& over) {
            for (std::uint64_t n = 0; !over.load(); ++n) {
                to.record<step>(n);
                if (n % 64 == 0) std::this_thread::yield();
            }
        },
        [&](const reduce::trace_file& trace, unsigned round) {
            read_all(round % 2 == 0 ? trace.forward() : trace.backward(),
                     [&](const reduce::record_view& record) {
                         ++records;
                         misplaced += record.position() == record.field("n").u64() ? 0U : 1U;
                     });
        });
    BOOST_TEST(misplaced == 0U);
    BOOST_TEST(records > 0U);
    trace_ring_test::proof("whole", records, "records read while others were written");
}

BOOST_AUTO_TEST_CASE(nothing_is_damaged_while_threads_come_and_go) {
    std::uint64_t records = 0;
    read_beside(
        trace_ring_test::repeats(test::scale > 10 ? 100 : 1000),
        [](trace_ring::recorder& to, const std::atomic<bool>& over) {
            while (!over.load()) {
                std::thread([&] {
                    for (std::uint64_t n = 0; n < 300 && !over.load(); ++n) to.record<step>(n);
                    to.flush_thread();
                }).join();
            }
        },
        [&](const reduce::trace_file& trace, unsigned round) {
            reduce::filter what;
            if (round % 3 == 0) what.ahead = trace_reduce::read_ahead_by(2);
            read_all(round % 2 == 0 ? trace.forward(what) : trace.backward(what),
                     [&](const reduce::record_view&) { ++records; });
            if (round % 5 == 0) BOOST_CHECK_NO_THROW((void)trace.statistics());
        });
    BOOST_TEST(records > 0U);
    trace_ring_test::proof("whole", records, "records read while others were written");
}

BOOST_AUTO_TEST_SUITE_END()
