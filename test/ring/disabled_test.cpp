// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// With TRACE_RING_DISABLE defined, every use still compiles, and does nothing. (That nothing is
// left in machine code either is for machine_code/hot_path.py.)

#define TRACE_RING_DISABLE

#include <cstdint>
#include <type_traits>

#include <boost/test/unit_test.hpp>

#include <trace_ring/policy/gate/flag.hpp>
#include <trace_ring/policy/storage/shared_file.hpp>
#include <trace_ring/ring/presets.hpp>

BOOST_AUTO_TEST_SUITE(disabled)

namespace {

struct event {
    std::uint64_t a = 0, b = 0;
};
struct table : trace_ring::policies<trace_ring::record::bare<event>, trace_ring::gate::flag> {};
struct varying : trace_ring::policies<> {};
struct in_file
    : trace_ring::policies<trace_ring::record::sequenced<event>, trace_ring::storage::shared_file> {
};
static_assert(std::is_empty_v<trace_ring::ring<trace_ring::presets::recent<event>>> ||
              sizeof(trace_ring::ring<trace_ring::presets::recent<event>>) <= 8);

}  // namespace

BOOST_AUTO_TEST_CASE(a_ring_that_is_compiled_away_keeps_its_names_and_does_nothing) {
    trace_ring::ring<table> ring;
    bool reached = false;
    if (auto slot = ring.try_reserve()) {
        reached = true;
        slot->a = 1;
        (*slot).b = 2;
        slot.commit();
    }
    BOOST_TEST(!reached);
    BOOST_TEST(!ring.write(1U, 2U));
    ring.gate().close();
    BOOST_TEST(!ring.gate().is_open());
    BOOST_TEST(!ring.reader().next());
    BOOST_TEST(!ring.backward_reader().next());
    BOOST_TEST(!ring.consumer().next());
    BOOST_TEST(!ring.consumer(32).next());
    BOOST_TEST(ring.lost().total() == 0U);
    BOOST_TEST(ring.produced() == 0U);

    trace_ring::ring<varying> records;
    BOOST_TEST(!records.write(1, std::uint64_t{2}));
    if (auto slot = records.try_reserve(16)) slot.commit();
    BOOST_TEST(!records.reader().next());
}

BOOST_AUTO_TEST_CASE(a_ring_that_is_compiled_away_makes_no_file) {
    trace_ring::ring<in_file> ring("/nonexistent/folder/ring", 4096U);
    BOOST_TEST(!ring.write(1U, 2U));
}

BOOST_AUTO_TEST_SUITE_END()
