// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// The time of records, with a clock that the test moves: what the processor's own clock does once
/// a second at most is done here at every place where the clock can be read.

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <latch>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include <trace_ring/policy/clock/none.hpp>
#include <trace_ring/policy/clock/sampled.hpp>
#include <trace_ring/recorder/recorder.hpp>
#include <trace_ring/reduce/trace_file.hpp>

#include <recorder/account.hpp>
#include <recorder/scratch.hpp>
#include <recorder/trace_reader.hpp>

BOOST_AUTO_TEST_SUITE(clock_of_a_recorder)

namespace tr = trace_ring;

namespace {

/// Advances by `step` with each reading.
struct hand_clock {
    using family = tr::family::clock;
    static constexpr std::uint32_t kind = 77;
    static inline std::uint64_t ticks = 0;
    static inline std::uint64_t step = 1;

    static std::uint64_t now() noexcept { return ticks += step; }
    static bool usable() noexcept { return true; }
    static double ticks_per_second() noexcept { return 1e9; }
};
static_assert(tr::clock::policy<hand_clock>);

/// The same, with ticks of a microsecond.
struct coarse_clock : hand_clock {
    static constexpr std::uint32_t kind = 79;
    static double ticks_per_second() noexcept { return 1e6; }
};

/// One that this machine does not have.
struct broken_clock {
    using family = tr::family::clock;
    static constexpr std::uint32_t kind = 78;
    static std::uint64_t now() noexcept { return 0; }
    static bool usable() noexcept { return false; }
    static double ticks_per_second() noexcept { return 0; }
};

struct by_hand : tr::policies<hand_clock> {};
struct by_coarse : tr::policies<coarse_clock> {};
struct untimed : tr::policies<tr::clock::none> {};
struct by_monotonic : tr::policies<tr::clock::monotonic> {};
struct by_broken : tr::policies<broken_clock> {};
struct now_and_then : tr::policies<tr::clock::sampled<4, hand_clock>> {};

struct timed_number : tr::event<"number", tr::field<"n", std::uint64_t>> {};

/// The time that a reader reports for each record.
struct timing {
    std::uint64_t time;
    std::optional<std::uint64_t> latest;
    bool interval;
};
template <class Kind>
std::vector<timing> timings(const tr::basic_recorder<Kind>& recorder) {
    const auto [data, size] = recorder.bytes();
    const auto trace = tr::reduce::trace_file::from({data, size});
    std::vector<timing> out;
    for (auto cursor = trace.forward(); const auto* item = cursor.next();) {
        const auto* const jump = std::get_if<tr::reduce::clock_jump>(item);
        if (jump != nullptr && jump->lane == nullptr) continue;  // a clock set by hand is no date's
        const auto* const record = std::get_if<tr::reduce::record_view>(item);
        BOOST_REQUIRE(record != nullptr);  // nothing lost, no lane whose clock jumps
        out.push_back({record->time(), record->latest(), record->interval()});
    }
    return out;
}

constexpr std::uint64_t edge = std::uint64_t{1} << 32;

}  // namespace

BOOST_AUTO_TEST_CASE(a_foreign_clock_is_read_on_the_hot_and_on_the_cold_path) {
    hand_clock::ticks = 5 * edge;
    hand_clock::step = 1;
    tr::basic_recorder<by_hand> recorder({.size = 8 * 512, .sub_buffer_bytes = 512});
    for (std::uint64_t i = 0; i < 100; ++i) {
        hand_clock::ticks = 5 * edge + 1000 + i * 100;
        BOOST_REQUIRE(recorder.record<timed_number>(i));
    }
    test::trace_view view(recorder.bytes());
    BOOST_TEST(view.header().clock.load(tr::relaxed) == 77U);
    BOOST_TEST(view.header().ticks_per_second.load(tr::relaxed) == 1'000'000'000U);
    const auto all = view.records();
    BOOST_REQUIRE(all.size() == 100U);
    for (const auto& r : all) {
        const std::uint64_t before = 5 * edge + 1000 + r.payload[0] * 100;
        BOOST_REQUIRE(r.time > before);
        BOOST_REQUIRE(r.time < before + 40);
    }
}

// The high half changes at each of the first two hundred readings in turn: between two records, in
// the middle of the cold path, at a sub-buffer's beginning, inside a reservation.
BOOST_AUTO_TEST_CASE(time_never_goes_back_wherever_its_high_half_changes) {
    std::uint64_t time_records = 0;
    for (std::uint64_t before = 0; before < 200; ++before) {
        hand_clock::ticks = 7 * edge;
        hand_clock::step = 1;
        tr::basic_recorder<by_hand> recorder({.size = 64 * 512, .sub_buffer_bytes = 512});
        hand_clock::ticks = 8 * edge - before - 1;
        const std::uint64_t began = hand_clock::ticks;
        for (std::uint64_t i = 0; i < 100; ++i) {
            if (i % 7 == 3) {
                auto one = recorder.reserve<timed_number>(i);
                BOOST_REQUIRE(one.commit());
            } else {
                BOOST_REQUIRE(recorder.record<timed_number>(i));
            }
        }
        test::trace_view view(recorder.bytes());
        const auto all = view.records();  // has checked that times rise
        BOOST_REQUIRE(all.size() == 100U);
        BOOST_REQUIRE(all.front().time > began);
        BOOST_REQUIRE(all.back().time <= hand_clock::ticks);
        // No reading costs more than itself: a wrong high half would be 2^32 off.
        for (std::size_t i = 1; i < all.size(); ++i) {
            BOOST_REQUIRE(all[i].time - all[i - 1].time < 300);
        }
        for (const auto& sub : view.sub_buffers()) {
            const std::size_t records = sub.head.records * 16U;
            time_records += (sub.head.bytes - 64 - records) / tr::time_record_bytes;
        }
    }
    BOOST_TEST(time_records > 50U);
}

BOOST_AUTO_TEST_CASE(a_thread_that_records_once_in_an_age_needs_no_new_sub_buffer) {
    hand_clock::ticks = edge;
    hand_clock::step = 1;
    tr::basic_recorder<by_hand> recorder({.size = 8 * 4096});
    for (std::uint64_t i = 0; i < 60; ++i) {
        hand_clock::ticks += 3 * edge;
        BOOST_REQUIRE(recorder.record<timed_number>(i));
    }
    test::trace_view view(recorder.bytes());
    BOOST_TEST(view.sub_buffers().size() == 1U);
    const auto all = view.records();
    BOOST_REQUIRE(all.size() == 60U);
    for (std::size_t i = 1; i < all.size(); ++i)
        BOOST_REQUIRE(all[i].time - all[i - 1].time >= 3 * edge);
}

BOOST_AUTO_TEST_CASE(a_record_that_just_fits_goes_elsewhere_if_a_time_record_must_go_first) {
    hand_clock::ticks = edge;
    hand_clock::step = 1;
    tr::basic_recorder<by_hand> recorder({.size = 8 * 512, .sub_buffer_bytes = 512});
    // 28 records of 16 bytes fill a sub-buffer of 512 to the last byte.
    for (std::uint64_t i = 0; i < 27; ++i) BOOST_REQUIRE(recorder.record<timed_number>(i));
    hand_clock::ticks += 2 * edge;
    BOOST_REQUIRE(recorder.record<timed_number>(std::uint64_t{27}));
    test::trace_view view(recorder.bytes());
    BOOST_TEST(view.sub_buffers().size() == 2U);
    BOOST_TEST(view.records().back().time > 3 * edge);
}

BOOST_AUTO_TEST_CASE(without_a_clock_records_bear_none) {
    tr::basic_recorder<untimed> recorder({.size = 8 * 512, .sub_buffer_bytes = 512});
    for (std::uint64_t i = 0; i < 50; ++i) BOOST_REQUIRE(recorder.record<timed_number>(i));
    test::trace_view view(recorder.bytes());
    BOOST_TEST(view.header().clock.load(tr::relaxed) == 0U);
    for (const auto& r : view.records()) BOOST_REQUIRE(r.time == 0U);
}

BOOST_AUTO_TEST_CASE(without_a_clock_a_thread_s_records_are_told_in_the_order_of_recording) {
    namespace reduce = tr::reduce;
    // This thread records, and continues in a lane that an older thread leaves: a lane that began
    // before its own, and whose last sub-buffer lies before its own (0 records more) or behind it.
    for (const std::uint64_t more : {0U, 20U}) {
        tr::basic_recorder<untimed> recorder({.size = 8 * 512, .sub_buffer_bytes = 512});
        std::latch began(1);
        std::latch recorded(1);
        std::thread older([&] {
            BOOST_TEST(test::put(recorder, 2, 0));
            began.count_down();
            recorded.wait();
            for (std::uint64_t n = 1; n <= more; ++n) BOOST_TEST(test::put(recorder, 2, n));
        });
        began.wait();
        for (std::uint64_t n = 0; n < 3; ++n) BOOST_TEST(test::put(recorder, 1, n));
        recorded.count_down();
        older.join();
        recorder.flush_thread();
        for (std::uint64_t n = 3; n < 6; ++n) BOOST_TEST(test::put(recorder, 1, n));
        const auto [base, bytes] = recorder.bytes();
        const auto trace = reduce::trace_file::from({base, bytes});
        const auto told = [](reduce::cursor cursor) {
            std::map<std::uint64_t, std::vector<std::uint64_t>> out;
            while (const auto* item = cursor.next()) {
                if (const auto* record = std::get_if<reduce::record_view>(item))
                    out[record->field(0).u64()].push_back(record->field(1).u64());
            }
            return out;
        };
        auto forward = told(trace.forward());
        auto backward = told(trace.backward());
        for (auto& [who, numbers] : backward) std::reverse(numbers.begin(), numbers.end());
        BOOST_TEST(forward[1] == test::first(6), boost::test_tools::per_element());
        BOOST_TEST(forward[2] == test::first(more + 1), boost::test_tools::per_element());
        BOOST_TEST((backward == forward));
    }
}

BOOST_AUTO_TEST_CASE(the_system_s_clock_can_be_asked_for) {
    const std::uint64_t before = tr::clock::monotonic::now();
    tr::basic_recorder<by_monotonic> recorder({.size = 8 * 512, .sub_buffer_bytes = 512});
    for (std::uint64_t i = 0; i < 50; ++i) BOOST_REQUIRE(recorder.record<timed_number>(i));
    test::trace_view view(recorder.bytes());
    const auto all = view.records();
    BOOST_TEST(all.front().time >= before);
    BOOST_TEST(all.back().time <= tr::clock::monotonic::now());
}

BOOST_AUTO_TEST_CASE(a_clock_that_cannot_be_used_is_replaced_by_the_system_s) {
    const std::uint64_t before = tr::clock::monotonic::now();
    tr::basic_recorder<by_broken> recorder({.size = 8 * 512, .sub_buffer_bytes = 512});
    for (std::uint64_t i = 0; i < 50; ++i) BOOST_REQUIRE(recorder.record<timed_number>(i));
    test::trace_view view(recorder.bytes());
    BOOST_TEST(view.header().clock.load(tr::relaxed) == tr::clock::monotonic::kind);
    const auto all = view.records();
    BOOST_REQUIRE(all.size() == 50U);
    BOOST_TEST(all.front().time >= before);
    BOOST_TEST(all.back().time <= tr::clock::monotonic::now());
}

BOOST_AUTO_TEST_CASE(who_joins_a_trace_goes_by_its_clock) {
    const test::folder folder;
    hand_clock::ticks = 9 * edge;
    hand_clock::step = 1;
    tr::basic_recorder<by_hand> first(
        {.file = folder / "t", .size = 16 * 512, .sub_buffer_bytes = 512});
    // This kind's hot path would read the processor's clock.
    BOOST_CHECK_THROW(tr::recorder({.file = folder / "t", .exists = tr::if_exists::attach}),
                      tr::setup_error);
    tr::recorder second({.file = folder / "u", .size = 16 * 512, .sub_buffer_bytes = 512});
    tr::basic_recorder<by_monotonic> third({.file = folder / "u", .exists = tr::if_exists::attach});
    for (std::uint64_t i = 0; i < 30; ++i) {
        BOOST_REQUIRE(second.record<timed_number>(2 * i));
        BOOST_REQUIRE(third.record<timed_number>(2 * i + 1));
    }
    test::trace_view view(second.bytes());
    auto all = view.records();
    BOOST_REQUIRE(all.size() == 60U);
    std::sort(all.begin(), all.end(), [](auto& a, auto& b) { return a.payload[0] < b.payload[0]; });
    for (std::size_t i = 1; i < all.size(); ++i) BOOST_REQUIRE(all[i].time >= all[i - 1].time);
}

BOOST_AUTO_TEST_CASE(a_sampled_clock_is_read_once_in_n_records_and_bounds_the_others) {
    hand_clock::step = 1;
    tr::basic_recorder<now_and_then> recorder({.size = 8 * 4096});
    recorder.record<timed_number>(std::uint64_t{0});
    const std::uint64_t before = hand_clock::ticks;
    for (std::uint64_t i = 1; i < 14; ++i) recorder.record<timed_number>(i);
    BOOST_TEST(hand_clock::ticks - before == 3U);  // for records 4, 8 and 12
    auto seen = timings(recorder);
    BOOST_REQUIRE(seen.size() == 14U);
    for (std::size_t i = 0; i < seen.size(); ++i) {
        BOOST_TEST(seen[i].interval == (i % 4 != 0), "record " << i);
        BOOST_TEST(seen[i].time == seen[i / 4 * 4].time);
        if (i % 4 == 0) {
            BOOST_TEST(seen[i].latest.value() == seen[i].time);
        } else if (i < 12) {
            BOOST_TEST(seen[i].latest.value() == seen[i / 4 * 4 + 4].time);
        } else {
            BOOST_TEST(!seen[i].latest);  // the clock was not read since
        }
    }
    recorder.flush_thread();
    seen = timings(recorder);
    BOOST_TEST(seen[13].latest.value() > seen[13].time);  // the end of the sub-buffer
}

BOOST_AUTO_TEST_CASE(a_sampled_clock_is_read_after_a_pause_a_reservation_and_at_each_sub_buffer) {
    hand_clock::step = 1;
    tr::basic_recorder<now_and_then> recorder({.size = 64 * 512, .sub_buffer_bytes = 512});
    for (std::uint64_t i = 0; i < 6; ++i) recorder.record<timed_number>(i);
    recorder.pause_ends();
    recorder.record<timed_number>(std::uint64_t{6});
    recorder.record<timed_number>(std::uint64_t{7});
    recorder.reserve<timed_number>(std::uint64_t{8}).commit();
    recorder.record<timed_number>(std::uint64_t{9});
    // 28 records a sub-buffer: number 28 begins the next, in any case.
    for (std::uint64_t i = 10; i < 60; ++i) recorder.record<timed_number>(i);
    const auto seen = timings(recorder);
    BOOST_REQUIRE(seen.size() == 60U);
    for (const std::size_t exact : {0U, 4U, 6U, 8U, 12U, 28U, 32U, 56U}) {
        BOOST_TEST(!seen[exact].interval, "record " << exact);
    }
    for (const std::size_t bounded : {1U, 5U, 7U, 9U, 27U, 29U, 57U}) {
        BOOST_TEST(seen[bounded].interval, "record " << bounded);
    }
    BOOST_TEST(seen[27].latest.value() <= seen[28].time);
    BOOST_TEST(seen[27].latest.value() > seen[27].time);
}

BOOST_AUTO_TEST_CASE(a_sampled_time_never_goes_back_when_the_high_half_changes) {
    hand_clock::step = 0x6000'0000;
    tr::basic_recorder<now_and_then> recorder({.size = 64 * 512, .sub_buffer_bytes = 512});
    for (std::uint64_t i = 0; i < 300; ++i) recorder.record<timed_number>(i);
    hand_clock::step = 1;
    const auto seen = timings(recorder);
    BOOST_REQUIRE(seen.size() == 300U);
    for (std::size_t i = 1; i < seen.size(); ++i) {
        BOOST_TEST(seen[i].time >= seen[i - 1].time);
        if (seen[i].interval) BOOST_TEST(seen[i].latest.value_or(~0ULL) >= seen[i].time);
    }
}

// Reading the other clocks is dear where the caches have lost what a claim needs; then it is left
// to other claims, but not for ever.
BOOST_AUTO_TEST_CASE(clocks_are_compared_by_claims_that_are_quick) {
    hand_clock::ticks = edge;
    hand_clock::step = 1;
    tr::basic_recorder<by_hand> recorder({.size = 64 * 512, .sub_buffer_bytes = 512});
    const test::hands_on trace(recorder);
    constexpr std::uint64_t ms = 1'000'000;
    constexpr std::uint64_t quick = 1, slow = 1000;  // ticks a reading: half a microsecond is 500
    // Fills a sub-buffer of 28 records, so that one of them claims. Returns how often the clocks
    // were compared until then.
    const auto claim_after = [&](std::uint64_t ticks, std::uint64_t step) {
        hand_clock::ticks += ticks;
        hand_clock::step = step;
        for (std::uint64_t i = 0; i < 28; ++i) recorder.record<timed_number>(i);
        hand_clock::step = 1;
        return trace.ring().clock_cursor.load(tr::relaxed);
    };
    BOOST_TEST(claim_after(0, quick) == 1U);  // as it was set up
    BOOST_TEST(claim_after(ms / 2, quick) == 1U);
    BOOST_TEST(claim_after(ms, quick) == 2U);
    BOOST_TEST(claim_after(ms * 2, slow) == 2U);
    BOOST_TEST(claim_after(ms * 10, slow) == 2U);
    BOOST_TEST(claim_after(0, quick) == 2U);   // put off for a 32nd of 2 ms
    BOOST_TEST(claim_after(ms, quick) == 3U);  // and then after 2 ms, and 4
    BOOST_TEST(claim_after(ms, quick) == 3U);
    BOOST_TEST(claim_after(ms * 100, slow) == 3U);
    BOOST_TEST(claim_after(ms * 30, slow) == 4U);
}

BOOST_AUTO_TEST_CASE(a_claim_within_a_long_tick_is_quick) {
    hand_clock::ticks = edge;
    hand_clock::step = 0;
    tr::basic_recorder<by_coarse> recorder({.size = 64 * 512, .sub_buffer_bytes = 512});
    const test::hands_on trace(recorder);
    for (std::uint64_t i = 0; i < 28; ++i) recorder.record<timed_number>(i);
    BOOST_TEST(trace.ring().clock_cursor.load(tr::relaxed) == 1U);
    hand_clock::ticks += 2000;
    recorder.record<timed_number>(std::uint64_t{28});
    BOOST_TEST(trace.ring().clock_cursor.load(tr::relaxed) == 2U);
    hand_clock::step = 1;
}

BOOST_AUTO_TEST_SUITE_END()
