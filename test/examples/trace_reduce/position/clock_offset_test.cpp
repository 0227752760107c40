// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Two machines whose clocks differ by a known amount, and messages with random delays between
/// them: what is estimated is never further off than it says.

#include <cstdint>
#include <cstdlib>
#include <limits>
#include <random>

#include <boost/test/unit_test.hpp>

#include "trace_reduce/position/clock_offset.hpp"

BOOST_AUTO_TEST_SUITE(clock_offsets)

using trace_reduce::clock_offset;
using verdict = clock_offset::verdict;

namespace {

BOOST_AUTO_TEST_CASE(estimates_are_within_what_they_say) {
    std::mt19937_64 random(1);
    const auto below = [&random](std::int64_t limit) {
        return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(limit));
    };
    for (int run = 0; run < 2000; ++run) {
        const std::int64_t ahead = below(2'000'000'000) - 1'000'000'000;
        const std::int64_t least_forth = below(100'000);  // routes differ by direction
        const std::int64_t least_back = below(100'000);
        const std::int64_t misread = below(500);
        clock_offset found(static_cast<std::uint64_t>(2 * misread));
        std::int64_t now = 1'700'000'000'000'000'000;
        std::int64_t shortest_forth = std::numeric_limits<std::int64_t>::max();
        std::int64_t shortest_back = shortest_forth;
        const auto read = [&](std::int64_t time) {
            return time + below(2 * misread + 1) - misread;
        };
        for (std::int64_t i = 1 + below(200); i >= 0; --i) {
            now += below(1'000'000);
            const bool forth = i == 0 || (i != 1 && below(2) == 0);  // at least one each way
            const std::int64_t delay = (forth ? least_forth : least_back) + below(1'000'000);
            if (forth) {
                found.forth(read(now), read(now + delay + ahead));
                shortest_forth = std::min(shortest_forth, delay);
            } else {
                found.back(read(now + ahead), read(now + delay));
                shortest_back = std::min(shortest_back, delay);
            }
        }
        BOOST_TEST_REQUIRE((found.state() == verdict::known));
        const std::int64_t off = std::abs(found.ahead() - ahead);
        BOOST_TEST(off <= static_cast<std::int64_t>(*found.uncertainty()));
        // And no less sure than the shortest delays allow.
        BOOST_TEST(
            *found.uncertainty() <=
            static_cast<std::uint64_t>((shortest_forth + shortest_back + 1) / 2 + 4 * misread));
        BOOST_TEST(*found.at_least() <= ahead);
        BOOST_TEST(*found.at_most() >= ahead);
    }
}

BOOST_AUTO_TEST_CASE(the_tightest_pair_of_each_direction_counts) {
    clock_offset found;
    found.forth(1000, 6000);  // at most 5000 ahead
    found.forth(2000, 5500);  // at most 3500
    found.forth(3000, 9000);
    found.back(9000, 7000);    // at least 2000
    found.back(12'000, 9000);  // at least 3000
    found.back(12'000, 12'000);
    BOOST_TEST((found.state() == verdict::known));
    BOOST_TEST(found.ahead() == 3250);
    BOOST_TEST(*found.uncertainty() == 250U);
    BOOST_TEST(found.forth() == 3U);
    BOOST_TEST(found.back() == 3U);
}

BOOST_AUTO_TEST_CASE(one_direction_gives_a_bound_and_moves_no_more_than_it_must) {
    clock_offset none;
    BOOST_TEST((none.state() == verdict::unknown));
    BOOST_TEST(none.ahead() == 0);
    clock_offset ahead;
    ahead.forth(0, 700);
    BOOST_TEST((ahead.state() == verdict::bounded));
    BOOST_TEST(*ahead.at_most() == 700);
    BOOST_TEST(!ahead.at_least());
    BOOST_TEST(!ahead.uncertainty());
    BOOST_TEST(ahead.ahead() == 0);
    clock_offset behind;  // received before it was sent, by the uncorrected clocks
    behind.forth(1000, 300);
    BOOST_TEST(behind.ahead() == -700);
    clock_offset back;
    back.back(900, 100);
    BOOST_TEST(*back.at_least() == 800);
    BOOST_TEST(back.ahead() == 800);
}

BOOST_AUTO_TEST_CASE(bounds_that_cross_are_a_contradiction) {
    clock_offset found(10);
    found.forth(0, 100);
    found.back(500, 0);
    BOOST_TEST((found.state() == verdict::contradictory));
    BOOST_TEST(found.contradiction() == 380U);
    BOOST_TEST(!found.uncertainty());
    BOOST_TEST(found.ahead() == 0);
}

BOOST_AUTO_TEST_CASE(times_out_of_all_bounds_do_no_harm) {
    constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    clock_offset found(~std::uint64_t{0});
    found.forth(least, most);
    found.back(least, most);
    BOOST_TEST((found.state() == verdict::known));
    BOOST_TEST(*found.uncertainty() == std::uint64_t{1} << 63);
    clock_offset crossed;
    crossed.forth(most, least);
    crossed.back(most, least);
    BOOST_TEST((crossed.state() == verdict::contradictory));
    BOOST_TEST(crossed.contradiction() == ~std::uint64_t{0});
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
