// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// The entry of a DAS table as a program fills it. Its size and offsets are asserted where it is
// defined.

#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <trace_ring/das/entry.hpp>

BOOST_AUTO_TEST_SUITE(das_entry)

namespace record = trace_ring::record;

BOOST_AUTO_TEST_CASE(a_das_entry_packs_values_without_gaps_and_gives_them_back) {
    record::das_entry entry;
    entry.fill(std::uint8_t{0x11}, std::uint32_t{0x22222222}, 1.5, "abc");
    BOOST_TEST(std::to_integer<int>(entry.payload[0]) == 0x11);
    BOOST_TEST(std::to_integer<int>(entry.payload[1]) == 0x22);
    BOOST_TEST(std::memcmp(entry.payload + 13, "abc", 4) == 0);

    std::uint8_t device = 0;
    std::uint32_t program = 0;
    double time = 0;
    char name[4] = {};
    entry.unpack(device, program, time, name);
    BOOST_TEST(device == 0x11);
    BOOST_TEST(program == 0x22222222U);
    BOOST_TEST(time == 1.5);
    BOOST_TEST(name == "abc");
}

BOOST_AUTO_TEST_CASE(a_das_entry_holds_exactly_32_bytes_of_values) {
    struct half {
        std::uint8_t bytes[16];
    };
    half low{}, high{};
    low.bytes[0] = 1;
    high.bytes[15] = 2;
    record::das_entry entry;
    entry.fill(low, high);
    BOOST_TEST(std::to_integer<int>(entry.payload[0]) == 1);
    BOOST_TEST(std::to_integer<int>(entry.payload[31]) == 2);
    half low_again{}, high_again{};
    entry.unpack(low_again, high_again);
    BOOST_TEST(low_again.bytes[0] == 1);
    BOOST_TEST(high_again.bytes[15] == 2);
}

BOOST_AUTO_TEST_CASE(filling_a_das_entry_again_leaves_nothing_of_what_was_there) {
    record::das_entry entry;
    entry.fill(~std::uint64_t{0}, ~std::uint64_t{0}, ~std::uint64_t{0}, ~std::uint64_t{0});
    entry.fill(std::uint16_t{0xFFFF});
    record::das_entry expected;
    expected.payload[0] = expected.payload[1] = std::byte{0xFF};
    BOOST_TEST((entry == expected));
    entry.fill();
    BOOST_TEST((entry == record::das_entry{}));
}

BOOST_AUTO_TEST_SUITE_END()
