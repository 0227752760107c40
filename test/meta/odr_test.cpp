// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// One definition: two translation units that include everything make one program, and see the same
/// objects. A function that is not inline would not link; a static object would be two.

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include <trace_ring/reduce/trace_file.hpp>

#include "meta/odr.hpp"
#include "meta/odr_disabled.hpp"

BOOST_AUTO_TEST_CASE(two_translation_units_see_the_same_objects) {
    BOOST_TEST((odr::look_from_here() == odr::look_from_other()));
}

namespace odr {
void set_up_nowhere();
struct handled {};
service::service(const trace_ring::recorder_options& options) : trace(options) {}
service::~service() = default;
}  // namespace odr

BOOST_AUTO_TEST_CASE(set_up_throws_in_a_file_without_exceptions_if_another_has_them) {
    BOOST_CHECK_THROW(odr::set_up_nowhere(), trace_ring::setup_error);
    // The handler comes first in both, whichever of their functions the linker took.
    trace_ring::set_setup_handler([](const trace_ring::setup_error&) { throw odr::handled(); });
    BOOST_CHECK_THROW(odr::set_up_nowhere(), odr::handled);
    BOOST_CHECK_THROW(trace_ring::recorder({.file = "/nowhere/odr.trace"}), odr::handled);
    trace_ring::set_setup_handler(nullptr);
}

BOOST_AUTO_TEST_CASE(a_file_whose_tracing_is_compiled_away_records_into_nothing) {
    trace_ring::recorder recorder{{.size = 1 << 20}};
    BOOST_TEST(!odr::off_records(recorder));
    BOOST_TEST(!odr::off_drains(recorder));
    BOOST_TEST(recorder.record<odr::unseen>(1));
    odr::cpu_recorder by_cpu{{.size = 1 << 20}};
    BOOST_TEST(!odr::off_records(by_cpu));
    BOOST_TEST(by_cpu.record<odr::unseen>(1));
    BOOST_TEST(!odr::off_records_into_own());  // and makes no file
    // The other's functions were not linked in place of these.
    trace_ring::drain::session session(recorder);
    session.finish_records([](const trace_ring::drained_record&) {});
    BOOST_TEST(session.records() == 1U);
}

BOOST_AUTO_TEST_CASE(a_recorder_that_such_a_file_made_refuses_records) {
    for (int i = 0; i < 100; ++i) {
        for (auto* const made : {&odr::off_made(), &odr::off_global}) {
            BOOST_TEST(!made->record<odr::unseen>(i));
            BOOST_TEST(!made->reserve<odr::unseen>(i));
            const auto open = made->scope<odr::unseen_span>();
        }
        BOOST_TEST(!odr::off_made_by_cpu().record<odr::unseen>(i));
        const auto open = odr::off_made_by_cpu().scope<odr::unseen_span>();
    }
}

BOOST_AUTO_TEST_CASE(such_a_file_has_a_recorder_as_a_member_and_destroys_one) {
    odr::service service({.size = 1 << 20});
    BOOST_TEST(odr::off_after(service) == 7);
    BOOST_TEST(service.trace.record<odr::unseen>(1));
    // A process has eight recorders: so each is given back.
    for (int i = 0; i < 20; ++i) {
        auto one =
            std::make_unique<trace_ring::recorder>(trace_ring::recorder_options{.size = 1 << 20});
        BOOST_TEST(one->record<odr::unseen>(i));
        odr::off_destroys(std::move(one));
        auto other =
            std::make_unique<odr::cpu_recorder>(trace_ring::recorder_options{.size = 1 << 20});
        BOOST_TEST(other->record<odr::unseen>(i));
        odr::off_destroys(std::move(other));
    }
}

BOOST_AUTO_TEST_CASE(a_ring_in_a_shared_header_is_one_for_each_kind_of_file) {
    BOOST_TEST(!odr::off_records_into_own());
    for (int i = 0; i < 10'000; ++i) BOOST_REQUIRE(odr::ring_of_each.write(i));
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
