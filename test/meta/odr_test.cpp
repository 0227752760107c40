// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// One definition: two translation units that include everything make one program, and see the same
/// objects. A function that is not inline would not link; a static object would be two.

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <typeinfo>
#include <variant>
#include <vector>

#include <trace_ring/policy/storage/heap.hpp>
#include <trace_ring/reduce/trace_file.hpp>
#include <trace_ring/ring/ring.hpp>

#include "meta/odr.hpp"

BOOST_AUTO_TEST_CASE(two_translation_units_see_the_same_objects) {
    BOOST_TEST((odr::look_from_here() == odr::look_from_other()));
}

namespace odr {
struct kind : trace_ring::policies<trace_ring::record::bare<int>, trace_ring::storage::heap> {};
bool record_where_disabled();
const std::type_info& recorder_where_disabled();
const std::type_info& ring_where_disabled();
void set_up_nowhere();
struct handled {};
}  // namespace odr

BOOST_AUTO_TEST_CASE(set_up_throws_in_a_file_without_exceptions_if_another_has_them) {
    BOOST_CHECK_THROW(odr::set_up_nowhere(), trace_ring::setup_error);
    // The handler comes first in both, whichever of their functions the linker took.
    trace_ring::set_setup_handler([](const trace_ring::setup_error&) { throw odr::handled(); });
    BOOST_CHECK_THROW(odr::set_up_nowhere(), odr::handled);
    BOOST_CHECK_THROW(trace_ring::recorder({.file = "/nowhere/odr.trace"}), odr::handled);
    trace_ring::set_setup_handler(nullptr);
}

BOOST_AUTO_TEST_CASE(a_file_whose_tracing_is_compiled_away_is_part_of_a_program_that_traces) {
    trace_ring::recorder recorder{{.size = 1 << 20}};
    BOOST_TEST(!odr::record_where_disabled());
    BOOST_TEST(recorder.record<odr::seen>(std::uint64_t{1}));
    // Or one would be linked in place of the other.
    BOOST_TEST((odr::recorder_where_disabled() != typeid(trace_ring::recorder)));
    BOOST_TEST((odr::ring_where_disabled() != typeid(trace_ring::ring<odr::kind>)));
}

BOOST_AUTO_TEST_CASE(two_translation_units_record_one_event_into_one_lane) {
    trace_ring::recorder recorder{{.size = 1 << 20}};
    BOOST_TEST(recorder.record<odr::seen>(std::uint64_t{1}));
    BOOST_TEST(odr::record_from_other(recorder, 2));

    const auto [memory, bytes] = recorder.bytes();
    auto trace = trace_ring::reduce::trace_file::from({memory, bytes});
    std::vector<std::uint64_t> numbers;
    for (auto cursor = trace.forward(); const auto* item = cursor.next();) {
        const auto* record = std::get_if<trace_ring::reduce::record_view>(item);
        BOOST_TEST_REQUIRE(record != nullptr);
        BOOST_TEST(record->name() == "odr.seen");
        BOOST_TEST(record->position() == numbers.size());
        numbers.push_back(record->field("number").u64());
    }
    BOOST_TEST(numbers == (std::vector<std::uint64_t>{1, 2}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(two_translation_units_share_an_inline_function_with_a_sequence) {
    trace_ring::basic_recorder<odr::by_cpu> recorder{{.size = 1 << 20}};
    for (std::uint64_t i = 0; i < 1000; ++i) {
        BOOST_REQUIRE(odr::record_by_cpu(recorder, i));
        BOOST_REQUIRE(odr::record_by_cpu_from_other(recorder, i));
    }
    const auto [memory, bytes] = recorder.bytes();
    auto trace = trace_ring::reduce::trace_file::from({memory, bytes});
    std::uint64_t records = 0;
    for (auto cursor = trace.forward(); const auto* item = cursor.next();)
        records += std::holds_alternative<trace_ring::reduce::record_view>(*item) ? 1 : 0;
    BOOST_TEST(records == 2000U);
}
