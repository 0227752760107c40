// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// The entries of a table by its control words, compared with stepping from one to the next.

#include <cstdint>
#include <random>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <trace_ring/das/table_entries.hpp>

#include "das/storage.hpp"
#include "proof.hpp"

BOOST_AUTO_TEST_SUITE(das_table_entries)

using namespace das_test;

namespace {

constexpr std::uint64_t two_to_32 = std::uint64_t{1} << 32;

// The machine's step, in 64 bits.
std::uint64_t following(std::uint64_t current, std::uint64_t first, std::uint64_t last) {
    const std::uint64_t next = (current + 32) % two_to_32;
    return next < last ? next : first;
}

// The entries that a machine goes through from the first one on; empty if there are more than
// `most`.
std::vector<std::uint64_t> stepped(std::uint64_t first, std::uint64_t last, std::size_t most) {
    std::vector<std::uint64_t> out{first};
    for (auto at = following(first, first, last); at != first; at = following(at, first, last)) {
        if (out.size() == most) return {};
        out.push_back(at);
    }
    return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_entries_are_those_that_stepping_goes_through_from_the_oldest) {
    std::mt19937 random{84};
    const auto up_to = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    const auto control = [&] {
        auto word = up_to(3) == 0 ? 0 - 32 * up_to(6) : 32 * up_to(40);
        if (up_to(3) == 0) word += up_to(32);
        if (up_to(20) == 0) word = static_cast<std::uint32_t>(random());
        return word;
    };
    constexpr std::size_t most = 200;
    unsigned without = 0, with = 0, large = 0, carried = 0;
    const unsigned rounds = trace_ring_test::repeats(20'000);
    for (unsigned round = 0; round < rounds; ++round) {
        const std::uint32_t first = control(), last = control(), current = control();
        const das::table_entries entries({current, first, last});
        const auto expected = stepped(first, last, most);
        if (expected.empty()) {
            BOOST_TEST_REQUIRE(entries.count() > most);
            ++large;
            continue;
        }
        BOOST_TEST_REQUIRE(entries.count() == expected.size(),
                           first << ' ' << last << ' ' << current);
        std::size_t newest = expected.size();
        for (std::size_t i = 0; i < expected.size(); ++i)
            if (expected[i] == current) newest = i;
        BOOST_TEST_REQUIRE(entries.has_newest() == (newest != expected.size()));
        const std::size_t oldest = entries.has_newest() ? newest + 1 : 0;
        for (std::uint32_t i = 0; i < entries.count(); ++i)
            BOOST_TEST_REQUIRE(entries.control(i) == expected[(oldest + i) % expected.size()]);
        (entries.has_newest() ? with : without) += 1;
        carried += expected.back() < first ? 1 : 0;
    }
    for (const auto count : {without, with, large, carried}) BOOST_TEST(count > rounds / 100);
}

BOOST_AUTO_TEST_CASE(a_table_whose_wrap_test_never_passes_has_all_entries_of_32_bits) {
    const das::table_entries entries({0x20, 0x10000, 0xFFFFFFFF});
    BOOST_TEST(entries.count() == 1U << 27);
    BOOST_TEST(entries.has_newest());
    BOOST_TEST(entries.control(0) == 0x40U);
    BOOST_TEST(entries.control(entries.count() - 1) == 0x20U);
}

BOOST_AUTO_TEST_CASE(a_walk_leaves_out_what_lies_between_a_lost_current_and_the_table) {
    guest g;
    g.controls(0x00008000, 0x00010000, 0x00010060);
    auto memory = g.memory();
    std::vector<std::uint32_t> seen;
    const auto end = das::walk(memory, [&](std::uint32_t a, const auto&) { seen.push_back(a); });
    const std::vector<std::uint32_t> expected{0x010000, 0x010020, 0x010040};
    BOOST_TEST(seen == expected, boost::test_tools::per_element());
    BOOST_TEST((end == trace_result::at(0x010040)));
}

BOOST_AUTO_TEST_SUITE_END()
