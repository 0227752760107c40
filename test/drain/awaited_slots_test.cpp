// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// A drain keeps its state of slots and lanes in the library's own arrays. Here they do what
/// std::map and std::vector do, in any order of calls.

#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include <trace_ring/list_of.hpp>
#include <trace_ring/recorder/drain_source/closed_search.hpp>

BOOST_AUTO_TEST_SUITE(awaited_slots)

namespace tr = trace_ring;
using tr::impl::sub_buffer_place;

namespace {

using model = std::map<std::uint64_t, std::uint64_t>;

/// The slots from `from` on that are still awaited, as the drain goes through them.
model awaited_in(const tr::impl::awaited_slots& all, std::uint64_t from) {
    model out;
    for (std::size_t i = all.from(from); i < all.size(); ++i) {
        if (all[i].pos != tr::no_position) out[all[i].slot] = all[i].pos;
    }
    return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(slots_are_found_added_forgotten_and_merged_as_in_a_map) {
    std::mt19937 random(7);
    const auto below = [&](std::uint64_t end) { return random() % end; };
    for (int round = 0; round < 20; ++round) {
        tr::impl::awaited_slots all;
        model expected;
        for (int step = 0; step < 500; ++step) {
            const std::uint64_t slot = below(40);
            const std::uint64_t pos = 1 + below(1000);
            switch (below(6)) {
                case 0:
                case 1:
                    all.add({slot, pos});
                    expected.try_emplace(slot, pos);
                    break;
                case 2:
                    all.add({slot, pos}, true);
                    expected[slot] = pos;
                    break;
                case 3:
                    for (std::size_t i = all.from(slot); i < all.size() && all[i].slot == slot; ++i)
                        all.set(i, tr::no_position);
                    expected.erase(slot);
                    break;
                case 4: {
                    tr::list_of<sub_buffer_place> more;
                    for (std::uint64_t at = below(4); at < 40; at += 1 + below(8)) {
                        more.push_back({at, pos});
                        expected.try_emplace(at, pos);
                    }
                    all.merge(more);
                    break;
                }
                default:
                    all.tidy();
                    BOOST_TEST(all.size() == expected.size());
            }
            const std::uint64_t from = below(41);
            BOOST_TEST(
                (awaited_in(all, from) == model(expected.lower_bound(from), expected.end())));
        }
    }
}

BOOST_AUTO_TEST_CASE(a_list_grows_and_moves_as_a_vector_does) {
    std::mt19937 random(11);
    tr::list_of<std::uint32_t> list;
    std::vector<std::uint32_t> expected;
    const auto same = [&] {
        return std::vector<std::uint32_t>(list.begin(), list.end()) == expected;
    };
    BOOST_TEST((list.empty() && list.size() == 0U));
    for (std::uint32_t n = 0; n < 300; ++n) {
        const std::size_t at = random() % (expected.size() + 1);
        list.insert(at, n);
        expected.insert(expected.begin() + static_cast<std::ptrdiff_t>(at), n);
        list.push_back(n);
        expected.push_back(n);
        list.push_back(list[0]);  // itself, even if it has to grow
        expected.push_back(expected[0]);
    }
    BOOST_TEST(same());
    tr::list_of<std::uint32_t> other(std::move(list));
    list = std::move(other);
    BOOST_TEST(same());
    list.resize(1000);
    expected.resize(1000);
    BOOST_TEST(same());
    list.shorten(10);
    expected.resize(10);
    BOOST_TEST(same());
    list.clear();
    list.resize(3);
    expected.assign(3, 0);
    BOOST_TEST(same());
    BOOST_TEST(tr::list_of<bool>(7).size() == 7U);
}

BOOST_AUTO_TEST_SUITE_END()
