// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// What address traces do over time: their working sets and strides.

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include <address_trace/analysis/analyses.hpp>
#include <address_trace/analysis/strides.hpp>
#include <address_trace/analysis/working_set.hpp>
#include "address_streams.hpp"

BOOST_AUTO_TEST_SUITE(address_time)

namespace {

using namespace address_streams;
using address_trace::distinct_count;

BOOST_AUTO_TEST_CASE(different_numbers_are_counted_to_within_the_error_that_is_stated) {
    BOOST_TEST(distinct_count().estimate() == 0.0);
    for (const std::uint64_t count : {1U, 10U, 100U, 1000U, 5000U, 10'000U, 20'000U, 1'000'000U}) {
        double squares = 0;
        constexpr int tries = 10;
        for (int i = 0; i < tries; ++i) {
            distinct_count counted;
            std::mt19937_64 random(static_cast<std::uint64_t>(i) + 1);
            for (std::uint64_t k = 0; k < count; ++k) {
                const std::uint64_t hash = random();
                counted.add(hash);
                counted.add(hash);
            }
            const double wrong = counted.estimate() / static_cast<double>(count) - 1;
            BOOST_TEST(std::abs(wrong) < 4 * distinct_count::standard_error);
            squares += wrong * wrong;
        }
        BOOST_TEST(std::sqrt(squares / tries) < 1.7 * distinct_count::standard_error);
    }
}

struct naive_interval {
    std::uint64_t references = 0, time = 0;
    std::set<std::uint64_t> lines, pages;
};

BOOST_AUTO_TEST_CASE(working_sets_are_those_of_sets_in_intervals_that_join_in_pairs) {
    for (const auto& [name, all] : patterns(40'000)) {
        BOOST_TEST_CONTEXT(name) {
            address_trace::analyses chosen;
            const auto& set = chosen.make<address_trace::working_set>(64U, 4096U, 400U, 16U);
            feed(chosen, all);
            // 32,000 loads and stores, about.
            BOOST_TEST(set.interval() == 3200U);
            std::vector<naive_interval> expected;
            for (std::size_t i = 0; i < all.size(); ++i) {
                if (all[i].kind == reference_kind::block) continue;
                if (expected.empty() || expected.back().references == set.interval())
                    expected.push_back({0, i / 1000 * 1000, {}, {}});
                auto& in = expected.back();
                ++in.references;
                for (const std::uint64_t at : {all[i].address, all[i].address + all[i].size - 1}) {
                    in.lines.insert(at / 64);
                    in.pages.insert(at / 4096);
                }
            }
            const auto found = set.intervals();
            BOOST_REQUIRE(found.size() == expected.size());
            naive_interval total;
            const auto is_near = [](double about, std::size_t exact) {
                return std::abs(about - static_cast<double>(exact)) <=
                       4 * distinct_count::standard_error * static_cast<double>(exact) + 0.5;
            };
            for (std::size_t i = 0; i < found.size(); ++i) {
                BOOST_TEST(found[i].references == expected[i].references);
                BOOST_TEST(found[i].time == expected[i].time);
                BOOST_TEST(is_near(found[i].lines, expected[i].lines.size()));
                BOOST_TEST(is_near(found[i].pages, expected[i].pages.size()));
                total.references += expected[i].references;
                total.lines.merge(expected[i].lines);
                total.pages.merge(expected[i].pages);
            }
            BOOST_TEST(set.total().references == total.references);
            BOOST_TEST(is_near(set.total().lines, total.lines.size()));
            BOOST_TEST(is_near(set.total().pages, total.pages.size()));
        }
    }
    address_trace::analyses chosen;
    const auto& set = chosen.make<address_trace::working_set>();
    feed(chosen, {block(code)});
    BOOST_TEST(set.intervals().empty());
    BOOST_TEST(set.total().references == 0U);
}

// --- Strides -------------------------------------------------------------------------------------

using address_trace::stride_kind;

[[nodiscard]] std::vector<address_trace::site_strides> strides_of(
    const std::vector<std::vector<reference>>& runs) {
    address_trace::analyses chosen;
    const auto& found = chosen.make<address_trace::strides>();
    std::uint32_t thread = 0;
    for (const auto& run : runs) chosen.take({++thread, thread, run});
    return found.results();
}

BOOST_AUTO_TEST_CASE(a_site_s_stride_is_found_with_its_share) {
    struct expected {
        std::int64_t stride;
        stride_kind kind;
    };
    for (const auto& [stride, kind] :
         {expected{0, stride_kind::same}, expected{8, stride_kind::next},
          expected{-8, stride_kind::next}, expected{24, stride_kind::near},
          expected{-4096, stride_kind::far}}) {
        std::vector<reference> all;
        std::uint64_t at = data;
        // One in ten goes elsewhere, and back: two strides of ten are others.
        for (int i = 0; i < 1000; ++i) {
            all.push_back(load(i % 10 == 5 ? data + 1'000'000 : at));
            at += static_cast<std::uint64_t>(stride);
            all.push_back(block(code + 64));
            all.push_back(store(data + 77, 8, code + 5));
        }
        const auto found = strides_of({all});
        BOOST_REQUIRE(found.size() == 2U);
        BOOST_TEST(found[0].strides == 999U);
        BOOST_TEST(found[0].most == stride);
        BOOST_TEST(found[0].times == 799U);
        BOOST_TEST((found[0].kind(8) == kind));
        BOOST_TEST((found[1].kind(8) == stride_kind::same));
        BOOST_TEST(found[1].share() == 1.0);
    }
}

BOOST_AUTO_TEST_CASE(the_stride_that_most_are_is_found_among_any_number_of_others) {
    std::mt19937 random(11);
    std::vector<reference> all;
    std::uint64_t at = data, right = 0;
    for (int i = 0; i < 20'000; ++i) {
        const bool usual = random() % 100 < 40;
        right += usual;
        at += usual ? 16 : 1000 + random() % 100'000;
        all.push_back(load(at));
    }
    const auto found = strides_of({all});
    BOOST_REQUIRE(found.size() == 1U);
    BOOST_TEST(found[0].most == 16);
    BOOST_TEST(found[0].times <= right);
    BOOST_TEST(found[0].times + found[0].strides / 5 >= right);
    BOOST_TEST((found[0].kind(8) == stride_kind::irregular));
}

BOOST_AUTO_TEST_CASE(there_is_no_stride_from_one_thread_to_another) {
    std::vector<std::vector<reference>> runs;
    for (std::uint64_t thread = 0; thread < 5; ++thread) {
        runs.emplace_back();
        for (std::uint64_t i = 0; i < 3; ++i)
            runs.back().push_back(load(data + 65536 * thread + 8 * i));
    }
    const auto found = strides_of(runs);
    BOOST_REQUIRE(found.size() == 1U);
    BOOST_TEST(found[0].strides == 10U);
    BOOST_TEST(found[0].times == 10U);
    BOOST_TEST((strides_of({{load(data), load(data + 8)}})[0].kind(8) == stride_kind::single));
}

}  // namespace

BOOST_AUTO_TEST_SUITE_END()
