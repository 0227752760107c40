// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// The entry of CP's trace table: its first byte. Its size and offsets are asserted where it is
// defined.

#include <boost/test/unit_test.hpp>

#include <cstddef>

#include <trace_ring/cptrap/cp_entry.hpp>

BOOST_AUTO_TEST_SUITE(cp_entry)

namespace record = trace_ring::record;

BOOST_AUTO_TEST_CASE(a_cp_entry_tells_the_event_and_the_processor_from_one_byte) {
    record::cp_entry entry;
    entry.set(record::cp_event::start_io);
    BOOST_TEST(std::to_integer<int>(entry.code) == 0x0B);
    BOOST_TEST(!entry.attached());
    entry.set(record::cp_event::start_io, true);
    BOOST_TEST(std::to_integer<int>(entry.code) == 0x4B);
    BOOST_TEST(entry.attached());
    BOOST_TEST((entry.event() == record::cp_event::start_io));
    entry.set(record::cp_event::unstack_block);
    BOOST_TEST(std::to_integer<int>(entry.code) == 0x10);
}

BOOST_AUTO_TEST_CASE(every_code_from_01_to_18_is_a_cp_event_and_no_other_is) {
    int events = 0;
    for (unsigned code = 0; code < 256; ++code) {
        record::cp_entry entry;
        entry.code = static_cast<std::byte>(code);
        const bool expected = (code & 0xBF) >= 0x01 && (code & 0xBF) <= 0x18;
        BOOST_TEST(known(entry.event()) == expected, "code " << code);
        BOOST_TEST(entry.attached() == ((code & 0x40) != 0), "code " << code);
        events += known(entry.event()) ? 1 : 0;
    }
    BOOST_TEST(events == 2 * 24);
}

BOOST_AUTO_TEST_SUITE_END()
