// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Caches of threads that are kept coherent: what they count is what the protocol, written down
/// without any thought of speed, counts.

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <list>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <address_trace/analysis/analyses.hpp>
#include <address_trace/analysis/coherent_caches.hpp>
#include "address_streams.hpp"

BOOST_AUTO_TEST_SUITE(address_coherence)

namespace {

using namespace address_streams;
using address_trace::coherent_caches;
using address_trace::parse_cache_levels;

struct from_thread {
    std::uint32_t thread;
    reference what;
};

struct naive_counts {
    std::uint64_t misses = 0, by_sharing = 0, invalidated = 0, written_back = 0;
};

/// Each line of each thread with its letter, and each set with its lines, the last used first.
class naive_caches {
public:
    naive_caches(std::size_t sets, std::size_t ways) : sets_(sets), ways_(ways) {}

    void use(std::uint32_t thread, std::uint64_t line, bool takes) {
        char& mine = letter_[{thread, line}];
        naive_counts& counts = all[thread];
        if (mine == 0) mine = '-';
        const bool missed = mine == '-' || mine == 'I';
        counts.misses += missed;
        counts.by_sharing += mine == 'I';
        bool others = false;
        for (auto& [key, letter] : letter_) {
            if (key.second != line || key.first == thread || letter == '-' || letter == 'I')
                continue;
            if (!missed && !takes) continue;
            others = true;
            all[key.first].written_back += letter == 'M';
            all[key.first].invalidated += takes;
            letter = takes ? 'I' : 'S';
        }
        if (takes) {
            mine = 'M';
        } else if (missed) {
            mine = others ? 'S' : 'E';
        }
        auto& set = set_[{thread, line % sets_}];
        const auto at = std::find(set.begin(), set.end(), line);
        if (at != set.end()) {
            set.erase(at);
        } else if (set.size() == ways_) {
            // One that is invalid leaves first.
            auto leaves = std::prev(set.end());
            for (auto each = set.begin(); each != set.end(); ++each) {
                if (letter_[{thread, *each}] == 'I') leaves = each;
            }
            char& its = letter_[{thread, *leaves}];
            counts.written_back += its == 'M';
            its = '-';
            set.erase(leaves);
        }
        set.push_front(line);
    }
    std::map<std::uint32_t, naive_counts> all;

private:
    std::size_t sets_, ways_;
    std::map<std::pair<std::uint32_t, std::uint64_t>, char> letter_;
    std::map<std::pair<std::uint32_t, std::uint64_t>, std::list<std::uint64_t>> set_;
};

[[nodiscard]] std::vector<from_thread> some(std::size_t count, std::uint64_t bytes) {
    std::mt19937_64 random(11);
    std::vector<from_thread> out;
    constexpr reference_kind kinds[] = {reference_kind::load, reference_kind::load,
                                        reference_kind::store, reference_kind::update,
                                        reference_kind::failed_compare};
    std::uint32_t thread = 1;
    for (std::size_t i = 0; i < count; ++i) {
        if (random() % 5 == 0) thread = static_cast<std::uint32_t>(1 + random() % 3);
        const std::uint64_t at = data + random() % bytes;
        const auto size = static_cast<std::uint32_t>(1 + random() % 100);
        out.push_back({thread, {at, code, kinds[random() % 5], size}});
    }
    return out;
}

BOOST_AUTO_TEST_CASE(they_count_what_the_protocol_says) {
    for (const std::uint64_t bytes : {500U, 3000U, 20'000U}) {
        const auto references = some(4000, bytes);
        address_trace::analyses chosen;
        const auto& found = chosen.make<coherent_caches>(parse_cache_levels("D1=1K,64,2"));
        naive_caches naive(8, 2);
        for (const auto& [thread, each] : references) {
            feed(chosen, {each}, thread);
            for (std::uint64_t line = each.address / 64;
                 line <= (each.address + each.size - 1) / 64; ++line)
                naive.use(thread, line, each.kind != reference_kind::load);
        }
        const auto results = found.results();
        BOOST_REQUIRE(results.size() == 3U);
        for (const auto& each : results) {
            const naive_counts& expected = naive.all.at(each.thread);
            BOOST_TEST(each.misses == expected.misses);
            BOOST_TEST(each.coherence_misses == expected.by_sharing);
            BOOST_TEST(each.invalidated == expected.invalidated);
            BOOST_TEST(each.written_back == expected.written_back);
            BOOST_TEST(each.coherence_misses > 0U);
        }
    }
}

// Two threads that store to adjacent bytes of one line take it away from each other each time.
BOOST_AUTO_TEST_CASE(false_sharing_is_misses) {
    address_trace::analyses chosen;
    const auto& found = chosen.make<coherent_caches>(parse_cache_levels("D1=32K,64,8"));
    for (int i = 0; i < 100; ++i) {
        for (std::uint32_t thread = 1; thread <= 2; ++thread)
            feed(chosen, {store(data + 8 * thread), store(data + 4096 * thread)}, thread);
    }
    const auto lines = found.contended(10);
    BOOST_REQUIRE(lines.size() == 1U);
    BOOST_TEST(lines[0].address == data);
    BOOST_TEST(lines[0].invalidations == 199U);
    BOOST_TEST(lines[0].coherence_misses == 198U);
    for (const auto& each : found.results()) {
        BOOST_TEST(each.coherence_misses == 99U);
        BOOST_TEST(each.misses == 101U);
        BOOST_TEST(each.references == 200U);
    }
}

// present: forgotten
BOOST_AUTO_TEST_CASE(memory_is_bounded_and_what_is_forgotten_is_told) {
    address_trace::analyses chosen;
    const auto& found = chosen.make<coherent_caches>(parse_cache_levels("D1=16M,64,8"));
    std::vector<reference> all;
    for (std::uint64_t i = 0; i < 70'000; ++i) all.push_back(store(data + 64 * i));
    for (int i = 0; i < 3; ++i) {  // one that is taken more often
        for (std::uint32_t thread = 1; thread <= 2; ++thread) feed(chosen, {store(data)}, thread);
    }
    for (std::uint32_t thread = 1; thread <= 2; ++thread) feed(chosen, all, thread);
    BOOST_TEST(found.forgotten() > 0U);
    BOOST_TEST(found.contended(1).at(0).address == data);
    BOOST_TEST(found.results()[0].invalidated >= 70'000U);
    for (std::uint32_t thread = 10; thread < 10 + coherent_caches::most_threads; ++thread)
        feed(chosen, {load(data)}, thread);
    BOOST_TEST(found.left_out() == 2U);
}

BOOST_AUTO_TEST_CASE(what_is_no_such_cache_is_refused) {
    for (const char* const wrong :
         {"I1=32K,64,8", "D1=32K,64,8,fifo", "D1=32K,64,8+L2=1M,64,8", "D1=32K,64,8/I1=32K,64,8"}) {
        BOOST_CHECK_THROW(coherent_caches{parse_cache_levels(wrong)}, std::invalid_argument);
    }
}

}  // namespace

BOOST_AUTO_TEST_SUITE_END()
