// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// The whole library as C++23: what the other sources of this program test, and that it is so.

#include <cstdint>
#include <variant>

#include <boost/test/unit_test.hpp>

#include <trace_ring/trace_ring.hpp>

namespace {
struct step : trace_ring::event<"step", trace_ring::field<"number", std::uint64_t>> {};
}  // namespace

BOOST_AUTO_TEST_CASE(what_is_compiled_as_cxx23_is_recorded_and_read_back) {
    static_assert(__cplusplus > 202002L);
    trace_ring::recorder recorder{{.size = 1 << 20}};
    for (std::uint64_t i = 0; i < 100; ++i) recorder.record<step>(i);
    const auto [memory, bytes] = recorder.bytes();
    const auto trace = trace_ring::reduce::trace_file::from({memory, bytes});
    std::uint64_t next = 0;
    for (auto cursor = trace.forward(); const auto* item = cursor.next();) {
        const auto* const record = std::get_if<trace_ring::reduce::record_view>(item);
        BOOST_REQUIRE(record != nullptr);
        BOOST_TEST(record->field("number").u64() == next++);
    }
    BOOST_TEST(next == 100U);
}
