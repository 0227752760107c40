// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// CP's own trace table.

#include <cstdint>
#include <cstring>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <trace_ring/cptrap/cp_table.hpp>

#include "das/storage.hpp"

BOOST_AUTO_TEST_SUITE(cp_table)

using namespace das_test;
namespace cp = trace_ring::cp;

namespace {

void set_up(guest& g, std::uint32_t current, std::uint32_t start, std::uint32_t end) {
    g.put(0x0C, start);
    g.put(0x10, end);
    g.put(0x14, current);
}

record::cp_entry of(record::cp_event event, bool attached = false) {
    record::cp_entry entry;
    entry.set(event, attached);
    entry.payload[14] = std::byte{0xEE};
    return entry;
}

record::cp_entry at(guest& g, std::uint32_t address) {
    record::cp_entry entry;
    std::memcpy(&entry, g.bytes().data() + address, 16);
    return entry;
}

}  // namespace

BOOST_AUTO_TEST_CASE(t1_the_last_entry_is_used_and_current_goes_back_to_the_start) {
    guest g{0x20050};
    set_up(g, 0x00020030, 0x00020000, 0x00020040);
    auto memory = g.memory();
    const auto entry = of(record::cp_event::svc_interrupt);
    BOOST_TEST((cp::trace(memory, entry) == trace_result::at(0x00020030)));
    BOOST_TEST(g.get(0x14) == 0x00020000U);
    BOOST_TEST((at(g, 0x00020030) == entry));
    BOOST_TEST(std::to_integer<int>(g.bytes()[0x20030]) == 0x02);
    BOOST_TEST(std::to_integer<int>(g.bytes()[0x2003F]) == 0xEE);
    BOOST_TEST(std::to_integer<int>(g.bytes()[0x20040]) == 0x00);
    BOOST_TEST((cp::trace(memory, entry) == trace_result::at(0x00020000)));
    BOOST_TEST(g.get(0x14) == 0x00020010U);
}

BOOST_AUTO_TEST_CASE(an_end_that_is_never_met_exactly_lets_the_table_run_on) {
    guest g;
    set_up(g, 0x00010030, 0x00010000, 0x00010048);
    auto memory = g.memory();
    for (const std::uint32_t expected : {0x10030U, 0x10040U, 0x10050U, 0x10060U})
        BOOST_TEST((cp::trace(memory, of(record::cp_event::sigp)) == trace_result::at(expected)));
}

BOOST_AUTO_TEST_CASE(two_processors_take_entries_of_their_own) {
    guest g;
    set_up(g, 0x00010000, 0x00010000, 0x00010040);
    watched_memory main_processor{g.memory()};
    main_processor.before_swap = [&](unsigned attempt) {
        if (attempt > 1) return;
        auto attached = g.memory();
        BOOST_TEST((cp::trace(attached, of(record::cp_event::lock_spin, true)) ==
                    trace_result::at(0x00010000)));
    };
    BOOST_TEST((cp::trace(main_processor, of(record::cp_event::start_io)) ==
                trace_result::at(0x00010010)));
    BOOST_TEST(at(g, 0x00010000).attached());
    BOOST_TEST((at(g, 0x00010010).event() == record::cp_event::start_io));
    BOOST_TEST(g.get(0x14) == 0x00010020U);
}

BOOST_AUTO_TEST_CASE(a_table_beyond_storage_meets_addressing_and_moves_nothing) {
    guest g{0x10000};
    set_up(g, 0x0000FFF8, 0x0000FFF8, 0x00010008);
    auto memory = g.memory();
    BOOST_TEST((cp::trace(memory, of(record::cp_event::iucv)) ==
                trace_result::failed(program_exception::addressing, 0x0000FFF8)));
    BOOST_TEST(g.get(0x14) == 0x0000FFF8U);
    guest tiny{16};
    auto nothing_there = tiny.memory();
    BOOST_TEST((cp::trace(nothing_there, of(record::cp_event::iucv)) ==
                trace_result::failed(program_exception::addressing, 0x0C)));
}

BOOST_AUTO_TEST_SUITE_END()
