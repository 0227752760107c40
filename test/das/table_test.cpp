// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// DAS tracing by one processor: the vectors, the order of the steps, every exception and its
// priority, the programming notes, and a second model written from the rules alone.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <ranges>
#include <stdexcept>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "das/storage.hpp"
#include "proof.hpp"

using namespace das_test;

namespace das_test {
// alone.cpp: one header and a separate host.
trace_result trace_alone(std::span<std::byte> storage, const record::das_entry& entry);
}  // namespace das_test

BOOST_AUTO_TEST_SUITE(das_table)

namespace {

constexpr std::uint32_t specification = 0xFFFFFFFF;  // no control word: bits 27-31 are not zero

struct vector {
    const char* name;
    std::uint32_t current, first, last;
    std::vector<std::uint32_t> expected;  // current after each entry, or specification
};

// clang-format off
const vector vectors[] = {
    // name        start                                  current after each successive entry
    //             current     first       last
    {"D1",        0x00010000, 0x00010000, 0x00010060,    {0x00010020, 0x00010040, 0x00010000, 0x00010020}},
    {"D2",        0x0000FFE0, 0x00010000, 0x00010060,    {0x00010000}},
    {"D3",        0x00010000, 0x00010000, 0x00010050,    {0x00010020, 0x00010040, 0x00010000}},
    {"D4",        0x00010000, 0x00010010, 0x00010060,    {0x00010020, 0x00010040, specification}},
    {"D5",        0x00010008, 0x00010000, 0x00010060,    {specification}},
    {"D5 healed", 0x00010048, 0x00010000, 0x00010060,    {0x00010000, 0x00010020}},
    {"D6",        0x01010000, 0x00010000, 0x00010060,    {0x00010000, 0x00010020}},
    {"D9",        0xFFFFFFE0, 0x00010000, 0x00010060,    {0x00000000}},
};

struct designation_vector {
    const char* name;
    std::uint32_t word;
    trace_result expected;  // the table is D1's
};

const designation_vector designations[] = {
    {"D13 open",            0x80020008, trace_result::at(0x010020)},
    {"D13 bits 1-7",        0xFF020008, trace_result::at(0x010020)},
    {"D13 bits 29-31",      0x80020004, trace_result::failed(program_exception::specification, 84)},
    {"D13 closed",          0x00020004, trace_result::closed()},
    {"bit 29",              0x8002000C, trace_result::failed(program_exception::specification, 84)},
    {"bit 30",              0x8002000A, trace_result::failed(program_exception::specification, 84)},
    {"bit 31",              0x80020009, trace_result::failed(program_exception::specification, 84)},
    {"closed, all else on", 0x7FFFFFFF, trace_result::closed()},
};
// clang-format on

std::vector<std::byte> image(guest& g) {
    const auto bytes = g.bytes();
    return {bytes.begin(), bytes.end()};
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_vectors_advance_current_and_fill_the_entry_it_designates) {
    for (const auto& v : vectors) {
        BOOST_TEST_CONTEXT(v.name) {
            guest g;
            g.controls(v.current, v.first, v.last);
            auto memory = g.memory();
            std::uint32_t number = 1, current = v.current;
            for (const auto expected : v.expected) {
                const auto entry = numbered(number++);
                auto after = image(g);
                const auto result = das::trace(memory, entry);
                if (expected == specification) {
                    BOOST_TEST((result.exception == program_exception::specification));
                } else {
                    current = expected;
                    BOOST_TEST((result == trace_result::at(expected & 0x00FFFFE0)));
                    record::store_big(std::span{after}, header, expected);
                    std::memcpy(after.data() + (expected & 0x00FFFFE0), entry.payload, 32);
                }
                BOOST_TEST(g.current() == current);
                // Nothing but the current-entry control and the entry has changed.
                BOOST_TEST((image(g) == after));
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(the_designation_vectors_decide_whether_and_where_the_header_lies) {
    for (const auto& v : designations) {
        BOOST_TEST_CONTEXT(v.name) {
            guest g;
            g.controls(0x00010000, 0x00010000, 0x00010060, v.word);
            const auto before = image(g);
            auto memory = g.memory();
            BOOST_TEST((das::trace(memory, numbered(1)) == v.expected));
            BOOST_TEST((image(g) == before) == !v.expected.traced());
        }
    }
}

BOOST_AUTO_TEST_CASE(control_words_and_entries_lie_big_endian_in_storage) {
    guest g;
    g.controls(0x00010000, 0x00010000, 0x00010060);
    auto memory = g.memory();
    record::das_entry entry;
    for (int i = 0; i < 32; ++i) entry.payload[i] = static_cast<std::byte>(i + 1);
    BOOST_TEST_REQUIRE(das::trace(memory, entry).traced());
    const auto at = [&](std::uint32_t address) { return std::to_integer<int>(g.bytes()[address]); };
    BOOST_TEST(at(header) == 0x00);
    BOOST_TEST(at(header + 1) == 0x01);
    BOOST_TEST(at(header + 2) == 0x00);
    BOOST_TEST(at(header + 3) == 0x20);
    for (std::uint32_t i = 0; i < 32; ++i) BOOST_TEST(at(0x10020 + i) == static_cast<int>(i + 1));
}

BOOST_AUTO_TEST_CASE(a_host_that_includes_one_header_alone_traces_the_same) {
    for (const auto& v : vectors) {
        BOOST_TEST_CONTEXT(v.name) {
            guest g, other;
            g.controls(v.current, v.first, v.last);
            other.controls(v.current, v.first, v.last);
            auto memory = g.memory();
            for (std::uint32_t i = 0; i < 5; ++i) {
                const auto result = das::trace(memory, numbered(i));
                BOOST_TEST((trace_alone(other.bytes(), numbered(i)) == result));
                BOOST_TEST((image(g) == image(other)));
            }
        }
    }
}

// What a host leaves out is missed by the concept: one case for each of the five.
namespace {

using std::uint32_t;
using words = std::span<const std::byte>;
template <int Left_out>
struct host {
    program_exception test(uint32_t, uint32_t, guest_access) requires(Left_out != 1);
    uint32_t fetch(uint32_t) requires(Left_out != 2);
    bool swap(uint32_t, uint32_t&, uint32_t) requires(Left_out != 3);
    void store(uint32_t, words) requires(Left_out != 4);
    void serialize() requires(Left_out != 5);
};
static_assert(trace_ring::guest_storage<host<0>>);
static_assert(!trace_ring::guest_storage<host<1>>);
static_assert(!trace_ring::guest_storage<host<2>>);
static_assert(!trace_ring::guest_storage<host<3>>);
static_assert(!trace_ring::guest_storage<host<4>>);
static_assert(!trace_ring::guest_storage<host<5>>);

}  // namespace

BOOST_AUTO_TEST_CASE(the_steps_come_in_their_order) {
    guest g;
    g.controls(0x00010000, 0x00010000, 0x00010060);
    watched_memory memory{g.memory()};
    BOOST_TEST_REQUIRE(das::trace(memory, numbered(1)).traced());
    const std::vector<std::string> expected{
        "serialize",           "test fetch 000054+4", "fetch 000054+4",
        "test store 020008+8", "test fetch 020010+4", "fetch 020008+4",
        "fetch 02000C+4",      "fetch 020010+4",      "test store 010020+32",
        "swap 020008+4",       "store 010020+32",     "serialize"};
    // The order of the header's three fetches among themselves is free.
    std::ranges::sort(memory.asked.begin() + 5, memory.asked.begin() + 8);
    BOOST_TEST(memory.asked == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(with_the_gate_closed_nothing_but_the_designation_is_touched) {
    guest g;
    g.controls(0x00010008, 0, 0, 0x7F000007);
    watched_memory memory{g.memory()};
    BOOST_TEST((das::trace(memory, numbered(1)) == trace_result::closed()));
    const std::vector<std::string> expected{"serialize", "test fetch 000054+4", "fetch 000054+4"};
    BOOST_TEST(memory.asked == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(of_any_exceptions_together_the_one_of_highest_priority_is_met) {
    // One bit for each of the six; all 64 sets, so each against each.
    constexpr unsigned word_84 = 1, bits_29_31 = 2, doubleword = 4, third_word = 8, boundary = 16,
                       entry = 32;
    for (unsigned set = 0; set < 64; ++set) {
        BOOST_TEST_CONTEXT("set " << set) {
            guest g;
            g.controls(0x00010040, (set & boundary) != 0 ? 0x00010010 : 0x00010000, 0x00010060,
                       (set & bits_29_31) != 0 ? open_at_header | 4 : open_at_header);
            std::vector<guest_region> regions;
            if ((set & word_84) != 0) regions.push_back({84, 4, region::no_page});
            if ((set & doubleword) != 0) regions.push_back({header, 8, region::segment_protected});
            if ((set & third_word) != 0) regions.push_back({header + 8, 4, region::no_segment});
            if ((set & entry) != 0) regions.push_back({0x00010000, 64, region::segment_protected});
            auto memory = g.memory(regions);
            const auto before = image(g);
            const auto result = das::trace(memory, numbered(1));

            auto expected = trace_result::at(0x00010000);
            if ((set & word_84) != 0)
                expected = trace_result::failed(program_exception::page_translation, 84);
            else if ((set & bits_29_31) != 0)
                expected = trace_result::failed(program_exception::specification, 84);
            else if ((set & doubleword) != 0)
                expected = trace_result::failed(program_exception::protection, header);
            else if ((set & third_word) != 0)
                expected = trace_result::failed(program_exception::segment_translation, header + 8);
            else if ((set & boundary) != 0)
                expected = trace_result::failed(program_exception::specification, 0x00010010);
            else if ((set & entry) != 0)
                expected = trace_result::failed(program_exception::protection, 0x00010000);
            BOOST_TEST((result == expected));
            BOOST_TEST((image(g) == before) == (set != 0));
        }
    }
}

BOOST_AUTO_TEST_CASE(protection_counts_at_the_two_stores_and_nowhere_else) {
    const struct {
        guest_region at;
        trace_result expected;
    } cases[] = {
        {{84, 4, region::segment_protected}, trace_result::at(0x010020)},
        {{header, 4, region::segment_protected},
         trace_result::failed(program_exception::protection, header)},
        {{header + 4, 4, region::segment_protected},
         trace_result::failed(program_exception::protection, header)},
        {{header + 8, 4, region::segment_protected}, trace_result::at(0x010020)},
        {{0x01003F, 1, region::segment_protected},
         trace_result::failed(program_exception::protection, 0x010020)},
        {{0x010040, 32, region::segment_protected}, trace_result::at(0x010020)},
        {{0x010000, 32, region::segment_protected}, trace_result::at(0x010020)},
        // Key-controlled protection of everything there is.
        {{0, 0x01000000, region::key_protected}, trace_result::at(0x010020)},
    };
    for (const auto& c : cases) {
        BOOST_TEST_CONTEXT("region at " << c.at.first) {
            guest g;
            g.controls(0x00010000, 0x00010000, 0x00010060);
            auto memory = g.memory({&c.at, 1});
            BOOST_TEST((das::trace(memory, numbered(1)) == c.expected));
            BOOST_TEST(g.current() == (c.expected.traced() ? 0x00010020U : 0x00010000U));
        }
    }
}

BOOST_AUTO_TEST_CASE(low_address_protection_stops_both_stores_but_not_the_fetch_of_word_84) {
    guest low_entry;  // D9, whose entry lies at 000000
    low_entry.controls(0xFFFFFFE0, 0x00010000, 0x00010060);
    auto memory = low_entry.memory({}, true);
    BOOST_TEST((das::trace(memory, numbered(1)) ==
                trace_result::failed(program_exception::protection, 0)));
    BOOST_TEST(low_entry.current() == 0xFFFFFFE0U);

    guest low_header;
    low_header.controls(0x00010000, 0x00010000, 0x00010060, 0x80000100, 0x100);
    memory = low_header.memory({}, true);
    BOOST_TEST((das::trace(memory, numbered(1)) ==
                trace_result::failed(program_exception::protection, 0x100)));

    guest at_512;
    at_512.controls(0x00010000, 0x00010000, 0x00010060, 0x80000200, 0x200);
    memory = at_512.memory({}, true);
    BOOST_TEST((das::trace(memory, numbered(1)) == trace_result::at(0x00010020)));
}

BOOST_AUTO_TEST_CASE(a_header_across_two_pages_is_tested_in_both) {
    const std::uint32_t end_of_page = 0x0001FFF8;
    const guest_region next_page{0x00020000, 4096, region::no_page};
    guest g;
    g.controls(0x00010000, 0x00010000, 0x00010060, 0x80000000 | end_of_page, end_of_page);
    auto memory = g.memory();
    BOOST_TEST((das::trace(memory, numbered(1)) == trace_result::at(0x00010020)));
    memory = g.memory({&next_page, 1});
    BOOST_TEST((das::trace(memory, numbered(2)) ==
                trace_result::failed(program_exception::page_translation, 0x00020000)));
    BOOST_TEST(g.get(end_of_page) == 0x00010020U);
}

BOOST_AUTO_TEST_CASE(a_header_at_the_top_of_24_bits_has_its_third_word_at_zero) {
    guest g{0x01000000};
    g.controls(0x00010000, 0x00010000, 0x00010060, 0x80FFFFF8, 0x00FFFFF8);
    auto memory = g.memory();
    BOOST_TEST(g.get(0) == 0x00010060U);
    BOOST_TEST((das::trace(memory, numbered(1)) == trace_result::at(0x00010020)));
    BOOST_TEST((das::trace(memory, numbered(2)) == trace_result::at(0x00010040)));
    BOOST_TEST((das::trace(memory, numbered(3)) == trace_result::at(0x00010000)));
}

BOOST_AUTO_TEST_CASE(what_lies_beyond_storage_meets_addressing) {
    guest g{0x20020};
    auto memory = g.memory();
    g.controls(0x00020000, 0x00010000, 0x00030000);  // the entry would end at 020040
    BOOST_TEST((das::trace(memory, numbered(1)) ==
                trace_result::failed(program_exception::addressing, 0x00020020)));
    g.put(das::designation_location, 0x80020020);
    BOOST_TEST((das::trace(memory, numbered(1)) ==
                trace_result::failed(program_exception::addressing, 0x00020020)));
    g.put(das::designation_location, 0x80020018);  // its third word alone is beyond
    BOOST_TEST((das::trace(memory, numbered(1)) ==
                trace_result::failed(program_exception::addressing, 0x00020020)));
    guest tiny{80};
    auto nothing_at_84 = tiny.memory();
    BOOST_TEST((das::trace(nothing_at_84, numbered(1)) ==
                trace_result::failed(program_exception::addressing, 84)));
}

BOOST_AUTO_TEST_CASE(a_host_that_throws_from_an_access_test_leaves_current_as_it_was) {
    struct throwing : guest_memory {
        program_exception test(std::uint32_t address, std::uint32_t bytes, guest_access access) {
            if (address == 0x00010020) throw std::runtime_error("interruption");
            return guest_memory::test(address, bytes, access);
        }
    };
    guest g;
    g.controls(0x00010000, 0x00010000, 0x00010060);
    const auto before = image(g);
    throwing memory{g.memory()};
    BOOST_CHECK_THROW(das::trace(memory, numbered(1)), std::runtime_error);
    BOOST_TEST((image(g) == before));
}

// The programming notes.

BOOST_AUTO_TEST_CASE(last_designates_the_location_beyond_the_table) {
    guest g;
    g.controls(0x00010040, 0x00010000, 0x00010080);
    auto memory = g.memory();
    BOOST_TEST(das::trace(memory, numbered(1)).address == 0x00010060U);
    BOOST_TEST(das::trace(memory, numbered(2)).address == 0x00010000U);  // not 010080
    BOOST_TEST((g.entry(0x00010080) == record::das_entry{}));
}

BOOST_AUTO_TEST_CASE(a_high_order_byte_in_last_lets_the_table_run_on) {
    guest g;
    g.controls(0x00010020, 0x00010000, 0x01010060);
    auto memory = g.memory();
    BOOST_TEST(das::trace(memory, numbered(1)).address == 0x00010040U);
    BOOST_TEST(das::trace(memory, numbered(2)).address == 0x00010060U);  // nobody meant it
    BOOST_TEST(das::trace(memory, numbered(3)).address == 0x00010080U);
}

BOOST_AUTO_TEST_CASE(a_high_order_byte_in_first_wraps_to_an_entry_and_then_to_itself) {
    guest g;
    g.controls(0x00010040, 0x02010000, 0x00010060);
    auto memory = g.memory();
    for (std::uint32_t i = 0; i < 3; ++i) {
        BOOST_TEST(das::trace(memory, numbered(i)).address == 0x00010000U);
        BOOST_TEST(g.current() == 0x02010000U);
    }
}

BOOST_AUTO_TEST_CASE(a_table_may_wrap_from_high_storage_to_low) {
    guest g{0x01000000};
    g.controls(0x00FFFFC0, 0x00FFFFC0, 0x01000020);
    auto memory = g.memory();
    BOOST_TEST(das::trace(memory, numbered(1)).address == 0x00FFFFE0U);
    BOOST_TEST(das::trace(memory, numbered(2)).address == 0x00000000U);
    BOOST_TEST(g.current() == 0x01000000U);
    BOOST_TEST(das::trace(memory, numbered(3)).address == 0x00FFFFC0U);
}

BOOST_AUTO_TEST_CASE(the_entry_that_current_designates_at_first_is_used_after_a_wrap_only) {
    guest g;
    g.controls(0x00010000, 0x00010000, 0x00010060);
    auto memory = g.memory();
    BOOST_TEST_REQUIRE(das::trace(memory, numbered(1)).traced());
    BOOST_TEST_REQUIRE(das::trace(memory, numbered(2)).traced());
    BOOST_TEST((g.entry(0x00010000) == record::das_entry{}));
    BOOST_TEST_REQUIRE(das::trace(memory, numbered(3)).traced());
    BOOST_TEST((g.entry(0x00010000) == numbered(3)));
}

BOOST_AUTO_TEST_CASE(the_entry_of_a_short_table_runs_over_last_and_is_stored_whole) {
    guest g;  // D3
    g.controls(0x00010020, 0x00010000, 0x00010050);
    auto memory = g.memory();
    BOOST_TEST((das::trace(memory, numbered(1)) == trace_result::at(0x00010040)));
    BOOST_TEST((g.entry(0x00010040) == numbered(1)));
}

// The walk.

BOOST_AUTO_TEST_CASE(a_walk_goes_from_the_oldest_entry_to_the_newest) {
    for (std::uint32_t count = 1; count <= 9; ++count) {
        BOOST_TEST_CONTEXT(count << " entries") {
            guest g;
            g.controls(0x0000FFE0, 0x00010000, 0x00010080);  // four entries
            auto memory = g.memory();
            for (std::uint32_t i = 1; i <= count; ++i)
                BOOST_TEST_REQUIRE(das::trace(memory, numbered(i)).traced());
            std::vector<std::uint32_t> seen;
            const auto end = das::walk(memory, [&](std::uint32_t address, const auto& entry) {
                BOOST_TEST((entry == g.entry(address)));
                if (entry != record::das_entry{}) seen.push_back(number_of(entry));
            });
            std::vector<std::uint32_t> expected;
            for (std::uint32_t i = count > 4 ? count - 3 : 1; i <= count; ++i)
                expected.push_back(i);
            BOOST_TEST(seen == expected, boost::test_tools::per_element());
            BOOST_TEST((end == trace_result::at(g.current())));
        }
    }
}

BOOST_AUTO_TEST_CASE(a_walk_of_an_unused_table_is_one_pass) {
    guest g;
    g.controls(0x0000FFE0, 0x00010000, 0x00010060);
    auto memory = g.memory();
    std::vector<std::uint32_t> seen;
    const auto end = das::walk(memory, [&](std::uint32_t a, const auto&) { seen.push_back(a); });
    const std::vector<std::uint32_t> expected{0x010000, 0x010020, 0x010040};
    BOOST_TEST(seen == expected, boost::test_tools::per_element());
    BOOST_TEST((end == trace_result::at(0x010040)));
}

BOOST_AUTO_TEST_CASE(a_walk_ends_where_tracing_would_meet_an_exception) {
    guest g;
    auto memory = g.memory();
    const auto ignore = [](std::uint32_t, const auto&) {};
    g.controls(0x00010040, 0x00010010, 0x00010060);
    BOOST_TEST((das::walk(memory, ignore) ==
                trace_result::failed(program_exception::specification, 0x00010010)));
    g.controls(0x00020000, 0x00010000, 0x00030000);
    BOOST_TEST((das::walk(memory, ignore) ==
                trace_result::failed(program_exception::addressing, 0x00020020)));
}

// A second model, written from the rules in another way: bits are counted from the left as the
// machine's are, sums are made in 64 bits, storage is bytes.
namespace {

struct naive {
    std::vector<std::byte>& storage;
    const std::vector<guest_region>& regions;
    bool low_address_protection;

    // The byte at a 64-bit address; std::size_t has 32 bits on some hosts.
    std::byte& at(std::uint64_t address) const {
        return storage.at(static_cast<std::size_t>(address));
    }
    static std::uint64_t bits(std::uint64_t word, unsigned from, unsigned to) {
        return (word % (std::uint64_t{1} << (32 - from))) / (std::uint64_t{1} << (31 - to));
    }
    std::uint64_t word(std::uint64_t address) const {
        std::uint64_t sum = 0;
        for (std::uint64_t i = 0; i < 4; ++i)
            sum = sum * 256 + std::to_integer<std::uint64_t>(at(address + i));
        return sum;
    }
    program_exception access(std::uint64_t from, std::uint64_t bytes, bool protection) const {
        for (auto a = from; a < from + bytes; ++a)
            if (a >= storage.size()) return program_exception::addressing;
        if (protection && low_address_protection && from < 512)
            return program_exception::protection;
        for (const auto& r : regions) {
            bool inside = false;
            for (auto a = from; a < from + bytes; ++a)
                inside = inside || (a >= r.first && a - r.first < r.bytes);
            if (!inside) continue;
            if (r.what == region::no_segment) return program_exception::segment_translation;
            if (r.what == region::no_page) return program_exception::page_translation;
            if (r.what == region::segment_protected && protection)
                return program_exception::protection;
        }
        return program_exception::none;
    }
    trace_result trace(const record::das_entry& entry) {
        const auto failed = [](program_exception e, std::uint64_t address) {
            return trace_result::failed(e, static_cast<std::uint32_t>(address));
        };
        if (const auto e = access(84, 4, false); e != program_exception::none) return failed(e, 84);
        const auto designation = word(84);
        if (bits(designation, 0, 0) == 0) return trace_result::closed();
        if (bits(designation, 29, 31) != 0) return failed(program_exception::specification, 84);
        const auto origin = bits(designation, 8, 28) * 8;
        if (const auto e = access(origin, 8, true); e != program_exception::none)
            return failed(e, origin);
        const auto third = (origin + 8) % 0x1000000;
        if (const auto e = access(third, 4, false); e != program_exception::none)
            return failed(e, third);
        const auto sum = (word(origin) + 32) % 0x100000000;
        const auto current = sum < word(third) ? sum : word(origin + 4);
        if (bits(current, 27, 31) != 0)
            return failed(program_exception::specification, bits(current, 8, 31));
        const auto address = bits(current, 8, 26) * 32;
        if (const auto e = access(address, 32, true); e != program_exception::none)
            return failed(e, address);
        for (unsigned i = 0; i < 4; ++i)
            at(origin + i) = static_cast<std::byte>(bits(current, 8 * i, 8 * i + 7));
        for (unsigned i = 0; i < 32; ++i) at(address + i) = entry.payload[i];
        return trace_result::at(static_cast<std::uint32_t>(address));
    }
};

}  // namespace

BOOST_AUTO_TEST_CASE(random_tables_agree_with_a_second_model) {
    std::mt19937 random{370};
    const auto up_to = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    const auto one_in = [&](std::uint32_t n) { return up_to(n) == 0; };
    constexpr std::uint32_t size = 2048;
    // A control word somewhere in or just beyond storage; now and then askew, or with a high byte.
    const auto control = [&] {
        auto word = 32 * up_to(size / 32 + 2);
        if (one_in(12)) word += up_to(32);
        if (one_in(12)) word += up_to(256) << 24;
        if (one_in(40)) word = 0xFFFFFFE0;
        return word;
    };
    guest g{size};
    std::vector<std::byte> other(size);
    unsigned outcomes[7] = {};
    const unsigned rounds = trace_ring_test::repeats(20'000);
    for (unsigned round = 0; round < rounds; ++round) {
        const auto at = 96 + 8 * up_to(one_in(20) ? 300 : 20);
        g.put(84,
              (one_in(10) ? 0 : 0x80000000) | up_to(128) << 24 | at | (one_in(10) ? up_to(8) : 0));
        for (std::uint32_t i = 0; i < 12; i += 4)
            if (at + i + 4 <= size) g.put(at + i, control());
        std::vector<guest_region> regions(up_to(3));
        for (auto& r : regions)
            r = {4 * up_to(size / 4), 1 + up_to(one_in(8) ? size : 40),
                 static_cast<region>(up_to(4))};
        const bool low = one_in(4);
        std::ranges::copy(g.bytes(), other.begin());

        auto memory = g.memory(regions, low);
        naive second{other, regions, low};
        for (std::uint32_t i = 0; i < 3; ++i) {
            const auto entry = numbered(random() & 0x00FFFFFF);
            const auto result = das::trace(memory, entry);
            const auto expected = second.trace(entry);
            BOOST_TEST_REQUIRE((result == expected), "round " << round);
            BOOST_TEST_REQUIRE(std::ranges::equal(g.bytes(), other), "round " << round);
            switch (result.exception) {
                case program_exception::none:
                    ++outcomes[result.traced() ? 0 : 1];
                    break;
                case program_exception::specification:
                    ++outcomes[2];
                    break;
                case program_exception::protection:
                    ++outcomes[3];
                    break;
                case program_exception::addressing:
                    ++outcomes[4];
                    break;
                case program_exception::segment_translation:
                    ++outcomes[5];
                    break;
                default:
                    ++outcomes[6];
            }
        }
    }
    for (const auto count : outcomes) BOOST_TEST(count > rounds / 40);
}

BOOST_AUTO_TEST_SUITE_END()
