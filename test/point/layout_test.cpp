// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// Layouts of C structures in both models: mirrored as C++ types, and computed. point/layouts.py
// compares both with the compilers' results for the machine's own headers.

#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include <trace_ring/point/c_types.hpp>
#include <trace_ring/point/layout.hpp>

BOOST_AUTO_TEST_SUITE(c_layouts)

namespace point = trace_ring::point;
namespace record = trace_ring::record;
using point::bit_field;
using point::c_type;
using point::extent;
using point::layout;
using record::program_mode;

namespace {

/// P3: as the seed gives it, a handler first, then a mask.
template <record::data_model M>
struct sigaction_of {
    typename point::c_types<M>::template pointer<void()> handler;
    typename point::c_types<M>::ulong_type mask;
    std::int32_t flags;
};
template <record::data_model M>
struct mixed_of {
    char first;
    typename point::c_types<M>::long_long_type wide;
    char second;
    typename point::c_types<M>::double_type real;
    sigaction_of<M> nested[2];
    std::uint32_t flag : 3;
};

}  // namespace

BOOST_AUTO_TEST_CASE(sigaction_is_laid_out_as_its_programs_do) {
    static_assert(offsetof(sigaction_of<record::ilp32>, mask) == 4);
    static_assert(sizeof(sigaction_of<record::ilp32>::mask) == 4);
    static_assert(offsetof(sigaction_of<record::lp64>, mask) == 8);
    static_assert(sizeof(sigaction_of<record::lp64>::mask) == 8);
    static_assert(sizeof(sigaction_of<record::ilp32>) == 12);
    static_assert(sizeof(sigaction_of<record::lp64>) == 24);
    for (const auto& [mode, at] : {std::pair{program_mode::ilp32, std::uint64_t{4}},
                                   {program_mode::lp64, std::uint64_t{8}}}) {
        layout computed(layout::structure);
        BOOST_TEST(computed.add(extent_of(c_type::pointer, mode)).value() == 0U);
        BOOST_TEST(computed.add(extent_of(c_type::long_integer, mode)).value() == at);
        BOOST_TEST(computed.add(extent_of(c_type::integer, mode)).value() == 2 * at);
        BOOST_TEST(computed.whole().bytes == (mode == program_mode::ilp32 ? 12U : 24U));
    }
}

BOOST_AUTO_TEST_CASE(what_a_32_bit_program_aligns_to_four_bytes_is_so_for_any_reader) {
    static_assert(offsetof(mixed_of<record::ilp32>, wide) == 4);
    static_assert(offsetof(mixed_of<record::ilp32>, real) == 16);
    static_assert(offsetof(mixed_of<record::ilp32>, nested) == 24);
    static_assert(sizeof(mixed_of<record::ilp32>) == 52);
    static_assert(offsetof(mixed_of<record::lp64>, wide) == 8);
    static_assert(offsetof(mixed_of<record::lp64>, real) == 24);
    static_assert(offsetof(mixed_of<record::lp64>, nested) == 32);
    static_assert(sizeof(mixed_of<record::lp64>) == 88);
    BOOST_TEST(alignof(mixed_of<record::ilp32>) == 4U);
    BOOST_TEST(alignof(mixed_of<record::lp64>) == 8U);
    constexpr point::c_types<record::ilp32>::pointer<int> none{0};
    static_assert(!none);
}

BOOST_AUTO_TEST_CASE(bit_fields_lie_in_one_word_of_their_type) {
    const extent integer{4, 4};
    layout of(layout::structure);
    BOOST_TEST((of.add_bits(integer, 3) == bit_field{0, 1, 0, 3}));
    BOOST_TEST((of.add_bits(integer, 30) == bit_field{4, 4, 0, 30}));  // 33 bits are too many
    BOOST_TEST((of.add_bits(integer, 0) == bit_field{8, 0, 0, 0}));
    BOOST_TEST((of.add_bits(integer, 5) == bit_field{8, 1, 0, 5}));
    BOOST_TEST(of.add({1, 1}).value() == 9U);
    BOOST_TEST(
        (of.add_bits(integer, 7) == bit_field{8, 4, 16, 7}));  // in what is left of that word
    BOOST_TEST((of.whole() == extent{12, 4}));
    // In the same place where a long long may begin at any fourth byte; and only there.
    for (const auto& [type, expected] : {std::pair{extent{8, 4}, bit_field{0, 8, 28, 36}},
                                         {extent{8, 8}, bit_field{0, 8, 28, 36}}}) {
        layout both(layout::structure);
        both.add_bits(type, 28);
        BOOST_TEST((both.add_bits(type, 36) == expected));
    }
    layout narrow(layout::structure);
    narrow.add(integer);
    BOOST_TEST((narrow.add_bits({8, 4}, 40) == bit_field{4, 8, 0, 40}));
    layout wide(layout::structure);
    wide.add(integer);
    BOOST_TEST((wide.add_bits({8, 8}, 40) == bit_field{8, 8, 0, 40}));
}

BOOST_AUTO_TEST_CASE(members_of_a_union_begin_at_0) {
    layout of(layout::union_of_all);
    BOOST_TEST(of.add({1, 1}, 13).value() == 0U);
    BOOST_TEST(of.add({8, 4}).value() == 0U);
    BOOST_TEST((of.add_bits({4, 4}, 9) == bit_field{0, 2, 0, 9}));
    BOOST_TEST((of.whole() == extent{16, 4}));
}

BOOST_AUTO_TEST_CASE(what_is_packed_has_no_gaps_and_no_alignment) {
    layout of(layout::structure, true);
    of.add({1, 1});
    BOOST_TEST(of.add({8, 8}).value() == 1U);
    BOOST_TEST((of.add_bits({4, 4}, 12) == bit_field{9, 2, 0, 12}));
    // The word ends where the structure may end.
    BOOST_TEST((of.add_bits({4, 4}, 30) == bit_field{7, 8, 28, 30}));
    BOOST_TEST((of.whole() == extent{15, 1}));
    layout small(layout::structure, true);
    BOOST_TEST((small.add_bits({4, 4}, 20) == bit_field{0, 4, 0, 20}));  // no room before it
    BOOST_TEST((small.add_bits({4, 4}, 12) == bit_field{2, 2, 4, 12}));
    BOOST_TEST((small.add_bits({4, 4}, 32) == bit_field{4, 4, 0, 32}));
    BOOST_TEST((small.add_bits({8, 8}, 3) == bit_field{8, 1, 0, 3}));
    BOOST_TEST(!small.add_bits({8, 8}, 64).has_value());  // in nine bytes
}

BOOST_AUTO_TEST_CASE(sizes_that_no_program_has_are_refused) {
    layout of(layout::structure);
    BOOST_TEST(!of.add({8, 8}, ~std::uint64_t{0} / 8).has_value());
    BOOST_TEST(!of.add({~std::uint64_t{0}, 1}).has_value());
    BOOST_TEST(of.add({1, 1}, layout::most_bytes).has_value());
    BOOST_TEST(!of.add({1, 1}).has_value());
    BOOST_TEST(!of.add_bits({4, 4}, 33).has_value());
    BOOST_TEST(!of.add_bits({16, 16}, 3).has_value());
}

BOOST_AUTO_TEST_SUITE_END()
