// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// The hottest lines of address traces, and the lines that threads share.

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <vector>

#include <address_trace/analysis/analyses.hpp>
#include <address_trace/analysis/line_use.hpp>
#include "address_streams.hpp"

BOOST_AUTO_TEST_SUITE(address_lines)

namespace {

using namespace address_streams;
using address_trace::line_use;

/// References of threads, a run after the other.
struct shared_program {
    address_trace::analyses chosen;
    line_use& lines;

    explicit shared_program(std::size_t kept = 1024, std::size_t most_shared = 64)
        : lines(chosen.make<line_use>(kept, most_shared)) {}

    void run(std::uint32_t thread, const std::vector<reference>& all) {
        chosen.take({thread, time_++, all});
    }

private:
    std::uint64_t time_ = 0;
};

[[nodiscard]] std::map<std::uint64_t, std::uint64_t> count_lines(
    const std::vector<reference>& all) {
    std::map<std::uint64_t, std::uint64_t> counts;
    for (const reference& each : all) {
        if (each.kind == reference_kind::block) continue;
        for (std::uint64_t line = each.address / 64; line <= (each.address + each.size - 1) / 64;
             ++line)
            ++counts[line * 64];
    }
    return counts;
}

BOOST_AUTO_TEST_CASE(the_hottest_lines_are_exact_while_all_are_known) {
    for (const auto& [name, all] : patterns(20'000)) {
        BOOST_TEST_CONTEXT(name) {
            shared_program program(8192);
            program.run(1, all);
            const auto counts = count_lines(all);
            BOOST_TEST(program.lines.complete());
            const auto found = program.lines.hottest(counts.size() + 1);
            BOOST_REQUIRE(found.size() == counts.size());
            for (const auto& line : found) {
                BOOST_REQUIRE(line.references() == counts.at(line.address));
                BOOST_REQUIRE(line.missed == 0U);
            }
            BOOST_TEST(std::ranges::is_sorted(found, std::greater{},
                                              &address_trace::used_line::references));
            BOOST_TEST(program.lines.hottest(3).size() == 3U);
            BOOST_TEST(program.lines.hottest(3)[2].address == found[2].address);
        }
    }
}

BOOST_AUTO_TEST_CASE(in_bounded_memory_every_line_with_its_share_is_known_within_the_bound) {
    constexpr std::size_t kept = 64;
    for (const auto& [name, all] : patterns(100'000)) {
        BOOST_TEST_CONTEXT(name) {
            shared_program program(kept);
            program.run(1, all);
            auto counts = count_lines(all);
            BOOST_TEST(program.lines.missed() <= program.lines.references() / kept);
            const auto found = program.lines.hottest(~std::size_t{0});
            BOOST_TEST(found.size() <= 2 * kept);
            for (const auto& line : found) {
                BOOST_REQUIRE(line.references() <= counts.at(line.address));
                BOOST_REQUIRE(line.references() + line.missed >= counts.at(line.address));
                counts.erase(line.address);
            }
            for (const auto& [address, count] : counts)
                BOOST_REQUIRE(count <= program.lines.references() / kept);
        }
    }
}

// --- Sharing -------------------------------------------------------------------------------------

constexpr std::uint32_t one = 1, two = 2, three = 3;

BOOST_AUTO_TEST_CASE(threads_that_store_to_different_bytes_of_a_line_share_it_falsely) {
    shared_program program;
    for (int i = 0; i < 10; ++i) {
        program.run(one, {store(data + 0, 8, code), load(data + 0, 4), store(data + 256)});
        program.run(two, {store(data + 8, 4, code + 50), store(data + 512)});
    }
    BOOST_TEST(program.lines.true_sharing().empty());
    const auto found = program.lines.false_sharing();
    BOOST_REQUIRE(found.size() == 1U);
    BOOST_TEST(found[0].address == data);
    const auto& how = *found[0].how;
    BOOST_TEST(how.false_hand_overs() == 19U);
    BOOST_TEST(how.hand_overs() == 19U);
    BOOST_TEST(found[0].most_hand_overs() == 20U);
    BOOST_REQUIRE(how.size() == 2U);
    BOOST_TEST(how[0].thread == one);
    BOOST_TEST(how[0].touched == 0xFFU);
    BOOST_TEST(how[0].written == 0xFFU);
    BOOST_TEST(how[1].thread == two);
    BOOST_TEST(how[1].touched == 0xF00U);
    BOOST_TEST(how[1].stores == 10U);
    const auto sites = program.chosen.sites().all();
    BOOST_TEST(sites[how[0].site].site == code);
    BOOST_TEST(sites[how[1].site].site == code + 50);
}

BOOST_AUTO_TEST_CASE(a_reader_of_other_bytes_than_those_stored_to_shares_falsely_too) {
    shared_program program;
    for (int i = 0; i < 5; ++i) {
        program.run(one, {store(data + 16)});
        program.run(two, {load(data + 32), load(data + 32)});
    }
    const auto found = program.lines.false_sharing();
    BOOST_REQUIRE(found.size() == 1U);
    BOOST_TEST(found[0].how->false_hand_overs() == 9U);
    BOOST_TEST((*found[0].how)[1].written == 0U);
}

BOOST_AUTO_TEST_CASE(threads_that_touch_the_same_bytes_share_truly) {
    shared_program program;
    for (int i = 0; i < 5; ++i) {
        // A counter of two words, of which now one changes, now the other.
        program.run(one, {store(data), store(data + 8)});
        program.run(two, {store(data + 8), store(data)});
        program.run(one, {store(data)});
        program.run(two, {store(data + 8)});
    }
    BOOST_TEST(program.lines.false_sharing().empty());
    const auto found = program.lines.true_sharing();
    BOOST_REQUIRE(found.size() == 1U);
    BOOST_TEST(found[0].how->hand_overs() == 19U);
}

BOOST_AUTO_TEST_CASE(what_is_only_read_or_only_one_thread_s_is_not_shared) {
    shared_program program;
    for (std::uint64_t i = 0; i < 100; ++i) {
        program.run(one, {load(data + i * 8), store(data + 4096 + i * 64)});
        program.run(two, {load(data + 800 - i * 8), store(data + 65536 + i * 64)});
    }
    BOOST_TEST(program.lines.false_sharing().empty());
    BOOST_TEST(program.lines.true_sharing().empty());
}

BOOST_AUTO_TEST_CASE(a_line_that_one_thread_set_up_is_not_shared_falsely_for_that) {
    shared_program program;
    std::vector<reference> set_up;
    for (std::uint64_t i = 0; i < 16; ++i) set_up.push_back(store(data + i * 8));
    program.run(one, set_up);
    for (int i = 0; i < 5; ++i) {
        program.run(two, {store(data + 8), load(data + 64)});
        program.run(three, {store(data + 8), load(data + 72)});
    }
    BOOST_TEST(program.lines.false_sharing().empty());
    BOOST_TEST(program.lines.true_sharing().size() == 2U);
    // But the thread that set it up may share it falsely later.
    for (int i = 0; i < 5; ++i) {
        program.run(one, {store(data + 24)});
        program.run(two, {store(data + 8)});
    }
    BOOST_REQUIRE(program.lines.false_sharing().size() == 1U);
    BOOST_TEST(program.lines.false_sharing()[0].how->false_hand_overs() == 10U);
}

/// The rules as sets of bytes.
struct naive_sharing {
    struct part {
        bool has_it = false;
        std::set<std::uint64_t> touched, stored;
    };
    std::map<std::uint32_t, part> all;
    std::uint64_t false_ones = 0, true_ones = 0;

    void note(std::uint32_t thread, const reference& each) {
        std::set<std::uint64_t> bytes;
        for (std::uint64_t i = 0; i < each.size; ++i) bytes.insert(each.address + i);
        const auto meet = [&](const std::set<std::uint64_t>& others) {
            return std::ranges::any_of(bytes, [&](auto byte) { return others.contains(byte); });
        };
        const bool stores = each.kind == reference_kind::store;
        bool handed_over = false, same = false;
        for (auto& [other, its] : all) {
            if (other == thread) continue;
            if (stores && its.has_it) {
                handed_over = true;
                same = same || meet(its.touched);
                its = {};
            } else if (!stores && !its.stored.empty()) {
                handed_over = true;
                same = meet(its.stored);
                its.stored.clear();
            }
        }
        if (handed_over) ++(same ? true_ones : false_ones);
        part& mine = all[thread];
        mine.has_it = true;
        mine.touched.insert(bytes.begin(), bytes.end());
        if (stores) mine.stored.insert(bytes.begin(), bytes.end());
    }
};

BOOST_AUTO_TEST_CASE(hand_overs_are_exactly_those_of_a_naive_count) {
    std::mt19937 random(7);
    for (int program_number = 0; program_number < 30; ++program_number) {
        shared_program program;
        std::map<std::uint64_t, naive_sharing> expected;
        // Each line is stored to by its first thread: readers before that are not kept apart.
        for (std::uint64_t line = 0; line < 8; ++line) {
            const reference first = store(data + line * 64, 1);
            program.run(one, {first});
            expected[first.address].note(one, first);
        }
        for (int i = 0; i < 2000; ++i) {
            const auto thread = static_cast<std::uint32_t>(1 + random() % 5);
            const auto size = static_cast<std::uint8_t>(1u << random() % 4);
            const std::uint64_t at = data + random() % 8 * 64 + random() % (64 / size) * size;
            const reference each = random() % 3 == 0 ? store(at, size) : load(at, size);
            program.run(thread, {each});
            expected[at / 64 * 64].note(thread, each);
        }
        auto found = program.lines.false_sharing();
        const auto others = program.lines.true_sharing();
        found.insert(found.end(), others.begin(), others.end());
        BOOST_REQUIRE(found.size() == expected.size());
        for (const auto& each : found) {
            const auto& [address, references, how] = each;
            BOOST_REQUIRE(how->false_hand_overs() == expected.at(address).false_ones);
            BOOST_REQUIRE(how->hand_overs() ==
                          expected.at(address).false_ones + expected.at(address).true_ones);
            BOOST_REQUIRE(each.most_hand_overs() >= how->hand_overs());
        }
    }
}

BOOST_AUTO_TEST_CASE(what_is_handed_over_most_is_found_among_more_lines_than_are_kept) {
    constexpr std::size_t kept = 64, most_shared = 16;
    shared_program program(kept, most_shared);
    std::vector<reference> streamed;
    for (std::uint64_t i = 0; i < 4000; ++i) {
        program.run(one, {store(data, 8), load(data + 4096 + 64 * (i + 100))});
        program.run(two, {store(data + 32, 8)});
        // Lines that are handed over once each, and lines of one thread.
        const std::uint64_t passing = data + (1u << 20) + 64 * i;
        program.run(one, {store(passing)});
        program.run(two, {store(passing + 8), store(data + (1u << 30) + 64 * i)});
    }
    const auto found = program.lines.false_sharing();
    BOOST_TEST(found.size() <= most_shared);
    BOOST_REQUIRE(!found.empty());
    BOOST_TEST(found[0].address == data);
    BOOST_TEST(found[0].how->false_hand_overs() == 2 * 4000U - 1);
    // present: shared_forgotten
    BOOST_TEST(program.lines.shared_forgotten() > 3900U);
    BOOST_TEST(program.lines.most_forgotten_hand_overs() == 1U);
    BOOST_TEST(!program.lines.complete());
    BOOST_TEST(program.lines.hottest(1)[0].address == data);
}

BOOST_AUTO_TEST_CASE(more_threads_than_are_kept_apart_are_counted) {
    shared_program program;
    for (int i = 0; i < 3; ++i) {
        for (std::uint32_t thread = 1; thread <= 12; ++thread)
            program.run(thread, {store(data + thread * 4, 4)});
    }
    const auto found = program.lines.false_sharing();
    BOOST_REQUIRE(found.size() == 1U);
    BOOST_TEST(found[0].how->size() == address_trace::line_sharing::most_sharers);
    BOOST_TEST(found[0].how->others() == 12U);
}

BOOST_AUTO_TEST_CASE(a_reference_on_two_lines_touches_its_part_of_each) {
    shared_program program;
    for (int i = 0; i < 3; ++i) {
        program.run(one, {store(data + 60, 8)});
        program.run(two, {store(data + 124, 8), store(data, 4)});
    }
    const auto found = program.lines.false_sharing();
    BOOST_REQUIRE(found.size() == 2U);
    BOOST_TEST(found[0].address == data);
    BOOST_TEST((*found[0].how)[0].touched == std::uint64_t{0xF} << 60);
    BOOST_TEST((*found[0].how)[1].touched == 0xFU);
    BOOST_TEST(found[1].address == data + 64);
    BOOST_TEST((*found[1].how)[0].touched == 0xFU);
    BOOST_TEST((*found[1].how)[1].touched == std::uint64_t{0xF} << 60);
    program.run(one, {store(~std::uint64_t{0} - 3)});  // the last line, and the first one
    BOOST_TEST(program.lines.hottest(100).back().address == ~std::uint64_t{63});
}

}  // namespace

BOOST_AUTO_TEST_SUITE_END()
