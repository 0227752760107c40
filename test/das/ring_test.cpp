// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// Host rings that are advanced and laid out as the historic tables are: DAS entries under the DAS
// rule, CP entries under CP's, by pointers and by offsets.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <thread>
#include <tuple>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <trace_ring/cptrap/cp_entry.hpp>
#include <trace_ring/das/control_words.hpp>
#include <trace_ring/das/entry.hpp>
#include <trace_ring/ring/ring.hpp>

BOOST_AUTO_TEST_SUITE(das_ring)

namespace claim = trace_ring::claim;
namespace record = trace_ring::record;

namespace {

using storage_of_8_das = trace_ring::storage::inline_bytes<8 * sizeof(record::das_entry)>;
using storage_of_8_cp = trace_ring::storage::inline_bytes<8 * sizeof(record::cp_entry)>;

struct das_by_pointer
    : trace_ring::policies<record::das_entry, claim::das_pointers, storage_of_8_das> {};
struct das_by_offset
    : trace_ring::policies<record::das_entry, claim::das_offsets, storage_of_8_das> {};
struct cp_by_pointer : trace_ring::policies<record::cp_entry, claim::cp_pointers, storage_of_8_cp> {
};
struct cp_by_offset : trace_ring::policies<record::cp_entry, claim::cp_offsets, storage_of_8_cp> {};

using kinds = std::tuple<das_by_pointer, das_by_offset, cp_by_pointer, cp_by_offset>;

void fill(record::das_entry& entry, std::uint32_t number) {
    entry.fill(number, ~number);
}
void fill(record::cp_entry& entry, std::uint32_t number) {
    entry.set(record::cp_event::run_user);
    std::memcpy(entry.payload, &number, sizeof number);
}
std::uint32_t number_in(const record::das_entry& entry) {
    std::uint32_t number = 0, inverse = 0;
    entry.unpack(number, inverse);
    BOOST_TEST(inverse == ~number);
    return number;
}
std::uint32_t number_in(const record::cp_entry& entry) {
    std::uint32_t number = 0;
    std::memcpy(&number, entry.payload, sizeof number);
    return number;
}

}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(a_ring_of_a_historic_kind_keeps_its_newest_entries, kind, kinds) {
    static trace_ring::ring<kind> ring;
    using element = typename trace_ring::ring<kind>::element;
    BOOST_TEST_REQUIRE(ring.capacity() == 8U);
    for (std::uint32_t i = 1; i <= 19; ++i) {
        auto slot = ring.try_reserve();
        BOOST_TEST_REQUIRE(static_cast<bool>(slot));
        fill(*slot, i);
        const element* const place = &*slot;
        BOOST_TEST(slot.commit());
        BOOST_TEST(reinterpret_cast<const std::byte*>(place) == ring.newest());
    }
    // 17 to 19 lie before 12 to 16, one entry after the other and nothing between.
    for (std::uint32_t i = 0; i < 8; ++i) {
        element entry;
        std::memcpy(&entry, ring.slot_at(i), sizeof entry);
        BOOST_TEST(number_in(entry) == (i < 3 ? 17 + i : 9 + i));
    }
    BOOST_TEST(ring.slot_at(7) - ring.slot_at(0) ==
               static_cast<std::ptrdiff_t>(7 * sizeof(element)));
}

BOOST_AUTO_TEST_CASE(the_control_words_of_a_ring_designate_its_own_entries) {
    static trace_ring::ring<das_by_pointer> ring;
    const auto address = [&](std::uint64_t i) {
        return reinterpret_cast<std::uintptr_t>(ring.slot_at(i));
    };
    for (std::uint32_t i = 0; i < 11; ++i) ring.write();
    const auto words = claim::das_pointers::look(ring.control().claimed);
    BOOST_TEST(words.current == address(2));
    BOOST_TEST(words.first == address(0));
    BOOST_TEST(words.last == address(7) + sizeof(record::das_entry));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(threads_never_hold_the_same_slot_within_a_lap, kind, kinds) {
    constexpr std::size_t threads = 4, laps = 200;
    static trace_ring::ring<kind> ring;
    // Each lap, four threads take two slots each: all eight, none twice.
    for (std::size_t lap = 0; lap < laps; ++lap) {
        std::array<std::array<const void*, 2>, threads> taken{};
        std::vector<std::thread> running;
        for (std::size_t n = 0; n < threads; ++n)
            running.emplace_back([&, n] {
                for (auto& place : taken[n]) {
                    auto slot = ring.try_reserve();
                    place = &*slot;
                    fill(*slot, static_cast<std::uint32_t>(n));
                    slot.commit();
                }
            });
        for (auto& thread : running) thread.join();
        std::set<const void*> all;
        for (const auto& by_one : taken) all.insert(by_one.begin(), by_one.end());
        BOOST_TEST_REQUIRE(all.size() == 8U);
    }
}

BOOST_AUTO_TEST_SUITE_END()
