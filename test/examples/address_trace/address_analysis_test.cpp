// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// The analyses of address traces: sums by site, and the misses of caches.

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <deque>
#include <list>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <address_trace/analysis/allocations.hpp>
#include <address_trace/analysis/analyses.hpp>
#include <address_trace/analysis/cache_misses.hpp>
#include <address_trace/analysis/counts.hpp>
#include <address_trace/report/by_place.hpp>
#include "address_streams.hpp"

BOOST_AUTO_TEST_SUITE(address_analysis)

namespace {

using namespace address_streams;
using address_trace::analyses;
using address_trace::cache_misses;
using address_trace::cache_result;
using address_trace::parse_cache_levels;

[[nodiscard]] std::vector<cache_result> misses_of(const std::vector<reference>& all,
                                                  const std::string& levels,
                                                  std::size_t most = 1000) {
    address_trace::analyses chosen;
    const auto& misses = chosen.make<address_trace::cache_misses>(parse_cache_levels(levels));
    feed(chosen, all, 1, most);
    return misses.results();
}

// --- Sums ------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(references_are_summed_up_by_kind_and_site) {
    address_trace::analyses chosen;
    feed(chosen, {load(0x1000, 4),
                  load(0x1004, 4),
                  load(0x1000, 8, code + 9),
                  store(0x2000, 16),
                  block(code),
                  block(code),
                  block(code + 32),
                  {0x500, code + 1, reference_kind::enter, 0},
                  {0x500, code + 2, reference_kind::exit, 0}});
    const auto sites = chosen.sites().all();
    BOOST_TEST(sites.size() == 7U);  // the loads of 4 and the block at `code` are two
    const auto counts = address_trace::sum(sites);
    BOOST_TEST(counts.loads == 3U);
    BOOST_TEST(counts.stores == 1U);
    BOOST_TEST(counts.blocks == 3U);
    BOOST_TEST(counts.enters == 1U);
    BOOST_TEST(counts.exits == 1U);
    BOOST_TEST(counts.bytes_loaded == 16U);
    BOOST_TEST(counts.bytes_stored == 16U);
    BOOST_TEST(sites[0].site == code);
    BOOST_TEST(sites[0].count == 2U);
    BOOST_TEST(chosen.sites().complete());
}

// Copies of all sizes are made at one place: it is one site, whose bytes are summed up.
BOOST_AUTO_TEST_CASE(a_site_of_many_sizes_is_one) {
    address_trace::analyses chosen;
    for (std::uint32_t size = 1; size <= 1000; ++size)
        feed(chosen, {{0x1000, code, reference_kind::load, size},
                      {0x9000, code, reference_kind::store, size},
                      {0x9000, code + 5, reference_kind::update, 8},
                      {0x9000, code + 5, reference_kind::failed_compare, 4}});
    const auto sites = chosen.sites().all();
    BOOST_REQUIRE(sites.size() == 4U);
    BOOST_TEST(sites[0].size == 0U);
    BOOST_TEST(sites[2].size == 8U);
    const auto counts = address_trace::sum(sites);
    BOOST_TEST(counts.loads == 1000U);
    BOOST_TEST(counts.bytes_loaded == 500'500U);
    BOOST_TEST(counts.bytes_stored == 500'500U);
    BOOST_TEST(counts.updates == 1000U);
    BOOST_TEST(counts.bytes_updated == 8000U);
    BOOST_TEST(counts.failed_compares == 1000U);
    BOOST_TEST(counts.bytes() == 1'013'000U);
    BOOST_TEST(counts.references() == 4000U);
}

BOOST_AUTO_TEST_CASE(sums_are_exact_for_any_number_of_sites) {
    address_trace::site_table table;
    std::mt19937_64 random(3);
    std::vector<std::uint64_t> sites(50'000);
    for (auto& each : sites) each = random();
    for (std::size_t i = 0; i < sites.size(); ++i) {
        for (std::size_t times = 0; times <= i % 3; ++times)
            BOOST_REQUIRE(table.count(load(0, 1, sites[i])).site == i);
    }
    const auto all = table.all();
    BOOST_REQUIRE(all.size() == sites.size());
    for (std::size_t i = 0; i < sites.size(); ++i) {
        BOOST_REQUIRE(all[i].site == sites[i]);
        BOOST_REQUIRE(all[i].count == i % 3 + 1);
    }
}

BOOST_AUTO_TEST_CASE(sites_without_a_number_are_counted_together) {
    address_trace::site_table table(10);
    for (std::uint64_t i = 0; i < 100; ++i) {
        static_cast<void>(table.count(load(0, 4, code + i)));
        static_cast<void>(table.count(store(0, 8, code + i)));
    }
    BOOST_TEST(!table.complete());
    BOOST_TEST(table.size() == 12U);
    const auto all = table.all();
    BOOST_TEST(address_trace::sum(all).loads == 100U);
    BOOST_TEST(address_trace::sum(all).bytes_stored == 800U);
    BOOST_TEST(all[10].site == 0U);
    BOOST_TEST(all[10].count == 95U);
}

BOOST_AUTO_TEST_CASE(sites_are_summed_up_by_function_and_line) {
    address_trace::analyses chosen;
    const auto& misses = chosen.make<address_trace::cache_misses>(parse_cache_levels("D1=1K,64,2"));
    std::vector<reference> all;
    for (std::uint64_t i = 0; i < 6; ++i) {
        all.push_back(block(code + 0x10));  // the first of f, which calls g twice
        for (int call = 0; call < 2; ++call) {
            all.push_back(block(code + 0x110));
            all.push_back(load(data + 0x100 * i, 4, code + 0x120));
        }
        all.push_back(block(code + 0x30));
        all.push_back(store(data, 8, code + 0x38));
        all.push_back(block(code + 0x30));
    }
    feed(chosen, all);
    const auto where = [](std::uint64_t site) {
        const bool in_g = site >= code + 0x100;
        return address_trace::place{in_g ? "g" : "f", "program", in_g ? 0x100U : 0U,
                                    in_g ? "/src/g.c" : "/src/f.c",
                                    in_g                  ? 7
                                    : site == code + 0x38 ? 2
                                                          : 1};
    };
    const auto found = address_trace::sum_by_place(chosen.sites().all(), misses.results(), where);
    BOOST_REQUIRE(found.functions.size() == 2U);
    BOOST_TEST(found.functions[0].name == "f");
    BOOST_TEST(found.functions[0].calls == 6U);
    BOOST_TEST(found.functions[0].counts.blocks == 18U);
    BOOST_TEST(found.functions[0].counts.bytes_stored == 48U);
    BOOST_TEST(found.functions[0].misses.at(0) == 0U);
    BOOST_TEST(found.functions[1].name == "g");
    BOOST_TEST(found.functions[1].calls == 12U);
    BOOST_TEST(found.functions[1].misses.at(0) == 6U);
    BOOST_REQUIRE(found.lines.size() == 3U);
    BOOST_TEST(found.lines[0].name == "g.c:7");
    BOOST_TEST(found.lines[1].name == "f.c:1");
    BOOST_TEST(found.lines[2].name == "f.c:2");
    BOOST_TEST(found.lines[2].counts.stores == 6U);

    // Hooks for calls know better than blocks.
    feed(chosen, {{0x500, code + 0x108, reference_kind::enter, 0}});
    const auto entered = address_trace::sum_by_place(chosen.sites().all(), {}, where);
    BOOST_TEST(entered.functions[1].calls == 6U);
    BOOST_TEST(entered.functions[0].calls == 1U);
}

// A site is where its hook returns to: including the site of a call which is a function's last
// instruction.
BOOST_AUTO_TEST_CASE(a_site_has_the_name_of_the_function_that_called_the_hook) {
    address_trace::loaded_objects objects;
    BOOST_TEST(objects.find(0x1234).function == "0x1234");
    symbols::object self("/proc/self/exe");
    const auto in_main = std::ranges::find_if(
        self.functions(), [](const symbols::function& f) { return f.name == "main"; });
    BOOST_REQUIRE((in_main != self.functions().end()));
    const std::uint64_t bias = 0x7F0000000000;
    objects.add(bias, bias + (1u << 30), bias, {}, "/proc/self/exe");
    for (const std::uint64_t site : {in_main->start + 1, in_main->end}) {
        const auto found = objects.find(bias + site);
        BOOST_TEST(found.function == "main");
        BOOST_TEST(found.object == "/proc/self/exe");
        BOOST_TEST(found.start == in_main->start);
    }
}

// --- Caches ----------------------------------------------------------------------------------

/// The same by lists, a line at a time, as one would write it who has never heard of speed.
class naive_cache {
public:
    naive_cache(std::size_t size, std::size_t line, std::size_t ways)
        : line_(line), ways_(ways), sets_(size / line / ways) {}

    [[nodiscard]] bool misses(std::uint64_t address, std::uint64_t size) {
        bool missed = false;
        for (std::uint64_t line = address / line_; line <= (address + size - 1) / line_; ++line) {
            auto& set = sets_[static_cast<std::size_t>(line % sets_.size())];
            const auto at = std::find(set.begin(), set.end(), line);
            if (at != set.end()) {
                set.erase(at);
            } else {
                missed = true;
            }
            set.push_front(line);
            if (set.size() > ways_) set.pop_back();
        }
        return missed;
    }

private:
    std::size_t line_, ways_;
    std::vector<std::list<std::uint64_t>> sets_;
};

struct geometry {
    std::size_t size, line, ways;
    [[nodiscard]] std::string text() const {
        return std::to_string(size) + "," + std::to_string(line) + "," + std::to_string(ways);
    }
};

/// Each of these for loads, stores and code apart.
struct expected_misses {
    std::uint64_t references[3]{}, misses[3]{};

    void note(const reference& each, bool missed) {
        ++references[static_cast<int>(each.kind)];
        misses[static_cast<int>(each.kind)] += missed;
    }
    [[nodiscard]] bool equals(const cache_result& found) const {
        const address_trace::miss_counts all[] = {found.loads, found.stores, found.fetches};
        for (int kind = 0; kind < 3; ++kind) {
            if (all[kind].references != references[kind] || all[kind].misses != misses[kind])
                return false;
        }
        return true;
    }
};

[[nodiscard]] std::uint64_t bytes_of(const reference& each) {
    return each.kind == reference_kind::block ? 1 : each.size;
}

/// One set of another replacement, likewise.
class naive_set {
public:
    naive_set(std::string how, std::size_t ways)
        : how_(std::move(how)), ways_(ways), tree_(ways, false), lines_(ways) {}

    /// Whether it was missing. `random` is asked only for a line that has to leave.
    template <class Random>
    [[nodiscard]] bool misses(std::uint64_t line, Random random) {
        auto at = static_cast<std::size_t>(
            std::find(lines_.begin(), lines_.end(), std::optional(line)) - lines_.begin());
        const bool missed = at == ways_;
        if (missed) {
            at = static_cast<std::size_t>(std::find(lines_.begin(), lines_.end(), std::nullopt) -
                                          lines_.begin());
            if (at == ways_) {
                if (how_ == "fifo") {
                    at = came_.front();
                    came_.pop_front();
                } else {
                    at = how_ == "plru" ? coldest(1, 0, ways_) : random() % ways_;
                }
            }
            lines_[at] = line;
            came_.push_back(at);
        }
        heat(1, 0, ways_, at);
        return missed;
    }

private:
    // Halves of halves: in each node, whether its upper half is the one that was left longer.
    [[nodiscard]] std::size_t coldest(std::size_t node, std::size_t from, std::size_t count) const {
        if (count == 1) return from;
        return tree_[node] ? coldest(node * 2 + 1, from + count / 2, count / 2)
                           : coldest(node * 2, from, count / 2);
    }
    void heat(std::size_t node, std::size_t from, std::size_t count, std::size_t at) {
        if (count == 1 || how_ != "plru") return;
        const bool is_upper = at >= from + count / 2;
        tree_[node] = !is_upper;
        heat(node * 2 + is_upper, is_upper ? from + count / 2 : from, count / 2, at);
    }

    std::string how_;
    std::size_t ways_;
    std::vector<bool> tree_;
    std::vector<std::optional<std::uint64_t>> lines_;
    std::deque<std::size_t> came_;
};

BOOST_AUTO_TEST_CASE(other_replacements_miss_what_naive_ones_do) {
    constexpr std::size_t sets = 16, ways = 4, line = 64;
    for (const auto& [name, all] : patterns(20'000)) {
        for (const std::string how : {"fifo", "plru", "random", "random:77"}) {
            const std::string kind = how.substr(0, how.find(':'));
            std::uint32_t state = kind == how ? 1 : 77;
            const auto random = [&state] {  // Marsaglia, Xorshift RNGs, 2003
                state ^= state << 13;
                state ^= state >> 17;
                return state ^= state << 5;
            };
            std::vector<naive_set> naive(sets, naive_set(kind, ways));
            expected_misses expected;
            for (const reference& each : all) {
                if (each.kind == reference_kind::block) continue;
                bool missed = false;
                for (std::uint64_t at = each.address / line;
                     at <= (each.address + each.size - 1) / line; ++at)
                    missed |= naive[static_cast<std::size_t>(at % sets)].misses(at, random);
                expected.note(each, missed);
            }
            const auto found = misses_of(all, "D1=4K,64,4," + how);
            BOOST_TEST(expected.equals(found.at(0)), name << ", " << how);
            BOOST_TEST(describe(found[0].shape) ==
                       "4 KiB, 64-byte lines, 4 ways, " + (how == "random" ? "random:1" : how));
        }
    }
}

BOOST_AUTO_TEST_CASE(a_window_leaves_out_what_is_before_and_after) {
    std::vector<reference> all;
    for (std::uint64_t i = 0; i < 1000; ++i) all.push_back(load(data + i * 64));
    for (const std::size_t at_once : {1U, 7U, 1000U}) {
        address_trace::analyses chosen;
        auto& misses = chosen.make<address_trace::cache_misses>(
            address_trace::parse_cache_levels("D=4K,64,1"));
        chosen.choose(address_trace::reference_choice({.skip = 100, .window = 30}));
        std::size_t given = 0;
        for (std::size_t at = 0; at < all.size(); at += at_once) {
            const auto some =
                std::span(all).subspan(at, std::min<std::size_t>(at_once, all.size() - at));
            given += chosen.take(1, 0, some.size(), [&](auto&& visit) {
                for (const reference& each : some) visit(each);
            });
        }
        BOOST_TEST(given == 1000U);  // none is missing
        BOOST_TEST(address_trace::sum(chosen.sites().all()).loads == 30U);
        BOOST_TEST(misses.results()[0].all().misses == 30U);
    }
}

BOOST_AUTO_TEST_CASE(a_cache_misses_exactly_what_a_naive_one_does) {
    // Of one set, one way, many ways, sets that are no power of two, lines shorter than a
    // reference.
    const geometry geometries[] = {{32768, 64, 8}, {1024, 64, 2},   {64, 64, 1},   {512, 64, 8},
                                   {4096, 16, 1},  {49152, 64, 12}, {384, 32, 4},  {2048, 8, 2},
                                   {6144, 128, 3}, {65536, 16, 1},  {1600, 64, 5}, {8192, 256, 32}};
    for (const auto& [name, all] : patterns(20'000)) {
        for (const geometry& shape : geometries) {
            BOOST_TEST_CONTEXT(name << ", " << shape.text()) {
                expected_misses data_only, code_only, both;
                naive_cache d(shape.size, shape.line, shape.ways), i = d, u = d;
                for (const reference& each : all) {
                    const bool is_code = each.kind == reference_kind::block;
                    (is_code ? code_only : data_only)
                        .note(each, (is_code ? i : d).misses(each.address, bytes_of(each)));
                    both.note(each, u.misses(each.address, bytes_of(each)));
                }
                const auto split =
                    misses_of(all, "D1=" + shape.text() + "/I1=" + shape.text(), 777);
                BOOST_TEST(data_only.equals(split.at(0)));
                BOOST_TEST(code_only.equals(split.at(1)));
                BOOST_TEST(both.equals(misses_of(all, "L1=" + shape.text()).at(0)));
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(a_level_is_asked_for_what_the_one_before_it_misses) {
    for (const auto& [name, all] : patterns(20'000)) {
        BOOST_TEST_CONTEXT(name) {
            naive_cache d(1024, 32, 2), i(2048, 64, 4), second(8192, 64, 4), third(30720, 128, 5);
            expected_misses of_d, of_i, of_second, of_third;
            for (const reference& each : all) {
                const bool is_code = each.kind == reference_kind::block;
                const auto ask = [&](naive_cache& in, expected_misses& of) {
                    const bool missed = in.misses(each.address, bytes_of(each));
                    of.note(each, missed);
                    return missed;
                };
                if (ask(is_code ? i : d, is_code ? of_i : of_d) && ask(second, of_second))
                    static_cast<void>(ask(third, of_third));
            }
            const auto found = misses_of(all, "D1=1K,32,2/I1=2K,64,4+L2=8K,64,4+L3=30K,128,5");
            BOOST_REQUIRE(found.size() == 4U);
            BOOST_TEST(of_d.equals(found[0]));
            BOOST_TEST(of_i.equals(found[1]));
            BOOST_TEST(of_second.equals(found[2]));
            BOOST_TEST(of_third.equals(found[3]));
        }
    }
}

BOOST_AUTO_TEST_CASE(a_tlb_is_a_cache_of_pages) {
    const auto all = patterns(20'000)[1].all;
    expected_misses expected;
    naive_cache pages(std::size_t{16} * 4096, 4096, 4);
    for (const reference& each : all) {
        if (each.kind != reference_kind::block)
            expected.note(each, pages.misses(each.address, bytes_of(each)));
    }
    BOOST_TEST(expected.equals(misses_of(all, "DTLB=16,4K,4").at(0)));
}

// A block on three lines has three misses at first; its references are its instructions.
BOOST_AUTO_TEST_CASE(blocks_fetch_the_lines_of_their_code) {
    analyses chosen;
    std::uint64_t asked = 0;
    const std::vector<std::uint8_t> four(20, 4);
    const auto code_of = [&](std::uint64_t site) -> std::optional<address_trace::block_code> {
        ++asked;
        if (site == code) return {{0x1000 - 8, four}};
        if (site == code + 16) return {{0x2000, std::span(four).first(16)}};
        return std::nullopt;
    };
    const auto& split = chosen.make<cache_misses>(
        parse_cache_levels("I1=256,64,4/D1=1K,64,2+L2=1K,128,1"), code_of);
    std::vector<reference> all;
    for (int i = 0; i < 10; ++i) all.insert(all.end(), {block(code), block(code + 16), load(data)});
    feed(chosen, all);
    const auto found = split.results();
    BOOST_TEST(found[0].fetches.references == 10U * (20 + 16));
    BOOST_TEST(found[0].fetches.misses == 3U + 1);
    BOOST_TEST(found[0].unknown_blocks == 0U);
    BOOST_TEST(asked == 2U);
    BOOST_TEST(found[1].loads.misses == 1U);
    // Missing lines go to the next level, and two of the lines are half a line there.
    BOOST_TEST(found[2].fetches.references == 4U);
    BOOST_TEST(found[2].fetches.misses == 3U);

    // An instruction on two lines is one miss, and so is the next one, which is on the second.
    analyses other;
    const std::uint8_t lengths[] = {6, 2, 15};
    const auto& small =
        other.make<cache_misses>(parse_cache_levels("I1=1K,8,1"), [&](std::uint64_t) {
            return address_trace::block_code{0x100C, lengths};
        });
    feed(other, {block(code)});
    BOOST_TEST(small.results()[0].fetches.references == 3U);
    BOOST_TEST(small.results()[0].fetches.misses == 2U);

    // Unknown parts are reported. present: unknown_blocks
    feed(chosen, {block(code + 32), block(code + 32), block(code)});
    BOOST_TEST(split.results()[0].unknown_blocks == 2U);
    BOOST_TEST(split.results()[0].fetches.references == 10U * (20 + 16) + 2 + 20);
}

BOOST_AUTO_TEST_CASE(memory_has_the_owner_that_allocated_it_last) {
    analyses chosen;
    const auto& found = chosen.make<address_trace::allocations>(std::size_t{3});
    const auto allocated = [](std::uint64_t at, std::uint32_t size, std::uint64_t site) {
        return reference{at, site, reference_kind::allocation, size};
    };
    feed(chosen, {allocated(0x100, 0x40, code), allocated(0x140, 0x40, code + 16)});
    using ranges = std::vector<address_trace::allocated_range>;
    BOOST_TEST((found.find(0x13F, 1) == ranges{{0x100, 0x140, 0}}));
    BOOST_TEST((found.find(0x13F, 2) == ranges{{0x100, 0x140, 0}, {0x140, 0x180, 1}}));
    BOOST_TEST(found.find(0x180, 64).empty());
    BOOST_TEST(found.find(0xC0, 64).empty());
    // One that takes the end of the first and all of the second.
    feed(chosen, {allocated(0x120, 0x100, code + 32)});
    BOOST_TEST((found.find(0x100, 0x100) == ranges{{0x120, 0x220, 2}}));
    BOOST_TEST(found.left_out() == 0U);
    feed(chosen,
         {allocated(0x1000, 8, code), allocated(0x2000, 8, code), allocated(0x3000, 8, code)});
    BOOST_TEST(found.left_out() == 1U);
    BOOST_TEST(found.find(0x3000, 8).empty());
    // Nothing of it references anything.
    BOOST_TEST(sum(chosen.sites().all()).data() == 0U);
    BOOST_TEST(sum(chosen.sites().all()).allocations == 6U);
}

BOOST_AUTO_TEST_CASE(misses_add_up_by_site_and_do_not_depend_on_the_runs) {
    const auto all = patterns(20'000)[5].all;
    const auto found = misses_of(all, "L1=1K,64,2+L2=4K,64,4");
    for (const std::size_t most : {1U, 7U, 20'000U}) {
        const auto other = misses_of(all, "L1=1K,64,2+L2=4K,64,4", most);
        for (std::size_t i = 0; i < found.size(); ++i) {
            BOOST_TEST((other[i].all() == found[i].all()));
            BOOST_TEST(other[i].by_site == found[i].by_site);
        }
    }
    for (const cache_result& each : found) {
        std::uint64_t sum = 0;
        for (const std::uint64_t of_site : each.by_site) sum += of_site;
        BOOST_TEST(sum == each.all().misses);
    }
    // One site that misses always, one that never does.
    std::vector<reference> two;
    for (std::uint64_t i = 0; i < 100; ++i) {
        two.push_back(load(data, 8, code));
        two.push_back(store(data + 64 + 4096 * i, 8, code + 16));
    }
    BOOST_TEST(misses_of(two, "D1=4K,64,2")[0].by_site == (std::vector<std::uint64_t>{1, 100}),
               boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_reference_on_two_lines_is_one_and_one_miss) {
    const auto found = misses_of({load(data + 60), load(data + 64), load(data + 124), load(data)},
                                 "D1=1K,64,2+L2=8K,64,2");
    BOOST_TEST(found[0].loads.references == 4U);
    BOOST_TEST(found[0].loads.misses == 2U);
    BOOST_TEST(found[1].loads.references == 2U);
    // At the end of the address space there is no line behind the last one.
    BOOST_TEST(misses_of({load(~std::uint64_t{0} - 3)}, "D1=1K,64,2")[0].loads.misses == 1U);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_a_cache_is_refused_with_the_part_that_is_wrong) {
    const auto two = parse_cache_levels("DTLB=64,4K,4/ITLB=32,4096,32+L2TLB=1536,4K,12");
    BOOST_REQUIRE(two.all.size() == 2U);
    BOOST_TEST(two.all[0][0].sets == 16U);
    BOOST_TEST(two.all[0][1].sets == 1U);
    BOOST_TEST(describe(two.all[1][0]) == "1536 pages of 4 KiB, 12 ways");
    BOOST_TEST(describe(parse_cache_levels("L=48K,64,1").all[0][0]) ==
               "48 KiB, 64-byte lines, 1 way");

    for (const char* const wrong : {"",
                                    "D1",
                                    "D1=",
                                    "=32K,64,8",
                                    "D1=32K,64",
                                    "D1=32K,64,8,1",
                                    "D1=32K,64,8,mru",
                                    "D1=32K,64,8,lru:3",
                                    "D1=32K,64,8,random:0",
                                    "D1=24K,64,6,plru",
                                    "D1=0,64,8",
                                    "D1=32K,48,8",
                                    "D1=32K,4,8",
                                    "D1=32K,64,0",
                                    "D1=32K,64,7",
                                    "D1=32X,64,8",
                                    "D1=32K,64,8+",
                                    "D1=100,64,1",
                                    "D1=99999999999999999999,64,8",
                                    "D1=18446744073709551615G,64,8",
                                    "D1=1024G,8,1",
                                    "D1=32K,64,8/L1=32K,64,8",
                                    "TLB=64,4096",
                                    "TLB=64,4096,5",
                                    "D1=-32K,64,8"}) {
        BOOST_TEST_CONTEXT(wrong) {
            BOOST_CHECK_THROW(static_cast<void>(parse_cache_levels(wrong)), std::invalid_argument);
        }
    }
    BOOST_CHECK_EXCEPTION(static_cast<void>(parse_cache_levels("D1=32K,64,8+L2=1M,63,8")),
                          std::invalid_argument, [](const std::invalid_argument& error) {
                              return std::string(error.what()) ==
                                     "cache 'L2=1M,63,8': the line must be a power of two";
                          });
}

}  // namespace

BOOST_AUTO_TEST_SUITE_END()
