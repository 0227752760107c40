// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// The data models that fixed-size records follow, and the words of a big-endian guest.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <boost/test/unit_test.hpp>

#include <trace_ring/record/data_model.hpp>

BOOST_AUTO_TEST_SUITE(data_models)

namespace record = trace_ring::record;

namespace {

template <class... Bytes>
constexpr std::array<std::byte, sizeof...(Bytes)> bytes(Bytes... values) {
    return {static_cast<std::byte>(values)...};
}

// A structure as a traced program lays it out: a pointer, then an unsigned long.
template <record::data_model Model>
struct action {
    alignas(Model::pointer_alignment) typename Model::pointer_type handler;
    alignas(Model::long_alignment) typename Model::ulong_type mask;
};

struct no_pointer_alignment : record::lp64 {
    static constexpr std::size_t pointer_alignment = 0;
};
struct long_of_another_size : record::lp64 {
    using long_type = std::int32_t;
};

}  // namespace

BOOST_AUTO_TEST_CASE(the_two_models_place_a_long_after_a_pointer_where_their_programs_do) {
    static_assert(offsetof(action<record::ilp32>, mask) == 4);
    static_assert(sizeof(action<record::ilp32>::mask) == 4);
    static_assert(sizeof(action<record::ilp32>) == 8);
    static_assert(offsetof(action<record::lp64>, mask) == 8);
    static_assert(sizeof(action<record::lp64>::mask) == 8);
    static_assert(sizeof(action<record::lp64>) == 16);
    // The host's own compiler agrees with the model that it follows.
    struct host {
        void* handler;
        unsigned long mask;
    };
    BOOST_TEST(offsetof(host, mask) == offsetof(action<record::host_model>, mask));
    BOOST_TEST(sizeof(host) == sizeof(action<record::host_model>));
}

BOOST_AUTO_TEST_CASE(a_type_that_contradicts_itself_is_no_data_model) {
    static_assert(record::data_model<record::ilp32> && record::data_model<record::lp64>);
    static_assert(!record::data_model<no_pointer_alignment>);
    static_assert(!record::data_model<long_of_another_size>);
    static_assert(!record::data_model<int>);
    BOOST_TEST(static_cast<int>(record::ilp32::mode) == 1);
    BOOST_TEST(static_cast<int>(record::lp64::mode) == 0);
}

BOOST_AUTO_TEST_CASE(words_of_a_guest_lie_big_endian_at_any_offset) {
    std::array<std::byte, 16> memory{};
    record::store_big<std::uint16_t>(memory, 1, 0xABCD);
    record::store_big<std::uint32_t>(memory, 3, 0x00010020);
    record::store_big<std::uint64_t>(memory, 7, 0x0123456789ABCDEF);
    const auto expected = bytes(0, 0xAB, 0xCD, 0x00, 0x01, 0x00, 0x20,  //
                                0x01, 0x23, 0x45, 0x67, 0x89, 0xAB, 0xCD, 0xEF, 0);
    BOOST_TEST((memory == expected));
    BOOST_TEST(record::load_big<std::uint16_t>(memory, 1) == 0xABCD);
    BOOST_TEST(record::load_big<std::uint32_t>(memory, 3) == 0x00010020U);
    BOOST_TEST(record::load_big<std::uint64_t>(memory, 7) == 0x0123456789ABCDEFU);
}

BOOST_AUTO_TEST_CASE(a_whole_word_swapped_to_big_endian_lies_as_store_big_lays_it) {
    std::array<std::byte, 4> stored{};
    record::store_big<std::uint32_t>(stored, 0, 0x80020008);
    const std::uint32_t word = record::big_endian(0x80020008);
    BOOST_TEST(std::memcmp(stored.data(), &word, 4) == 0);
    BOOST_TEST(record::big_endian(word) == 0x80020008U);
}

BOOST_AUTO_TEST_SUITE_END()
