// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// Packed references: what is packed comes back, for any addresses; and bytes that no packer made
// give an offset, and no reference more.

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include <record/packing.hpp>
#include <trace_ring/instrument/references.hpp>

namespace {

using trace_ring::reference;
using trace_ring::reference_kind;
using trace_ring::reference_unpacker;
using trace_ring_test::packed;

/// Usual ones, and any others.
std::uint32_t some_size(std::mt19937_64& random) {
    if (random() % 2 == 0) return 1U << random() % 5;
    return std::max(1U, static_cast<std::uint32_t>(random()) >> random() % 32);
}

std::size_t unpacked(const std::vector<std::byte>& bytes, std::vector<reference>& out) {
    reference_unpacker unpacker;
    return unpacker.unpack(bytes.data(), bytes.size(),
                           [&](const reference& each) { out.push_back(each); });
}

BOOST_AUTO_TEST_CASE(what_is_packed_comes_back) {
    std::mt19937_64 random(5);
    for (int round = 0; round < 200; ++round) {
        std::vector<reference> all(static_cast<std::size_t>(random() % 3000));
        for (auto& each : all) {
            // Programs come back to their places; and an address may be anything.
            each.site = 0x401000 + random() % (round % 2 == 0 ? 64 : 1 << 20);
            if (random() % 100 == 0) each.site = random() >> 8 | 1;
            each.kind = static_cast<reference_kind>(random() % 8);
            if (has_size(each.kind)) each.size = some_size(random);
            if (each.kind == reference_kind::failed_compare) each.size = 1U << random() % 5;
            each.address = random() >> (random() % 64);
            if (each.kind == reference_kind::block) each.address = each.site;
        }
        const auto bytes = packed(all);
        std::vector<reference> back;
        BOOST_REQUIRE_EQUAL(unpacked(bytes, back), bytes.size());
        BOOST_REQUIRE(back == all);
    }
}

BOOST_AUTO_TEST_CASE(a_loop_over_a_row_takes_two_bytes_a_reference) {
    std::vector<reference> all;
    for (std::uint64_t i = 0; i < 4000; ++i) {
        all.push_back({0x401010, 0x401010, reference_kind::block, 0});
        all.push_back({0x7f0000000000 + i * 8, 0x401020, reference_kind::load, 8});
        all.push_back({0x7f1000000000 + i * 4, 0x401030, reference_kind::store, 4});
    }
    BOOST_TEST(packed(all).size() < 4000 * 5 + 100);
}

// One byte more than loads of usual sizes, so that vectors and atomics cost little.
BOOST_AUTO_TEST_CASE(other_sizes_and_kinds_take_a_byte_more) {
    std::vector<reference> all;
    for (std::uint64_t i = 0; i < 4000; ++i) {
        all.push_back({0x7f0000000000 + i * 32, 0x401020, reference_kind::load, 32});
        all.push_back({0x7f1000000000 + i * 10, 0x401030, reference_kind::store, 10});
        all.push_back({0x7f2000000000, 0x401040, reference_kind::update, 8});
        all.push_back({0x7f2000000000, 0x401050, reference_kind::failed_compare, 8});
    }
    BOOST_TEST(packed(all).size() < 4000 * (3 + 3 + 2 + 2) + 100);
}

BOOST_AUTO_TEST_CASE(plain_ones_are_read_as_far_as_they_make_sense) {
    using trace_ring::plain_reference;
    const std::vector<reference> all{{0x1000, 0x401000, reference_kind::load, 61},
                                     {0x2000, 0x401010, reference_kind::store, 62},
                                     {0x3000, 0x401020, reference_kind::update, 64},
                                     {0x401030, 0x401030, reference_kind::block, 0},
                                     {0x5000, 0x401038, reference_kind::allocation, 24},
                                     {0x4000, 0x401040, reference_kind::store, 0xFFFFFFFF}};
    std::vector<plain_reference> plain;
    for (const auto& each : all) {
        const auto made = trace_ring_test::impl::plain(each);
        plain.insert(plain.end(), made.begin(), made.end());
    }
    BOOST_TEST(plain.size() == all.size() + 3);
    const auto read = [&] {
        std::vector<reference> out;
        const std::size_t end =
            trace_ring::visit_plain(plain, [&](const reference& each) { out.push_back(each); });
        return std::pair{end, out};
    };
    BOOST_TEST((read() == std::pair{plain.size(), all}));
    // No more than fit, and none without its extension.
    BOOST_TEST(trace_ring::whole_references(plain, 100) == plain.size());
    BOOST_TEST(trace_ring::whole_references(plain, 3) == 3U);
    BOOST_TEST(trace_ring::whole_references(plain, 2) == 1U);
    plain.pop_back();
    BOOST_TEST(read().first == 7U);
    plain.push_back({1, 0x401040});  // no extension
    BOOST_TEST(read().first == 7U);
    plain.back() = {std::uint64_t{1} << 32, plain_reference::extension_code};
    BOOST_TEST(read().first == 7U);
    plain[0].what = plain_reference::extension_code;
    BOOST_TEST(read().first == 0U);
}

BOOST_AUTO_TEST_CASE(what_makes_no_sense_is_told_by_its_offset) {
    const auto of = [](std::initializer_list<int> bytes) {
        std::vector<std::byte> made;
        for (const int each : bytes) made.push_back(static_cast<std::byte>(each));
        std::vector<reference> out;
        const std::size_t end = unpacked(made, out);
        return std::pair{end, out.size()};
    };
    const auto is = [](std::size_t end, std::size_t count) { return std::pair{end, count}; };
    BOOST_TEST((of({}) == is(0, 0)));
    BOOST_TEST((of({0xF1, 0x20, 0x30, 0xF1, 0x20, 0xA0}) == is(6, 2)));  // a load, and a block
    BOOST_TEST((of({0xF1, 0x20, 0x30, 0xA0}) == is(3, 1)));        // the block's site was not given
    BOOST_TEST((of({0x30}) == is(0, 0)));                          // no site was given
    BOOST_TEST((of({0xF1, 0x20, 0xD0, 0x01}) == is(4, 1)));        // a load of a byte
    BOOST_TEST((of({0xF1, 0x20, 0xD0, 0x00}) == is(2, 0)));        // a load of nothing
    BOOST_TEST((of({0xF1, 0x20, 0xD0}) == is(2, 0)));              // its size is missing
    BOOST_TEST((of({0xF1, 0x20, 0xD0, 0x79, 0x01}) == is(2, 0)));  // and here the second byte
    BOOST_TEST((of({0xF1, 0x20, 0xE0, 0x7C, 1, 1, 1, 1, 1}) == is(2, 0)));  // more than 32 bits
    BOOST_TEST((of({0xF1, 0x20, 0xD0, 0xFC, 1}) == is(2, 0)));              // a store is none
    BOOST_TEST((of({0xF1, 0x20, 0xE0, 0xFC, 1}) == is(5, 1)));              // an allocation
    BOOST_TEST((of({0xF1, 0x20, 0xE0, 0xFC, 0}) == is(2, 0)));              // of nothing
    BOOST_TEST((of({0xF1, 0x20, 0x39}) == is(2, 0)));                       // nine bytes
    BOOST_TEST((of({0xF1, 0x20, 0x30, 0x32, 0x01}) == is(3, 1)));           // one byte is missing
    BOOST_TEST((of({0xF1, 0x20, 0xA1, 0x01}) == is(2, 0)));  // a block has no difference
}

BOOST_AUTO_TEST_CASE(no_bytes_lead_it_astray) {
    std::mt19937_64 random(6);
    for (int round = 0; round < 20'000; ++round) {
        std::vector<std::byte> bytes(static_cast<std::size_t>(random() % 60));
        for (auto& each : bytes) each = static_cast<std::byte>(random());
        if (!bytes.empty()) bytes[0] = std::byte{0xF8};
        std::vector<reference> out;
        const std::size_t end = unpacked(bytes, out);
        BOOST_REQUIRE_LE(end, bytes.size());
        BOOST_REQUIRE_LE(out.size(), bytes.size());
        // What made sense makes the same sense alone.
        bytes.resize(end);
        std::vector<reference> again;
        BOOST_REQUIRE_EQUAL(unpacked(bytes, again), end);
        BOOST_REQUIRE(again == out);
    }
}

}  // namespace
