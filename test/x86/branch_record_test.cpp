// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// Branch records as the processor writes them. Their sizes and offsets are asserted where they are
// defined.

#include <boost/test/unit_test.hpp>

#include <array>
#include <cstddef>
#include <cstring>

#include <trace_ring/x86/branch_record.hpp>

BOOST_AUTO_TEST_SUITE(branch_records)

namespace record = trace_ring::record;

namespace {

template <class... Bytes>
constexpr std::array<std::byte, sizeof...(Bytes)> bytes(Bytes... values) {
    return {static_cast<std::byte>(values)...};
}

}  // namespace

BOOST_AUTO_TEST_CASE(branch_records_read_as_the_processor_writes_them) {
    // from, to, flags, little-endian; bit 4 of the flags set in the first, all the others in the
    // second.
    alignas(8) const auto narrow = bytes(0x00, 0x10, 0x40, 0x00, 0x78, 0x56, 0x34, 0x12,  //
                                         0x10, 0x00, 0x00, 0x00);
    alignas(8) const auto wide = bytes(0x00, 0x10, 0x40, 0x00, 0x00, 0x00, 0x00, 0x00,  //
                                       0x78, 0x56, 0x34, 0x12, 0xFF, 0x7F, 0x00, 0x00,  //
                                       0xEF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF);
    record::branch_record32 first;
    std::memcpy(&first, narrow.data(), sizeof first);
    BOOST_TEST(first.from == 0x00401000U);
    BOOST_TEST(first.to == 0x12345678U);
    BOOST_TEST(first.predicted());
    record::branch_record64 second;
    std::memcpy(&second, wide.data(), sizeof second);
    BOOST_TEST(second.from == 0x00401000U);
    BOOST_TEST(second.to == 0x00007FFF12345678U);
    BOOST_TEST(!second.predicted());
}

BOOST_AUTO_TEST_CASE(a_branch_record_is_padding_only_if_both_addresses_are_zero) {
    BOOST_TEST((record::branch_record64{0, 0, 0x10}.padding()));
    BOOST_TEST(!(record::branch_record64{0, 1, 0}.padding()));  // a trace begins
    BOOST_TEST(!(record::branch_record64{1, 0, 0}.padding()));  // a trace ends
}

BOOST_AUTO_TEST_SUITE_END()
