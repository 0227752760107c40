// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// CPTRAP's CP interface: its gate, what it chooses, a guest's parameter list, and where it stores.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <trace_ring/cptrap/interface.hpp>
#include <trace_ring/policy/clock/none.hpp>
#include <trace_ring/policy/full/discard_newest.hpp>
#include <trace_ring/policy/storage/inline_bytes.hpp>
#include <trace_ring/recorder/recorder.hpp>
#include <trace_ring/reduce/trace_file.hpp>
#include <trace_ring/ring/ring.hpp>

#include "das/storage.hpp"
#include "recorder/kinds.hpp"

namespace cptrap_interface {

namespace cptrap = trace_ring::cptrap;
namespace record = trace_ring::record;
using cptrap::outcome;
using das_test::guest;
using trace_ring::program_exception;
using buffer = std::vector<std::byte>;

namespace {

struct trap_trace
    : trace_ring::policies<record::sub_buffers<>, trace_ring::full::discard_newest,
                           trace_ring::clock::none, trace_ring::storage::inline_bytes<65536>> {};
using trap_ring = trace_ring::ring<trap_trace>;
static_assert(cptrap::ring_of_bytes<trap_ring> && !cptrap::recorder_of_events<trap_ring>);
static_assert(cptrap::recorder_of_events<trace_ring::recorder>);

constinit cptrap::trapok at_load;  // needs no constructor to have run

buffer counted(std::size_t count, unsigned first = 1) {
    buffer out(count);
    for (auto& one : out) one = static_cast<std::byte>(first++);
    return out;
}

/// What lies in a ring, padding cut off.
template <class Ring>
std::vector<buffer> stored(const Ring& ring) {
    std::vector<buffer> out;
    auto reader = ring.reader();
    while (const auto item = reader.next()) {
        const auto all = std::as_bytes(item.payload);
        const auto seen = record::view_cptrap(all);
        BOOST_REQUIRE(seen);
        BOOST_TEST(item.id == static_cast<std::uint16_t>(seen->type));
        BOOST_TEST(all.size() - seen->bytes.size() < 8U);
        BOOST_TEST(std::all_of(all.begin() + static_cast<std::ptrdiff_t>(seen->bytes.size()),
                               all.end(), [](std::byte b) { return b == std::byte{0}; }));
        out.emplace_back(seen->bytes.begin(), seen->bytes.end());
    }
    return out;
}

buffer laid_out(std::uint16_t code, const buffer& data) {
    buffer out(record::cptrap_most_bytes);
    out.resize(record::put_cptrap(out, record::cptrap_type::cp_interface, code, data));
    return out;
}

/// A guest's storage that must not be looked at.
struct forbidden_storage {
    program_exception test(std::uint32_t, std::uint32_t, trace_ring::guest_access) {
        BOOST_ERROR("tested");
        return program_exception::none;
    }
    std::uint32_t fetch(std::uint32_t) {
        BOOST_ERROR("fetched");
        return 0;
    }
    bool swap(std::uint32_t, std::uint32_t&, std::uint32_t) {
        BOOST_ERROR("swapped");
        return true;
    }
    void store(std::uint32_t, std::span<const std::byte>) { BOOST_ERROR("stored"); }
    void serialize() { BOOST_ERROR("serialized"); }
};

struct fixture {
    fixture() { trapok.start(everything); }

    static constexpr auto everything = record::cptrap_selection::everything();
    cptrap::trapok trapok;
    std::unique_ptr<trap_ring> ring = std::make_unique<trap_ring>();
    cptrap::cp_interface<trap_ring> trap{trapok, *ring};
    guest storage{0x4000};

    void put_list(std::uint32_t at, const record::cptrap_list& list) {
        list.store(storage.bytes().subspan(at).first<8>());
    }
    void put_data(std::uint32_t at, const buffer& data) {
        std::copy(data.begin(), data.end(), storage.bytes().begin() + at);
    }
};

}  // namespace

}  // namespace cptrap_interface

BOOST_FIXTURE_TEST_SUITE(cptrap_interface, fixture)

BOOST_AUTO_TEST_CASE(c5_an_inactive_cptrap_returns_at_once_and_leaves_no_record) {
    trapok.stop();
    forbidden_storage untouched;
    BOOST_TEST((trap.hand_over(3, counted(4)) == outcome::inactive));
    BOOST_TEST((trap.entry({}) == outcome::inactive));
    BOOST_TEST((trap.call(untouched, 0x100) == cptrap::call_result{outcome::inactive}));
    BOOST_TEST(stored(*ring).empty());
    BOOST_TEST(ring->produced() == trace_ring::no_position);
    BOOST_TEST(at_load.active() == nullptr);
}

BOOST_AUTO_TEST_CASE(c1_a_guests_list_becomes_its_record) {
    auto memory = storage.memory();
    put_list(0x200, record::cptrap_list::of(4, 3, 0x300));
    put_data(0x300, {std::byte{0xC1}, std::byte{0xC2}, std::byte{0xC3}, std::byte{0xC4}});
    BOOST_TEST((trap.call(memory, 0x200).what == outcome::stored));
    const buffer expected{std::byte{0x3F}, std::byte{0},    std::byte{0},    std::byte{3},
                          std::byte{0},    std::byte{0x0C}, std::byte{0},    std::byte{0},
                          std::byte{0xC1}, std::byte{0xC2}, std::byte{0xC3}, std::byte{0xC4}};
    BOOST_TEST((stored(*ring) == std::vector<buffer>{expected}));
}

BOOST_AUTO_TEST_CASE(c2_and_c3_of_264_bytes_and_of_265_the_same_is_recorded) {
    auto memory = storage.memory();
    const auto data = counted(265);
    put_data(0x301, data);
    for (const unsigned length : {0x0108U, 0x0109U, 0xFFFFU}) {
        put_list(0x203, record::cptrap_list::of(static_cast<std::uint16_t>(length), 0xABCD, 0x301));
        BOOST_TEST((trap.call(memory, 0x203).what == outcome::stored));
    }
    BOOST_TEST((trap.hand_over(0xABCD, data) == outcome::stored));
    const auto all = stored(*ring);
    BOOST_TEST(all.size() == 4U);
    for (const auto& one : all) BOOST_TEST((one == laid_out(0xABCD, counted(264))));
    BOOST_TEST(ring->lost().total() == 0U);  // nothing shows it
}

BOOST_AUTO_TEST_CASE(lists_and_data_may_lie_at_every_alignment) {
    auto memory = storage.memory();
    std::vector<buffer> expected;
    for (std::uint32_t list = 0x200; list < 0x208; ++list) {
        for (std::uint32_t from = 0x300; from < 0x304; ++from) {
            for (std::uint16_t length = 0; length < 10; ++length) {
                const auto code = static_cast<std::uint16_t>(expected.size());
                const auto data = counted(length, code);
                put_data(0x2F8, counted(32, 0xA0));
                put_data(from, data);
                put_list(list, record::cptrap_list::of(length, code, from));
                BOOST_TEST((trap.call(memory, list).what == outcome::stored));
                expected.push_back(laid_out(code, data));
            }
        }
    }
    BOOST_TEST((stored(*ring) == expected));
}

BOOST_AUTO_TEST_CASE(addresses_have_24_bits) {
    auto memory = storage.memory();
    put_list(0x200, record::cptrap_list::of(2, 3, 0xFF000300));
    put_data(0x300, counted(2));
    BOOST_TEST((trap.call(memory, 0x80000200).what == outcome::stored));
    BOOST_TEST((stored(*ring) == std::vector<buffer>{laid_out(3, counted(2))}));
}

BOOST_AUTO_TEST_CASE(an_access_that_meets_an_exception_leaves_no_record_and_tells_where) {
    const trace_ring::guest_region no_page{0x1000, 0x800, trace_ring::guest_region::kind::no_page};
    auto memory = storage.memory(std::span(&no_page, 1));
    const auto call = [&](std::uint32_t list, std::uint16_t length, std::uint32_t from) {
        if (list < 0x1000 - 8) put_list(list, record::cptrap_list::of(length, 3, from));
        return trap.call(memory, list);
    };
    using result = cptrap::call_result;
    constexpr auto met = outcome::exception;
    constexpr auto paged = program_exception::page_translation;
    BOOST_TEST((call(0x0FFC, 0, 0) == result{met, paged, 0x0FFC}));
    BOOST_TEST((call(0x200, 2, 0x0FFF) == result{met, paged, 0x0FFF}));
    BOOST_TEST((call(0x200, 1, 0x17FF) == result{met, paged, 0x17FF}));
    BOOST_TEST((call(0x200, 1, 0x4000) == result{met, program_exception::addressing, 0x4000}));
    BOOST_TEST((call(0x3FFA, 1, 0) == result{met, program_exception::addressing, 0x3FFA}));
    BOOST_TEST(stored(*ring).empty());
    // Just outside, and without data the address does not matter.
    BOOST_TEST((call(0x200, 1, 0x0FFF).what == outcome::stored));
    BOOST_TEST((call(0x200, 1, 0x1800).what == outcome::stored));
    BOOST_TEST((call(0x200, 0, 0x1400).what == outcome::stored));
    // What is beyond the 264th byte is not looked at.
    BOOST_TEST((call(0x200, 0xFFFF, 0x1000 - 264).what == outcome::stored));
    BOOST_TEST((call(0x200, 0xFFFF, 0x1000 - 263) == result{met, paged, 0x1000 - 263}));
    BOOST_TEST(stored(*ring).size() == 4U);
}

BOOST_AUTO_TEST_CASE(only_what_is_chosen_is_recorded_and_the_choice_may_change) {
    static constexpr auto some =
        record::cptrap_selection().code(3).event(record::cp_event::start_io);
    static constexpr auto others = record::cptrap_selection().code(4);
    auto memory = storage.memory();
    record::cp_entry start_io, iucv;
    start_io.set(record::cp_event::start_io, true);
    iucv.set(record::cp_event::iucv);

    trapok.start(some);
    BOOST_TEST((trap.hand_over(3, {}) == outcome::stored));
    BOOST_TEST((trap.hand_over(4, {}) == outcome::not_selected));
    put_list(0x200, record::cptrap_list::of(1, 4, 0x00FFFFFF));  // data beyond storage
    BOOST_TEST((trap.call(memory, 0x200).what == outcome::not_selected));
    BOOST_TEST((trap.entry(start_io) == outcome::stored));
    BOOST_TEST((trap.entry(iucv) == outcome::not_selected));
    trapok.start(others);
    BOOST_TEST((trap.hand_over(3, {}) == outcome::not_selected));
    BOOST_TEST((trap.hand_over(4, {}) == outcome::stored));
    BOOST_TEST((trap.entry(start_io) == outcome::not_selected));

    const auto all = stored(*ring);
    BOOST_REQUIRE(all.size() == 3U);
    BOOST_TEST((all[0] == laid_out(3, {})));
    const auto entry = record::view_cptrap(all[1])->entry();
    BOOST_REQUIRE(entry.has_value());
    BOOST_TEST((*entry == start_io));
    BOOST_TEST(record::view_cptrap(all[1])->code == 0x4B);
    BOOST_TEST((all[2] == laid_out(4, {})));
}

BOOST_AUTO_TEST_CASE(any_number_of_interfaces_store_into_one_ring_in_the_order_of_their_calls) {
    std::vector<cptrap::cp_interface<trap_ring>> traps(200, {trapok, *ring});
    std::vector<buffer> expected;
    for (std::uint16_t code = 0; code < 200; ++code) {
        BOOST_TEST((traps[199U - code].hand_over(code, counted(code)) == outcome::stored));
        expected.push_back(laid_out(code, counted(code)));
    }
    BOOST_TEST((stored(*ring) == expected));
}

BOOST_AUTO_TEST_CASE(a_ring_without_room_refuses_and_counts) {
    std::uint64_t taken = 0;
    while (trap.hand_over(1, counted(264)) == outcome::stored) ++taken;
    BOOST_TEST((trap.hand_over(1, counted(264)) == outcome::refused));
    BOOST_TEST(ring->lost()[trace_ring::loss_cause::refused] == 2U);
    BOOST_TEST(stored(*ring).size() == taken);
    BOOST_TEST(taken > 200U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_recorder_takes_what_all_threads_hand_over, Kind, test::kinds) {
    trace_ring::basic_recorder<Kind> recorder{{.size = 1 << 20}};
    const cptrap::cp_interface shared(trapok, recorder);
    std::atomic<std::uint64_t> taken{0};
    std::vector<std::thread> threads;
    for (std::uint16_t t = 0; t < 3; ++t) {
        threads.emplace_back([&, t] {
            for (unsigned i = 0; i < 100; ++i)
                taken += shared.hand_over(t, counted(i, t)) == outcome::stored ? 1 : 0;
        });
    }
    for (auto& one : threads) one.join();
    BOOST_TEST(taken == 300U);
    const auto [memory, size] = recorder.bytes();
    const auto trace = trace_ring::reduce::trace_file::from({memory, size});
    std::array<std::size_t, 3> found{};
    for (auto cursor = trace.forward(); const auto* item = cursor.next();) {
        const auto& one = std::get<trace_ring::reduce::record_view>(*item);
        const auto data = one.field("data");
        const auto code = static_cast<std::size_t>(one.field("code").u64());
        BOOST_REQUIRE(code < 3);
        BOOST_TEST(data.size() == found[code]++);  // a thread's are in the order of its calls
        for (std::size_t i = 0; i < data.size(); ++i)
            if (data.at(i).u64() != static_cast<std::uint8_t>(code + i)) BOOST_ERROR("byte " << i);
    }
    for (const std::size_t each : found) BOOST_TEST(each == 100U);
}

BOOST_AUTO_TEST_CASE(a_recorder_records_an_event_with_the_code_as_a_field_and_the_bytes) {
    trace_ring::recorder recorder{{.size = 1 << 20}};
    const cptrap::cp_interface shared(trapok, recorder);
    std::thread other(
        [&] { BOOST_TEST((shared.hand_over(0xABCD, counted(265)) == outcome::stored)); });
    other.join();
    BOOST_TEST((shared.hand_over(3, counted(5)) == outcome::stored));
    trapok.stop();
    BOOST_TEST((shared.hand_over(4, counted(5)) == outcome::inactive));

    const auto [memory, size] = recorder.bytes();
    const auto trace = trace_ring::reduce::trace_file::from({memory, size});
    std::vector<std::pair<std::uint64_t, std::size_t>> found;
    for (auto cursor = trace.forward(); const auto* item = cursor.next();) {
        const auto* one = std::get_if<trace_ring::reduce::record_view>(item);
        if (one == nullptr) continue;
        BOOST_TEST(std::string(one->name()) == "cptrap");
        BOOST_TEST(one->field("type").u64() == 0x3FU);
        const auto data = one->field("data");
        found.emplace_back(one->field("code").u64(), data.size());
        for (std::size_t i = 0; i < data.size(); ++i) {
            if (data.at(i).u64() != static_cast<std::uint8_t>(i + 1)) BOOST_ERROR("byte " << i);
        }
    }
    BOOST_TEST(
        (found == std::vector<std::pair<std::uint64_t, std::size_t>>{{0xABCD, 264}, {3, 5}}));
}

BOOST_AUTO_TEST_SUITE_END()
