// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// A thousand simultaneous threads in one small recorder.

#include <boost/test/unit_test.hpp>

#include <limits.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <latch>
#include <thread>
#include <vector>

#include <trace_ring/recorder/recorder.hpp>

#include <recorder/account.hpp>
#include <recorder/crowd.hpp>
#include <recorder/scratch.hpp>

BOOST_AUTO_TEST_SUITE(a_crowd)

namespace tr = trace_ring;
using tr::loss_cause;

using test::crowd;
using test::own_memory;

BOOST_AUTO_TEST_CASE(a_thousand_threads_at_once_are_read_back_or_counted) {
    const std::uint64_t threads = test::scaled(1000, 100);
    for (const bool wave_again : {false, true}) {
        // 64 sub-buffers, of which half may be held, and lanes enough.
        tr::recorder recorder({.size = 64 * 512, .sub_buffer_bytes = 512, .lanes = 1024});
        const crowd<> all(recorder, threads);
        BOOST_REQUIRE(all.members().size() >= 100U);
        BOOST_TEST(recorder.statistics().held <= 32U);
        const auto seen = test::account_of(recorder);
        BOOST_TEST(seen.strange == 0U);
        BOOST_TEST(recorder.statistics().refused_without_lane == 0U);
        std::uint64_t kept = 0;
        for (const auto& one : all.members()) {
            // In order, and no more of them than it recorded; without gaps except for those
            // counted.
            const auto numbers = seen.of(one.who);
            BOOST_REQUIRE(numbers.size() <= one.recorded);
            BOOST_REQUIRE(std::is_sorted(numbers.begin(), numbers.end()));
            kept += one.recorded;
        }
        const std::uint64_t tried = all.members().size() * crowd<>::each;
        BOOST_TEST((tried - kept) * 20 <= tried);
        BOOST_TEST(seen.lost()[loss_cause::refused] == tried - kept);
        BOOST_TEST(seen.read() + seen.lost()[loss_cause::overwritten] == kept);
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

namespace {

/// Advances once in 64 readings, so that records in several lanes have the same time.
struct coarse {
    using family = tr::family::clock;
    static constexpr std::uint32_t kind = 78;
    static std::uint64_t now() noexcept { return readings.fetch_add(1) / 64; }
    static bool usable() noexcept { return true; }
    static double ticks_per_second() noexcept { return 1e6; }
    static inline std::atomic<std::uint64_t> readings{64};
};
struct by_coarse_clock : tr::policies<coarse> {};

}  // namespace

BOOST_AUTO_TEST_CASE(a_thread_that_takes_another_lane_within_a_tick_keeps_its_order) {
    // Few sub-buffers, so that threads release theirs after each record and adopt others.
    tr::basic_recorder<by_coarse_clock> recorder(
        {.size = 64 * 512, .sub_buffer_bytes = 512, .lanes = 1024});
    const crowd<by_coarse_clock> all(recorder, test::scaled(1000, 200));
    const auto seen = test::account_of(recorder);
    std::uint64_t disordered = 0;
    for (const auto& one : all.members()) {
        const auto numbers = seen.of(one.who);
        disordered += std::is_sorted(numbers.begin(), numbers.end()) ? 0 : 1;
    }
    BOOST_TEST(disordered == 0U);
}

BOOST_AUTO_TEST_CASE(a_thousand_threads_share_the_last_of_sixty_four_lanes) {
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
    const auto counters = recorder.statistics();
    BOOST_TEST(seen.strange == 0U);
    // Lanes for one record each are so few that all may be in the hands of threads that do not run.
    BOOST_TEST((tried - kept) * 20 <= tried);
    BOOST_TEST(seen.lost()[loss_cause::refused] == tried - kept);
    BOOST_TEST(seen.without_lane[loss_cause::refused] >= counters.refused_without_lane);
    BOOST_TEST((counters.refused_without_lane == 0) == (counters.recommended_lanes == 0));
    BOOST_TEST(seen.read() + seen.lost()[loss_cause::overwritten] == kept);
    BOOST_TEST(seen.read() + seen.lost().total() == tried);
    BOOST_TEST(counters.held == 0U);
}

BOOST_AUTO_TEST_CASE(threads_without_a_lane_are_counted_and_the_least_size_for_them_is_told) {
    // The only lane is the first thread's as long as it lives.
    constexpr std::uint64_t threads = 40;
    tr::recorder recorder({.size = 64 * 512, .sub_buffer_bytes = 512, .lanes = 1});
    test::account seen;
    std::uint64_t kept = 0;
    tr::recorder_statistics counters;
    {
        const crowd<> all(recorder, threads);
        for (const auto& one : all.members()) kept += one.recorded;
        seen = test::account_of(recorder);
        counters = recorder.statistics();
    }
    BOOST_TEST(kept == crowd<>::each);
    BOOST_TEST(seen.without_lane[loss_cause::refused] == (threads - 1) * crowd<>::each);
    BOOST_TEST(counters.refused_without_lane == (threads - 1) * crowd<>::each);
    // The thread that runs the tests may count, too.
    BOOST_TEST((counters.writers == threads || counters.writers == threads + 1));
    BOOST_TEST(counters.recommended_size == 128U * 512);             // of which 3/8 are 48
    BOOST_TEST(counters.recommended_lanes == counters.writers + 5);  // which are lent
    BOOST_TEST(recorder.statistics().held == 0U);
    // The recommended size is enough: each has a lane and a sub-buffer to itself.
    tr::recorder again({.size = counters.recommended_size,
                        .sub_buffer_bytes = 512,
                        .lanes = static_cast<std::uint32_t>(counters.recommended_lanes)});
    const crowd<> all(again, threads);
    BOOST_TEST(again.statistics().held == threads);
    BOOST_TEST(test::account_of(again).lost().total() == 0U);
}

BOOST_AUTO_TEST_CASE(three_hundred_threads_of_two_records_lose_none_of_them_in_a_mebibyte) {
    for (const bool at_once : {false, true}) {
        constexpr std::uint64_t threads = 300;
        tr::recorder recorder({.size = 1 << 20});
        std::atomic<std::uint64_t> kept{0};
        std::latch last(threads);
        std::vector<std::thread> all;
        for (std::uint64_t t = 0; t < threads; ++t) {
            all.emplace_back([&, t] {
                for (std::uint64_t n = 0; n < 2; ++n) kept += test::put(recorder, t, n) ? 1 : 0;
                if (at_once) last.arrive_and_wait();  // none ends before the last has recorded
            });
        }
        for (auto& each : all) each.join();
        BOOST_TEST(kept.load() == 2 * threads);
        BOOST_TEST(recorder.statistics().held == 0U);
        const auto seen = test::account_of(recorder);
        BOOST_TEST(seen.read() == 2 * threads);
        BOOST_TEST(seen.lost().total() == 0U);
        BOOST_TEST(seen.strange == 0U);
    }
}

BOOST_AUTO_TEST_CASE(the_default_size_has_a_lane_and_a_sub_buffer_for_each_of_a_thousand_threads) {
    const std::uint64_t threads = test::scaled(1000, 100);
    tr::recorder recorder(tr::recorder_options{});
    {
        const crowd<> all(recorder, threads);
        BOOST_TEST(recorder.statistics().held == all.members().size());
        const auto seen = test::account_of(recorder);
        BOOST_TEST(seen.lanes.size() == all.members().size());
        BOOST_TEST(seen.read() == all.members().size() * crowd<>::each);
        BOOST_TEST(seen.lost().total() == 0U);
    }
    BOOST_TEST(recorder.statistics().held == 0U);
}

namespace {

/// Records in each round of a thread's destructors, the last of which the recorder does not see.
struct late {
    tr::recorder& recorder;
    pthread_key_t key{};
    std::atomic<std::uint64_t> kept{0};

    static void record(void* argument) {
        auto& self = *static_cast<late*>(argument);
        self.kept += test::put(self.recorder, 7, 0) ? 1 : 0;
        ::pthread_setspecific(self.key, argument);
    }
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_thread_that_has_ended_holds_nothing_however_late_it_recorded) {
    // Its run-time is gone in the last round of a thread's destructors, in which this records.
    if (test::under_tsan) return;
    tr::recorder recorder({.size = 8 * 512, .sub_buffer_bytes = 512});
    late all{recorder};
    BOOST_REQUIRE(::pthread_key_create(&all.key, &late::record) == 0);
    constexpr std::uint64_t threads = 20;
    for (std::uint64_t t = 0; t < threads; ++t) {
        std::thread([&] {
            ::pthread_setspecific(all.key, &all);
            all.kept += test::put(recorder, t, 0) ? 1 : 0;
        }).join();
        BOOST_TEST(recorder.statistics().held == 0U);
    }
    ::pthread_key_delete(all.key);
    BOOST_TEST(all.kept.load() == threads * (1 + PTHREAD_DESTRUCTOR_ITERATIONS));
    const auto seen = test::account_of(recorder);
    BOOST_TEST(seen.read() + seen.lost()[loss_cause::overwritten] == all.kept.load());
    BOOST_TEST(seen.lost().total() == seen.lost()[loss_cause::overwritten]);
}

BOOST_AUTO_TEST_SUITE_END()
