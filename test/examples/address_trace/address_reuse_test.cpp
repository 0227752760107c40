// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Reuse distances of address traces, exact and of a sample.

#include <algorithm>
#include <bit>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdint>
#include <list>
#include <random>
#include <vector>

#include <address_trace/analysis/analyses.hpp>
#include <address_trace/analysis/cache_misses.hpp>
#include <address_trace/analysis/reuse_distance.hpp>
#include "address_streams.hpp"

BOOST_AUTO_TEST_SUITE(address_reuse)

namespace {

using namespace address_streams;
using address_trace::distance_histogram;

/// The lines as a stack, searched from its top.
class naive_stack {
public:
    void use(std::uint64_t line) {
        std::uint64_t distance = 0;
        for (auto at = lines_.begin(); at != lines_.end(); ++at, ++distance) {
            if (*at != line) continue;
            lines_.erase(at);
            lines_.push_front(line);
            ++again[static_cast<std::size_t>(std::bit_width(distance))];
            return;
        }
        lines_.push_front(line);
        ++first;
    }

    std::uint64_t first = 0;
    std::vector<std::uint64_t> again = std::vector<std::uint64_t>(distance_histogram::buckets);

private:
    std::list<std::uint64_t> lines_;
};

[[nodiscard]] distance_histogram distances(const std::vector<reference>& all, std::uint64_t line,
                                           std::size_t most_lines) {
    address_trace::analyses chosen;
    const auto& found = chosen.make<address_trace::reuse_distance>(line, most_lines);
    feed(chosen, all);
    return found.result();
}

BOOST_AUTO_TEST_CASE(distances_are_exactly_those_of_a_naive_stack) {
    for (const auto& [name, all] : patterns(5000)) {
        for (const std::uint64_t line : {64U, 16U, 4096U, 8U}) {
            BOOST_TEST_CONTEXT(name << ", lines of " << line) {
                naive_stack stack;
                double references = 0;
                for (const reference& each : all) {
                    if (each.kind == reference_kind::block) continue;
                    for (std::uint64_t at = each.address / line;
                         at <= (each.address + each.size - 1) / line; ++at) {
                        stack.use(at);
                        ++references;
                    }
                }
                const auto found = distances(all, line, 1u << 20);
                BOOST_TEST(found.exact());
                BOOST_TEST(found.references == references);
                BOOST_TEST(found.first == static_cast<double>(stack.first));
                for (std::size_t i = 0; i < stack.again.size(); ++i)
                    BOOST_REQUIRE(found.again[i] == static_cast<double>(stack.again[i]));
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(the_curve_is_what_fully_associative_caches_miss) {
    for (const auto& [name, all] : patterns(20'000)) {
        BOOST_TEST_CONTEXT(name) {
            const auto found = distances(all, 8, 1u << 20);
            // Of references that lie on one line each: a cache counts one on two lines once.
            std::vector<reference> aligned = all;
            for (reference& each : aligned) each.size = 1;
            const auto of_aligned = distances(aligned, 64, 1u << 20);
            for (const std::size_t power : {0U, 2U, 4U, 5U, 9U}) {
                address_trace::analyses chosen;
                const std::string lines = std::to_string(1u << power);
                const auto& misses = chosen.make<address_trace::cache_misses>(
                    address_trace::parse_cache_levels("DTLB=" + lines + ",64," + lines));
                feed(chosen, aligned);
                const auto of_cache = misses.results()[0].all();
                BOOST_TEST(std::llround(of_aligned.miss_ratio(power) * of_aligned.references) ==
                           static_cast<long long>(of_cache.misses));
                BOOST_TEST(of_aligned.standard_error(power) == 0.0);
                BOOST_TEST(found.miss_ratio(power) <= 1.0);
            }
        }
    }
    BOOST_TEST(distances({}, 64, 10).miss_ratio(3) == 0.0);
}

BOOST_AUTO_TEST_CASE(a_sample_is_as_near_as_it_says) {
    // More lines than are looked at: from everywhere, from near more often, round and round.
    std::vector<stream> streams;
    streams.push_back(make("everywhere", 300'000, [](std::size_t, std::mt19937& random) {
        return random() % (1u << 20);
    }));
    streams.push_back(make("mostly near", 300'000, [](std::size_t, std::mt19937& random) {
        const auto choice = static_cast<std::uint32_t>(random());
        return (choice >> 5) % (std::uint64_t{64} << (choice % 16));
    }));
    streams.push_back(
        make("round", 300'000, [](std::size_t i, auto&) { return i * 64 % (6000 * 64); }));
    for (const auto& [name, all] : streams) {
        const auto exact = distances(all, 64, 1u << 20);
        const auto sampled = distances(all, 64, 4096);
        BOOST_TEST(!sampled.exact());
        BOOST_TEST(sampled.one_in >= 2U);
        for (std::size_t power = 0; power < 20; ++power) {
            BOOST_TEST_CONTEXT(name << ", 2^" << power << " lines") {
                const double wrong = std::abs(sampled.miss_ratio(power) - exact.miss_ratio(power));
                if (power <= 4) BOOST_TEST(wrong < 1e-9);
                BOOST_TEST(wrong < 0.05);
                BOOST_TEST(wrong <= 4 * sampled.standard_error(power) + 1e-3);
                BOOST_TEST(sampled.standard_error(power) < 0.05);
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(a_sample_stays_small) {
    address_trace::recent_lines lines;
    for (std::uint64_t i = 0; i < 500'000; ++i) {
        static_cast<void>(lines.use(i));
        if (lines.size() > 1000) lines.halve();
    }
    BOOST_TEST(lines.size() <= 1000U);
    BOOST_TEST(lines.one_in() >= 512U);
    BOOST_TEST(lines.one_in() <= 2048U);
}

}  // namespace

BOOST_AUTO_TEST_SUITE_END()
