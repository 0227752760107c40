// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Levels of caches that are inclusive, exclusive, written back or prefetched into: sequences whose
/// counts are worked out by hand, and many others that a naive simulator counts.

#include <array>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <address_trace/analysis/analyses.hpp>
#include <address_trace/analysis/cache_misses.hpp>
#include <address_trace/analysis/coherent_caches.hpp>
#include "address_streams.hpp"
#include "naive_hierarchy.hpp"

BOOST_AUTO_TEST_SUITE(address_hierarchy)

namespace {

using namespace address_streams;
using address_trace::cache_result;
using address_trace::miss_counts;
using address_trace::parse_cache_levels;
using address_trace::prefetch_counts;
using address_trace::written_bytes;

[[nodiscard]] std::vector<cache_result> found(const std::vector<reference>& all,
                                              const std::string& levels) {
    address_trace::analyses chosen;
    const auto& misses = chosen.make<address_trace::cache_misses>(parse_cache_levels(levels));
    feed(chosen, all);
    return misses.results();
}

/// The n-th line of 64 bytes.
[[nodiscard]] reference load_line(std::uint64_t n) {
    return load(data + 64 * n);
}
[[nodiscard]] reference store_line(std::uint64_t n) {
    return store(data + 64 * n);
}

// --- Worked out by hand ----------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_line_that_leaves_an_inclusive_level_leaves_the_level_before_it) {
    // The second level does not see that 0 is used again, so that is what leaves for 2.
    const std::vector<reference> all{load_line(0), load_line(1), load_line(0),
                                     load_line(2), load_line(1), load_line(0)};
    const auto inclusive = found(all, "L1=128,64,2+L2=128,64,2,inclusive");
    BOOST_TEST((inclusive[0].all() == miss_counts{6, 4}));  // 0 1 . 2 . 0
    BOOST_TEST((inclusive[1].all() == miss_counts{4, 4}));
    BOOST_TEST((inclusive[0].invalidated == 2U));  // 0 by 2, 1 by 0
    BOOST_TEST(!inclusive[1].invalidated);
    const auto neither = found(all, "L1=128,64,2+L2=128,64,2");
    BOOST_TEST((neither[0].all() == miss_counts{6, 5}));  // 0 1 . 2 1 0
    BOOST_TEST(!neither[0].invalidated);
    BOOST_TEST(!neither[0].written);
}

BOOST_AUTO_TEST_CASE(an_invalidated_line_that_is_dirty_is_written_through_all_levels) {
    // 2 takes the place of 0 in the third level. It is dirty in the first one alone.
    const auto all = found({store_line(0), load_line(1), load_line(0), load_line(2)},
                           "L1=128,64,2+L2=128,64,2+L3=128,64,2,inclusive");
    BOOST_TEST((all[0].invalidated == 1U));
    BOOST_TEST((all[1].invalidated == 1U));
    BOOST_TEST((all[0].written == written_bytes{64, 0}));
    BOOST_TEST((all[1].written == written_bytes{64, 0}));
    BOOST_TEST((all[2].written == written_bytes{64, 0}));
}

BOOST_AUTO_TEST_CASE(a_hit_in_an_exclusive_level_swaps_two_lines) {
    const std::vector<reference> all{store_line(0), load_line(1), load_line(0), load_line(1)};
    const auto exclusive = found(all, "L1=64,64,1+L2=64,64,1,exclusive");
    BOOST_TEST((exclusive[0].all() == miss_counts{4, 4}));
    BOOST_TEST((exclusive[1].all() == miss_counts{4, 2}));
    // 0 leaves the first level dirty, comes back dirty, and leaves it again.
    BOOST_TEST((exclusive[0].written == written_bytes{128, 0}));
    BOOST_TEST((exclusive[1].written == written_bytes{0, 64}));
    BOOST_TEST((found(all, "L1=64,64,1+L2=64,64,1")[1].all() == miss_counts{4, 4}));

    // And out of the second one: 0 for 1, which 2 sends there.
    const auto out =
        found({store_line(0), load_line(1), load_line(2)}, "L1=64,64,1+L2=64,64,1,exclusive");
    BOOST_TEST((out[1].written == written_bytes{64, 0}));
}

BOOST_AUTO_TEST_CASE(an_exclusive_level_has_no_line_that_half_of_the_level_before_has) {
    // Line 0 is fetched and loaded. It leaves D1 for 1, but I1 has it still, until 2 comes there.
    const std::vector<reference> all{block(data),          load_line(0), load_line(1),
                                     load_line(0),         load_line(3), block(data + 64 * 2),
                                     block(data + 64 * 4), load_line(0)};
    const auto of = found(all, "D1=64,64,1/I1=64,64,1+L2=256,64,4,exclusive");
    BOOST_TEST((of[0].loads == miss_counts{5, 5}));
    BOOST_TEST((of[1].fetches == miss_counts{3, 3}));
    // Missing: 0 for the fetch and both loads, 1, 3, 2, 4. Then 0 has come from I1.
    BOOST_TEST((of[2].fetches == miss_counts{3, 3}));
    BOOST_TEST((of[2].loads == miss_counts{5, 4}));
}

BOOST_AUTO_TEST_CASE(dirty_lines_are_written_when_they_leave_or_told_at_the_end) {
    const auto one =
        found({store_line(0), load_line(1), store_line(2), store_line(2)}, "D1=64,64,1,write-back");
    BOOST_TEST((one[0].written == written_bytes{64, 64}));

    // 0 leaves the first level dirty for 2. The second level has it ...
    const std::vector<reference> three{store_line(0), load_line(1), load_line(2)};
    const auto has = found(three, "L1=128,64,2,write-back+L2=256,64,4");
    BOOST_TEST((has[0].written == written_bytes{64, 0}));
    BOOST_TEST((has[1].written == written_bytes{0, 64}));
    // ... or has it no more: then it is written past it, and gets no place in it.
    const auto past = found(three, "L1=128,64,2+L2=64,64,1,write-back");
    BOOST_TEST((past[0].written == written_bytes{64, 0}));
    BOOST_TEST((past[1].written == written_bytes{64, 0}));
    BOOST_TEST((past[1].all() == miss_counts{3, 3}));

    // A level of code alone is not on its way.
    const auto code_behind =
        found({store_line(0), load_line(1)}, "L1=64,64,1,write-back+I2=1K,64,4");
    BOOST_TEST((code_behind[0].written == written_bytes{64, 0}));
    BOOST_TEST((code_behind[1].written == written_bytes{0, 0}));

    // Half a line makes a whole one dirty.
    const auto halves = found({store_line(0), load_line(1), load_line(2), load_line(4)},
                              "L1=32,32,1,write-back+L2=128,128,1");
    BOOST_TEST((halves[0].written == written_bytes{32, 0}));
    BOOST_TEST((halves[1].written == written_bytes{128, 0}));
}

BOOST_AUTO_TEST_CASE(what_stores_makes_dirty_and_what_only_compares_does_not) {
    for (const auto& [kind, dirty] :
         {std::pair(reference_kind::load, 0U), std::pair(reference_kind::store, 128U),
          std::pair(reference_kind::update, 128U), std::pair(reference_kind::failed_compare, 0U)}) {
        const auto of = found({{data + 60, code, kind, 8}}, "D1=256,64,2,write-back");
        BOOST_TEST(of[0].written->still_dirty == dirty);
    }
}

BOOST_AUTO_TEST_CASE(a_miss_brings_the_next_line_too) {
    const auto of = found({load_line(0), load_line(1), load_line(3), load_line(8), load_line(4)},
                          "D1=256,64,4,next");
    // 0 brings 1, which is used; 3 brings 4; 8 replaces 0, and brings 9, which replaces 1.
    BOOST_TEST((of[0].loads == miss_counts{5, 3}));
    BOOST_TEST((of[0].prefetched == prefetch_counts{3, 2}));
    BOOST_TEST((of[0].written == written_bytes{0, 0}));

    // A reference on two lines brings the one behind both. What is there is not brought.
    const auto two = found({load(data + 60), load_line(2), load_line(2)}, "D1=256,64,4,next");
    BOOST_TEST((two[0].loads == miss_counts{3, 1}));
    BOOST_TEST((two[0].prefetched == prefetch_counts{1, 1}));
    BOOST_TEST((found({load_line(1), load_line(0)}, "D1=256,64,4,next")[0].prefetched ==
                prefetch_counts{1, 0}));
    // Behind the last line there is none.
    BOOST_TEST((found({load(~std::uint64_t{0} - 3)}, "D1=1K,64,2,next")[0].prefetched ==
                prefetch_counts{0, 0}));
}

BOOST_AUTO_TEST_CASE(a_prefetcher_asks_the_next_level_and_counts_nothing_there) {
    const auto of = found({load_line(0), load_line(1), load_line(0), load_line(1)},
                          "L1=128,64,2,next+L2=1K,64,2,inclusive,next");
    BOOST_TEST((of[0].all() == miss_counts{4, 1}));
    BOOST_TEST((of[1].all() == miss_counts{1, 1}));
    BOOST_TEST((of[0].prefetched == prefetch_counts{1, 1}));
    BOOST_TEST((of[1].prefetched == prefetch_counts{0, 0}));  // 1 has come for the first level
    const auto second = found({load_line(0), load_line(1)}, "L1=128,64,2+L2=1K,64,2,next");
    BOOST_TEST((second[0].all() == miss_counts{2, 2}));
    BOOST_TEST((second[1].all() == miss_counts{2, 1}));
    BOOST_TEST((second[1].prefetched == prefetch_counts{1, 1}));
    BOOST_TEST(!second[0].prefetched);
}

BOOST_AUTO_TEST_CASE(tlbs_prefetch_and_include_but_write_nothing) {
    const auto of = found({load(data), store(data + 4096), load(data + 8192), load(data)},
                          "DTLB=2,4096,2,next+L2TLB=2,4096,2,inclusive");
    BOOST_TEST((of[0].all() == miss_counts{4, 3}));  // 1 is brought, 2 brings 3, and 0 is gone
    BOOST_TEST((of[0].prefetched == prefetch_counts{3, 1}));
    BOOST_TEST(!of[0].written);
    BOOST_TEST(of[0].invalidated.has_value());
}

// --- Counted by the naive simulator ----------------------------------------------------------

/// References of any kind to little memory, many of them on two lines or more.
[[nodiscard]] std::vector<reference> some(std::size_t count, std::uint64_t bytes,
                                          std::uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<reference> out;
    std::uint64_t at = data;
    for (std::size_t i = 0; i < count; ++i) {
        const auto choice = static_cast<std::uint32_t>(random());
        at = choice % 4 == 0 ? at + 24 : data + random() % bytes;
        const std::uint32_t size = (choice >> 8) % 8 == 0 ? 1 + (choice >> 16) % 200 : 8;
        if ((choice >> 2) % 5 == 0) {
            out.push_back(block(at));
        } else if ((choice >> 2) % 5 < 3) {
            out.push_back({at, code + choice % 16, reference_kind::store, size});
        } else {
            out.push_back({at, code + 32 + choice % 16, reference_kind::load, size});
        }
    }
    return out;
}

[[nodiscard]] std::string text_of(const std::vector<naive::spec>& all, bool writes_back) {
    std::string out;
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (i != 0) out += all[i].level == all[i - 1].level ? '/' : '+';
        out += all[i].text();
        if (i == 0 && writes_back) out += ",write-back";
    }
    return out;
}

void compare(const std::vector<naive::spec>& specs, bool writes_back,
             const std::vector<reference>& all) {
    naive::hierarchy expected(specs);
    const bool has_code = specs[0].takes(true) || (specs[1].level == 0 && specs[1].takes(true));
    bool is_sound = true;
    std::size_t count = 0;
    for (const reference& each : all) {
        const bool is_code = each.kind == reference_kind::block;
        if (is_code && !has_code) continue;
        expected.reference(static_cast<int>(each.kind), each.address, is_code ? 1 : each.size);
        if (++count % 16 == 0) is_sound = is_sound && expected.is_sound();
    }
    const std::string text = text_of(specs, writes_back);
    const auto results = found(all, text);
    bool is_plain = !writes_back, contains = false, differs = !is_sound;
    for (const naive::spec& each : specs) {
        is_plain = is_plain && each.holds.empty() && !each.fetches_next;
        contains = contains || each.holds == "inclusive";
    }
    for (std::size_t i = 0; i < specs.size(); ++i) {
        const cache_result& its = results.at(i);
        const naive::counts& should = expected.count[i];
        const miss_counts kinds[] = {its.loads, its.stores, its.fetches};
        std::uint64_t by_site = 0;
        for (const std::uint64_t site : its.by_site) by_site += site;
        differs = differs || by_site != its.all().misses;
        for (int kind = 0; kind < 3; ++kind)
            differs = differs || kinds[kind].references != should.references[kind] ||
                      kinds[kind].misses != should.misses[kind];
        differs = differs || its.written.has_value() == is_plain ||
                  its.prefetched.has_value() != specs[i].fetches_next;
        if (its.written)
            differs = differs || its.written->back != should.written ||
                      its.written->still_dirty != expected.still_dirty(i);
        if (its.prefetched)
            differs = differs || its.prefetched->lines != should.prefetched ||
                      its.prefetched->used != should.used;
        if (its.invalidated) {
            differs = differs || its.invalidated != should.invalidated;
        } else {
            differs = differs || should.invalidated != 0;
        }
        differs = differs || (i == 0 && its.invalidated.has_value() != contains);
    }
    BOOST_TEST(!differs, text << (is_sound ? "" : ", which is not sound"));
}

constexpr std::array<const char*, 4> replacements{"lru", "fifo", "plru", "random:77"};
constexpr std::array<const char*, 3> inclusions{"", "inclusive", "exclusive"};

BOOST_AUTO_TEST_CASE(two_levels_count_what_naive_ones_do) {
    for (unsigned choice = 0; choice < 4 * 4 * 3 * 2 * 4 * 3; ++choice) {
        unsigned left = choice;
        const auto take = [&](unsigned of) { return std::exchange(left, left / of) % of; };
        const char *const inner = replacements[take(4)], *const outer = replacements[take(4)];
        const std::string holds = inclusions[take(3)];
        const bool writes_back = take(2) != 0;
        const unsigned next = take(4);
        std::vector<naive::spec> specs;
        switch (take(3)) {
            case 0:
                specs.push_back({"L1", 512, 64, 4, inner, "", (next & 1) != 0, 0});
                break;
            case 1:
                specs.push_back({"D1", 512, 64, 4, inner, "", (next & 1) != 0, 0});
                specs.push_back({"I1", 384, 64, 2, outer, "", (next & 2) != 0, 0});
                break;
            default:
                specs.push_back({"D1", 256, 64, 4, inner, "", (next & 1) != 0, 0});
                break;
        }
        specs.push_back({"L2", 1024, 64, 8, outer, holds, (next & 2) != 0, 1});
        compare(specs, writes_back, some(200, 3000, choice));
        if (!holds.empty()) continue;
        // Longer lines, and shorter ones.
        specs.back().line = choice % 2 == 0 ? 128 : 32;
        specs.back().size = 2048;
        compare(specs, writes_back, some(200, 6000, choice));
    }
}

BOOST_AUTO_TEST_CASE(three_levels_count_what_naive_ones_do) {
    for (unsigned choice = 0; choice < 4 * 3 * 3 * 2 * 8 * 4; ++choice) {
        unsigned left = choice;
        const auto take = [&](unsigned of) { return std::exchange(left, left / of) % of; };
        const unsigned how = take(4);
        const std::string second = inclusions[take(3)], third = inclusions[take(3)];
        const bool writes_back = take(2) != 0;
        const unsigned next = take(8);
        const bool has = (next & 1) != 0, second_has = (next & 2) != 0, third_has = (next & 4) != 0;
        const char* const other = replacements[(how + choice) % 4];
        std::vector<naive::spec> specs;
        const unsigned split = take(4);
        if (split == 0) {
            specs.push_back({"L1", 256, 64, 2, replacements[how], "", has, 0});
        } else {
            specs.push_back({"D1", 256, 64, 2, replacements[how], "", has, 0});
            specs.push_back({"I1", 128, 64, 2, other, "", has, 0});
        }
        if (split == 2) {  // split twice
            specs.push_back({"D2", 512, 64, 4, other, second, second_has, 1});
            specs.push_back({"I2", 512, 64, 2, "lru", second, second_has, 1});
        } else if (split == 3) {  // code goes straight to the third level
            specs.push_back({"D2", 512, 64, 4, other, second, second_has, 1});
        } else {
            specs.push_back({"L2", 768, 64, 4, other, second, second_has, 1});
        }
        specs.push_back({"L3", 1024, 64, 4, replacements[(how + 1) % 4], third, third_has, 2});
        compare(specs, writes_back, some(200, 4000, choice));
    }
}

// Also of the fast way that levels without such words take.
BOOST_AUTO_TEST_CASE(what_is_written_changes_no_miss) {
    for (const auto& [name, all] : patterns(20'000)) {
        for (const std::string levels :
             {"D1=1K,32,2/I1=2K,64,4+L2=8K,64,4+L3=30K,128,5", "D1=4K,64,1", "L1=4K,64,4,fifo",
              "D1=4K,64,4,plru+L2=16K,64,4,random:3"}) {
            const auto plain = found(all, levels);
            const auto counted = found(all, levels + ",write-back");
            for (std::size_t i = 0; i < plain.size(); ++i) {
                BOOST_TEST((plain[i].loads == counted[i].loads), name << ", " << levels);
                BOOST_TEST((plain[i].stores == counted[i].stores), name << ", " << levels);
                BOOST_TEST((plain[i].fetches == counted[i].fetches), name << ", " << levels);
                BOOST_TEST(plain[i].by_site == counted[i].by_site);
                BOOST_TEST(counted[i].written.has_value());
            }
        }
    }
}

// Levels of lru that exclude one another are one stack: what the last one misses and writes is what
// one cache of all their ways does. Here by the fast way of a level without words.
BOOST_AUTO_TEST_CASE(exclusive_levels_miss_and_write_what_one_cache_of_their_size_does) {
    for (const auto& [name, all] : patterns(20'000)) {
        const auto levels = found(all, "L1=1K,64,2+L2=2K,64,4,exclusive+L3=4K,64,8,exclusive");
        const cache_result misses = found(all, "L=7168,64,14")[0];
        const cache_result writes = found(all, "L=7168,64,14,write-back")[0];
        std::uint64_t still_dirty = 0;
        for (const cache_result& each : levels) still_dirty += each.written->still_dirty;
        BOOST_TEST(levels[2].loads.misses == misses.loads.misses, name);
        BOOST_TEST(levels[2].stores.misses == misses.stores.misses, name);
        BOOST_TEST(levels[2].fetches.misses == misses.fetches.misses, name);
        BOOST_TEST(levels[2].by_site == misses.by_site, name);
        BOOST_TEST(levels[2].written->back == writes.written->back, name);
        BOOST_TEST(still_dirty == writes.written->still_dirty, name);
    }
}

// --- What is refused -------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(words_come_in_any_order) {
    const auto levels = parse_cache_levels("L1=4K,64,2,next,write-back+L2=8K,64,4,exclusive,fifo");
    BOOST_TEST(
        (levels == parse_cache_levels("L1=4K,64,2,write-back,lru,next+L2=8K,64,4,fifo,exclusive")));
    BOOST_TEST(describe(levels.all[0][0]) == "4 KiB, 64-byte lines, 2 ways, write-back, next");
    BOOST_TEST(describe(levels.all[1][0]) == "8 KiB, 64-byte lines, 4 ways, fifo, exclusive");
    BOOST_TEST(levels.count_writes());
    BOOST_TEST(!parse_cache_levels("L1=4K,64,2,fifo+L2=8K,64,4").count_writes());
}

BOOST_AUTO_TEST_CASE(words_that_make_no_sense_are_refused_with_a_sentence) {
    const std::pair<const char*, const char*> all[] = {
        {"D1=4K,64,2,inclusive", "the first level cannot be inclusive or exclusive"},
        {"L1=4K,64,2,exclusive+L2=8K,64,2", "the first level cannot be inclusive or exclusive"},
        {"L1=4K,64,2+L2=8K,64,2,inclusive,exclusive",
         "a cache is inclusive or exclusive, not both"},
        {"L1=4K,64,2+L2=8K,128,2,inclusive", "its lines must be of 64 bytes, as those of L1 are"},
        {"L1=4K,32,2+L2=8K,64,2+L3=16K,64,2,exclusive",
         "its lines must be of 32 bytes, as those of L1 are"},
        {"DTLB=64,4K,4+L2TLB=128,4K,4,exclusive", "a TLB cannot be exclusive"},
        {"DTLB=64,4K,4+L2=1M,4096,4,exclusive",
         "a cache cannot be inclusive or exclusive of a TLB"},
        {"D1=4K,64,2+I2=8K,64,2,inclusive", "no level before it takes what it takes"},
        {"L1=4K,64,2+D2=8K,64,2,exclusive",
         "it must take data and code, as the level before it does"},
        {"L1=4K,64,2+D2=8K,64,2+L3=16K,64,2,exclusive",
         "a level of data or code alone is between it and L1"},
        {"DTLB=64,4K,4,write-back", "a TLB writes nothing back"},
        {"I1=4K,64,2,write-back", "a cache of code alone writes nothing back"},
        {"D1=4K,4096,1,write-back+TLB=64,4K,4", "nothing is written back where there are TLBs"},
        {"D1=4K,64,2,next,next", "'next' is there twice"},
        {"D1=4K,64,2,lru,fifo", "a cache has one replacement, not two"},
        {"D1=4K,64,2,victim",
         "'victim' is not lru, fifo, plru, random, inclusive, exclusive, write-back or next"},
        {"D1=4K,64,2,",
         "'' is not lru, fifo, plru, random, inclusive, exclusive, write-back or "
         "next"}};
    for (const auto& each : all) {
        const auto is_said = [&](const std::invalid_argument& error) {
            return std::string(error.what()).ends_with("': " + std::string(each.second));
        };
        BOOST_TEST_CONTEXT(each.first)
        BOOST_CHECK_EXCEPTION(static_cast<void>(parse_cache_levels(each.first)),
                              std::invalid_argument, is_said);
    }
    for (const char* const wrong : {"D1=4K,64,2,next", "D1=4K,64,2,write-back"})
        BOOST_CHECK_THROW(address_trace::coherent_caches{parse_cache_levels(wrong)},
                          std::invalid_argument);
}

}  // namespace

BOOST_AUTO_TEST_SUITE_END()
