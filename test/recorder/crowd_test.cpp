// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// A thousand threads at once in one small recorder.

#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <cstdint>
#include <map>

#include <trace_ring/recorder/recorder.hpp>

#include <recorder/account.hpp>
#include <recorder/crowd.hpp>
#include <recorder/scratch.hpp>

BOOST_AUTO_TEST_SUITE(a_crowd)

namespace tr = trace_ring;
using tr::loss_cause;

using test::crowd;
using test::own_memory;

BOOST_AUTO_TEST_CASE(a_thousand_threads_at_once_read_back_or_counted_lane_by_lane) {
    const std::uint64_t threads = test::scaled(1000, 100);
    for (const bool wave_again : {false, true}) {
        // 64 sub-buffers, of which half may be held, and a lane for each thread.
        tr::recorder recorder({.size = 64 * 512, .sub_buffer_bytes = 512, .lanes = 1024});
        const crowd<> all(recorder, threads);
        BOOST_REQUIRE(all.members().size() >= 100U);
        BOOST_TEST(recorder.statistics().held <= 32U);
        const auto seen = test::account_of(recorder);
        BOOST_TEST(seen.strange == 0U);
        BOOST_TEST(seen.without_lane.total() == 0U);
        BOOST_TEST(seen.lanes.size() == all.members().size());
        std::map<std::uint32_t, const test::lane_account*> by_thread;
        for (const auto& [number, lane] : seen.lanes) by_thread[lane.thread] = &lane;
        std::uint64_t kept = 0;
        for (const auto& one : all.members()) {
            BOOST_REQUIRE(by_thread.count(one.thread) == 1U);
            const test::lane_account& lane = *by_thread[one.thread];
            BOOST_REQUIRE(lane.total() == crowd<>::each);
            BOOST_REQUIRE(lane.lost[loss_cause::refused] == crowd<>::each - one.recorded);
            BOOST_REQUIRE(lane.numbers.size() + lane.lost[loss_cause::overwritten] == one.recorded);
            if (!lane.numbers.empty()) BOOST_REQUIRE(lane.who == one.who);
            kept += one.recorded;
        }
        BOOST_TEST(kept >= 32U * test::fit_in_512);
        BOOST_TEST(seen.read() + recorder.statistics().overwritten == kept);
        if (!own_memory) continue;
        // Two pages a thread, which are used again by the threads that come after; and as much of
        // each stack as the first record needs.
        constexpr std::uint64_t slack = 1 << 20;
        const std::uint64_t first = wave_again ? 0 : threads * tr::impl::node_bytes;
        BOOST_TEST(all.mapped() <= first + slack);
        BOOST_TEST(all.resident() <= first + threads * (16 << 10) + slack);
    }
}

BOOST_AUTO_TEST_CASE(threads_without_a_lane_are_counted_too) {
    const std::uint64_t threads = test::scaled(1000, 100);
    tr::recorder recorder({.size = 64 * 512, .sub_buffer_bytes = 512, .lanes = 64});
    std::uint64_t tried = 0;
    std::uint64_t kept = 0;
    test::account seen;
    {
        const crowd<> all(recorder, threads);
        BOOST_REQUIRE(all.members().size() >= 100U);
        tried = all.members().size() * crowd<>::each;
        for (const auto& one : all.members()) kept += one.recorded;
        seen = test::account_of(recorder);
    }
    BOOST_TEST(seen.strange == 0U);
    BOOST_TEST(seen.lanes.size() == 64U);
    for (const auto& [number, lane] : seen.lanes) BOOST_TEST(lane.total() == crowd<>::each);
    BOOST_TEST(seen.without_lane[loss_cause::refused] == tried - 64U * crowd<>::each);
    BOOST_TEST(seen.without_lane.total() == recorder.statistics().refused_without_lane);
    BOOST_TEST(seen.read() + seen.lost()[loss_cause::overwritten] == kept);
    BOOST_TEST(seen.read() + seen.lost().total() == tried);
    BOOST_TEST(recorder.statistics().held == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
