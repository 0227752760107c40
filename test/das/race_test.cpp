// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// DAS tracing by several processors concurrently. Where an interleaving matters it is forced: the
// other processor acts from inside the first one's swap, between the fetch of current and the
// exchange.

#include <array>
#include <barrier>
#include <cstdint>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "das/storage.hpp"

BOOST_AUTO_TEST_SUITE(das_race)

using namespace das_test;

// Vector D12.
BOOST_AUTO_TEST_CASE(who_loses_the_swap_takes_the_entry_after_the_other_ones) {
    guest g;
    g.controls(0x00010000, 0x00010000, 0x00010060);
    watched_memory a{g.memory()};
    a.before_swap = [&](unsigned attempt) {
        if (attempt > 1) return;
        BOOST_TEST(g.current() == 0x00010000U);  // which is what A has fetched
        auto b = g.memory();
        BOOST_TEST((das::trace(b, numbered(0xB)) == trace_result::at(0x00010020)));
    };
    BOOST_TEST((das::trace(a, numbered(0xA)) == trace_result::at(0x00010040)));
    BOOST_TEST(g.current() == 0x00010040U);
    BOOST_TEST((g.entry(0x00010020) == numbered(0xB)));
    BOOST_TEST((g.entry(0x00010040) == numbered(0xA)));
}

BOOST_AUTO_TEST_CASE(the_swap_is_tried_until_nobody_comes_between) {
    guest g;
    g.controls(0x0000FFE0, 0x00010000, 0x00010200);
    watched_memory a{g.memory()};
    a.before_swap = [&](unsigned attempt) {
        if (attempt > 7) return;
        auto b = g.memory();
        BOOST_TEST_REQUIRE(das::trace(b, numbered(attempt)).traced());
    };
    BOOST_TEST((das::trace(a, numbered(100)) == trace_result::at(0x000100E0)));
    for (std::uint32_t i = 0; i < 7; ++i)
        BOOST_TEST((g.entry(0x00010000 + 32 * i) == numbered(i + 1)));
    BOOST_TEST((g.entry(0x000100E0) == numbered(100)));
}

BOOST_AUTO_TEST_CASE(a_retry_repeats_from_the_addition_and_tests_the_new_entry_for_access) {
    guest g;
    g.controls(0x00010000, 0x00010000, 0x00010060);
    watched_memory a{g.memory()};
    a.before_swap = [&](unsigned attempt) {
        if (attempt == 1) g.put(header, 0x00010020);
    };
    BOOST_TEST_REQUIRE(das::trace(a, numbered(1)).traced());
    const std::vector<std::string> expected{"test store 010020+32", "swap 020008+4",
                                            "test store 010040+32", "swap 020008+4",
                                            "store 010040+32",      "serialize"};
    BOOST_TEST_REQUIRE(a.asked.size() == 8 + expected.size());
    const std::vector<std::string> end{a.asked.begin() + 8, a.asked.end()};
    BOOST_TEST(end == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(whether_a_retry_sees_new_bounds_is_the_choice_that_was_named) {
    // While A is between its fetch and its swap, B traces and then shortens the table by an entry.
    const auto race = [](auto bounds) {
        guest g;
        g.controls(0x00010000, 0x00010000, 0x00010060);
        watched_memory a{g.memory()};
        a.before_swap = [&](unsigned attempt) {
            if (attempt > 1) return;
            auto b = g.memory();
            BOOST_TEST_REQUIRE(das::trace(b, numbered(0xB)).traced());
            g.put(header + 4, 0x0000FFC0);
            g.put(header + 8, 0x00010040);
        };
        return das::trace<decltype(bounds)>(a, numbered(0xA));
    };
    BOOST_TEST((race(das::fetch_bounds_once{}) == trace_result::at(0x00010040)));
    BOOST_TEST((race(das::fetch_bounds_on_each_try{}) == trace_result::at(0x0000FFC0)));
}

BOOST_AUTO_TEST_CASE(an_exception_on_a_retry_leaves_current_as_the_other_one_made_it) {
    const guest_region last_entry{0x00010040, 32, region::segment_protected};
    guest g;
    g.controls(0x00010000, 0x00010000, 0x00010060);
    watched_memory a{g.memory({&last_entry, 1})};
    a.before_swap = [&](unsigned) { g.put(header, 0x00010020); };
    BOOST_TEST((das::trace(a, numbered(1)) ==
                trace_result::failed(program_exception::protection, 0x00010040)));
    BOOST_TEST(g.current() == 0x00010020U);
    BOOST_TEST((g.entry(0x00010020) == record::das_entry{}));

    g.controls(0x00010000, 0x00010000, 0x00010060);
    watched_memory again{g.memory()};
    again.before_swap = [&](unsigned) { g.put(header, 0x00010004); };
    BOOST_TEST((das::trace(again, numbered(1)) ==
                trace_result::failed(program_exception::specification, 0x00010024)));
    BOOST_TEST(g.current() == 0x00010004U);
}

BOOST_AUTO_TEST_CASE(a_swap_compares_the_value_so_a_whole_lap_in_between_is_not_noticed) {
    guest g;
    g.controls(0x00010000, 0x00010000, 0x00010060);
    watched_memory a{g.memory()};
    a.before_swap = [&](unsigned attempt) {
        if (attempt > 1) return;
        auto b = g.memory();
        for (std::uint32_t i = 0; i < 3; ++i)
            BOOST_TEST_REQUIRE(das::trace(b, numbered(i)).traced());
    };
    BOOST_TEST((das::trace(a, numbered(0xA)) == trace_result::at(0x00010020)));
    BOOST_TEST((g.entry(0x00010020) == numbered(0xA)));
}

namespace {

// Meets the others between fetch and swap, once for each entry to be traced, while enabled. When
// they part, all have fetched current and one value of it is stored, so one swap at most succeeds:
// of n processors at least n - 1 fail once.
struct meeting_memory : guest_memory {
    std::barrier<>* meet = nullptr;
    std::uint32_t failed = 0;

    bool swap(std::uint32_t address, std::uint32_t& expected, std::uint32_t word) {
        if (auto* const others = std::exchange(meet, nullptr)) others->arrive_and_wait();
        const bool done = guest_memory::swap(address, expected, word);
        failed += done ? 0 : 1;
        return done;
    }
};

struct by_one_thread {
    std::vector<std::uint32_t> addresses;
    std::uint32_t failed = 0;
};

// `Threads` threads trace `each` instructions, the first `met` of them together and the others
// freely. Entries are numbered thread * each + i + 1.
template <std::size_t Threads>
std::array<by_one_thread, Threads> trace_from_threads(guest& g, std::uint32_t met,
                                                      std::uint32_t each) {
    std::array<by_one_thread, Threads> work;
    std::barrier<> meet{Threads};
    std::vector<std::thread> threads;
    for (std::uint32_t t = 0; t < Threads; ++t)
        threads.emplace_back([&, t] {
            meeting_memory memory{g.memory()};
            for (std::uint32_t i = 0; i < each; ++i) {
                if (i < met) memory.meet = &meet;
                work[t].addresses.push_back(das::trace(memory, numbered(t * each + i + 1)).address);
            }
            work[t].failed = memory.failed;
        });
    for (auto& thread : threads) thread.join();
    return work;
}

}  // namespace

BOOST_AUTO_TEST_CASE(four_processors_never_take_the_same_entry_twice) {
    constexpr std::uint32_t met = 500, each = 10'000, threads = 4, first = 0x00030000;
    guest g{first + 32 * each * threads};
    g.controls(first - 32, first, first + 32 * each * threads);
    const auto work = trace_from_threads<threads>(g, met, each);

    std::set<std::uint32_t> taken;
    std::uint32_t contended = 0, wrong = 0;
    for (std::uint32_t t = 0; t < threads; ++t) {
        contended += work[t].failed;
        for (std::uint32_t i = 0; i < each; ++i) {
            const auto address = work[t].addresses[i];
            taken.insert(address);
            wrong += g.entry(address) == numbered(t * each + i + 1) ? 0 : 1;
        }
    }
    BOOST_TEST(taken.size() == each * threads);
    BOOST_TEST(*taken.begin() == first);
    BOOST_TEST(*taken.rbegin() == first + 32 * (each * threads - 1));
    BOOST_TEST(wrong == 0U);
    BOOST_TEST(g.current() == *taken.rbegin());
    BOOST_TEST(contended >= met * (threads - 1));
}

BOOST_AUTO_TEST_CASE(in_a_small_table_every_lap_uses_every_entry_once) {
    constexpr std::uint32_t met = 500, each = 8'000, entries = 10;
    guest g;
    g.controls(0x0000FFE0, 0x00010000, 0x00010000 + 32 * entries);
    const auto work = trace_from_threads<2>(g, met, each);

    std::array<std::uint32_t, entries> used{};
    for (const auto& thread : work)
        for (const auto address : thread.addresses) ++used.at((address - 0x00010000) / 32);
    for (const auto count : used) BOOST_TEST(count == 2 * each / entries);
    BOOST_TEST(g.current() == 0x00010000 + 32 * (entries - 1));
    // But for the last meeting: who is late at its swap may find the other a whole lap further.
    BOOST_TEST(work[0].failed + work[1].failed >= met - 1);
}

BOOST_AUTO_TEST_SUITE_END()
