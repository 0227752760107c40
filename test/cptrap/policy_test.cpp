// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// CPTRAP records as a ring's record policy: with every claim and what full that takes records of
// variable length, read forward and backward; and CP's wrap table as well.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <trace_ring/cptrap/cp_entry.hpp>
#include <trace_ring/cptrap/interface.hpp>
#include <trace_ring/cptrap/ring_record.hpp>
#include <trace_ring/policy/claim/single_writer.hpp>
#include <trace_ring/policy/clock/monotonic.hpp>
#include <trace_ring/policy/clock/none.hpp>
#include <trace_ring/policy/full/block.hpp>
#include <trace_ring/policy/full/discard_newest.hpp>
#include <trace_ring/policy/full/overwrite_oldest.hpp>
#include <trace_ring/policy/full/stop.hpp>
#include <trace_ring/policy/gate/flag.hpp>
#include <trace_ring/policy/storage/heap.hpp>
#include <trace_ring/policy/storage/inline_bytes.hpp>
#include <trace_ring/policy/storage/mapped.hpp>
#include <trace_ring/ring/ring.hpp>

BOOST_AUTO_TEST_SUITE(cptrap_policy)

namespace record = trace_ring::record;
namespace claim = trace_ring::claim;
namespace full = trace_ring::full;
namespace storage = trace_ring::storage;
using trace_ring::policies;
using trace_ring::ring_policies;
using buffer = std::vector<std::byte>;

namespace {

using record::cptrap_record;

struct overwriting : policies<cptrap_record<>, full::overwrite_oldest> {};
struct discarding
    : policies<cptrap_record<512>, full::discard_newest, storage::inline_bytes<8192>> {};
struct stopping : policies<cptrap_record<>, full::stop, trace_ring::clock::none> {};
struct blocking : policies<cptrap_record<1024>, full::block<std::chrono::seconds{1}>,
                           trace_ring::clock::monotonic, trace_ring::gate::flag> {};
thread_local trace_ring::ring<overwriting> own;
struct on_the_heap : policies<cptrap_record<32768>, storage::heap> {};

/// Makes each kind, with 64 KiB or more where it is asked.
template <class Kind>
std::unique_ptr<trace_ring::ring<Kind>> make() {
    if constexpr (trace_ring::storage::fixed<typename ring_policies<Kind>::storage_policy>) {
        return std::make_unique<trace_ring::ring<Kind>>();
    } else {
        return std::make_unique<trace_ring::ring<Kind>>(1U << 18U);
    }
}

buffer data_of(std::uint16_t code) {
    buffer out(code % 270U);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::byte>(code + i);
    return out;
}
bool holds(const record::cptrap_view& seen, std::uint16_t code) {
    auto expected = data_of(code);
    expected.resize(std::min<std::size_t>(expected.size(), record::cptrap_most_data));
    return seen.type == record::cptrap_type::cp_interface && seen.code == code &&
           std::equal(seen.data().begin(), seen.data().end(), expected.begin(), expected.end());
}

template <class Reader, class Policy>
std::vector<std::uint16_t> codes_of(Reader reader, Policy) {
    std::vector<std::uint16_t> out;
    while (const auto item = reader.next()) {
        if (!item.is_record()) continue;
        const auto seen = Policy::see(item);
        BOOST_REQUIRE(seen.has_value());
        if (!holds(*seen, seen->code)) BOOST_ERROR("record " << seen->code);
        out.push_back(seen->code);
    }
    return out;
}

template <class Kind>
void check_one_writer() {
    using policy = typename ring_policies<Kind>::record_policy;
    const auto ring = make<Kind>();
    std::vector<std::uint16_t> taken;
    for (std::uint16_t code = 0; code < 100; ++code) {
        if (ring->put(code, std::span<const std::byte>(data_of(code)))) taken.push_back(code);
    }
    BOOST_TEST(taken.size() > 20U);
    auto found = codes_of(ring->reader(), policy{});
    BOOST_TEST(!found.empty());
    // What is there is the newest or, where it refuses, all that was taken.
    BOOST_REQUIRE(found.size() <= taken.size());
    BOOST_TEST(std::equal(found.rbegin(), found.rend(), taken.rbegin()));
    if (!ring_policies<Kind>::full_policy::overwrites) BOOST_TEST((found == taken));
    auto back = codes_of(ring->backward_reader(), policy{});
    std::reverse(back.begin(), back.end());
    BOOST_TEST((back == found));
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_ring_of_each_kind_takes_cptrap_records_and_gives_them_back_both_ways) {
    check_one_writer<overwriting>();
    check_one_writer<discarding>();
    check_one_writer<stopping>();
    check_one_writer<blocking>();
    check_one_writer<on_the_heap>();
    check_one_writer<trace_ring::presets::traps<>>();
}

BOOST_AUTO_TEST_CASE(a_record_lies_in_the_ring_to_the_bit_and_its_type_is_the_rings_id) {
    using policy = record::cptrap_record<>;
    const auto ring = make<trace_ring::presets::traps<>>();
    const std::array data{std::byte{0xC1}, std::byte{0xC2}, std::byte{0xC3}, std::byte{0xC4}};
    record::cp_entry entry;
    entry.set(record::cp_event::start_io, true);
    BOOST_TEST(ring->put(std::uint16_t{3}, std::span<const std::byte>(data)));
    BOOST_TEST(ring->put(entry));
    BOOST_TEST(
        ring->put(record::cptrap_type{0xC1}, std::uint16_t{9}, std::span<const std::byte>()));
    BOOST_TEST(ring->put(std::uint16_t{4}, std::span<const std::byte>(buffer(265))));
    auto reader = ring->reader();
    const auto first = reader.next();
    BOOST_TEST(first.id == 0x3FU);
    const buffer c1{std::byte{0x3F}, std::byte{0},    std::byte{0},    std::byte{3},
                    std::byte{0},    std::byte{0x0C}, std::byte{0},    std::byte{0},
                    std::byte{0xC1}, std::byte{0xC2}, std::byte{0xC3}, std::byte{0xC4}};
    const auto seen = policy::see(first);
    BOOST_REQUIRE(seen.has_value());
    BOOST_TEST(std::equal(c1.begin(), c1.end(), seen->bytes.begin(), seen->bytes.end()));
    BOOST_TEST((policy::see(reader.next())->entry() == entry));
    BOOST_TEST(policy::see(reader.next())->code == 9U);
    BOOST_TEST(policy::see(reader.next())->data().size() == 264U);  // and nothing shows it
    BOOST_TEST(!reader.next());
    BOOST_TEST(ring->lost().total() == 0U);

    // Other contents are not a record: another id, a length that is not the payload's.
    BOOST_TEST(ring->write_bytes(1, c1));
    auto longer = c1;
    longer.resize(24);
    BOOST_TEST(ring->write_bytes(0x3F, longer));
    for (int i = 0; i < 2; ++i) {
        const auto item = reader.next();
        BOOST_REQUIRE(item.is_record());
        BOOST_TEST(!policy::see(item).has_value());
    }
}

BOOST_AUTO_TEST_CASE(a_thread_may_have_a_ring_of_its_own) {
    std::vector<std::thread> threads;
    std::array<std::size_t, 3> found{};
    for (std::uint16_t t = 0; t < 3; ++t) {
        threads.emplace_back([&found, t] {
            for (std::uint16_t i = 0; i < 20U + t; ++i) {
                static_cast<void>(own.put(i, std::span<const std::byte>(data_of(i))));
            }
            auto reader = own.reader();
            while (const auto item = reader.next()) {
                const auto seen = ring_policies<overwriting>::record_policy::see(item);
                if (seen && holds(*seen, seen->code)) ++found[t];
            }
        });
    }
    for (auto& one : threads) one.join();
    for (std::size_t t = 0; t < found.size(); ++t) BOOST_TEST(found[t] == 20 + t);
}

BOOST_AUTO_TEST_CASE(the_interface_stores_into_such_rings_as_into_rings_of_bytes) {
    static constexpr auto some = record::cptrap_selection().codes(0, 9);
    trace_ring::cptrap::trapok trapok;
    trapok.start(some);
    const auto ring = make<overwriting>();
    const trace_ring::cptrap::cp_interface trap(trapok, *ring);
    for (std::uint16_t code = 0; code < 20; ++code) {
        static_cast<void>(trap.hand_over(code, data_of(code)));
    }
    BOOST_TEST(codes_of(ring->reader(), ring_policies<overwriting>::record_policy{}).size() == 10U);
}

BOOST_AUTO_TEST_CASE(the_wrap_table_beside_it_is_read_forward_and_backward) {
    struct wrap_table
        : policies<record::cp_entry, full::overwrite_oldest, storage::inline_bytes<4096>> {};
    const auto table = std::make_unique<trace_ring::ring<wrap_table>>();
    const unsigned written = 3 * static_cast<unsigned>(table->capacity()) + 5;
    for (unsigned i = 0; i < written; ++i) {
        record::cp_entry entry;
        entry.set(static_cast<record::cp_event>(1 + i % 24), i % 2 != 0);
        record::store_big(entry.payload, 3, i);
        BOOST_REQUIRE(table->write(entry));
    }
    std::vector<std::uint32_t> forward, backward;
    const auto take = [](auto reader, std::vector<std::uint32_t>& into) {
        while (const auto item = reader.next()) {
            if (!item.is_record()) continue;
            const auto i = record::load_big<std::uint32_t>(item.record.payload, 3);
            BOOST_TEST(static_cast<unsigned>(item.record.event()) == 1 + i % 24);
            BOOST_TEST(item.record.attached() == (i % 2 != 0));
            into.push_back(i);
        }
    };
    take(table->reader(), forward);
    take(table->backward_reader(), backward);
    BOOST_REQUIRE(forward.size() == table->capacity());
    for (std::size_t k = 0; k < forward.size(); ++k) {
        BOOST_TEST(forward[k] == written - forward.size() + k);
    }
    std::reverse(backward.begin(), backward.end());
    BOOST_TEST((backward == forward));
}

BOOST_AUTO_TEST_SUITE_END()
