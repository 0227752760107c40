// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// From values to the words of a payload, compared with words written by hand.

#include <boost/test/unit_test.hpp>

#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <trace_ring/record/event.hpp>
#include <trace_ring/record/event/as_field.hpp>
#include <trace_ring/record/event/duration.hpp>
#include <trace_ring/record/event/members.hpp>
#include <trace_ring/record/event/payload.hpp>

BOOST_AUTO_TEST_SUITE(payload_words)

namespace tr = trace_ring;

namespace {

/// The words that a record of E holds when variable data has `room` bytes.
template <class E, class... Values>
std::vector<std::uint64_t> payload(std::size_t room, const Values&... values) {
    const tr::impl::payload_of<E> record(values...);
    const auto sizes = record.measure(room);
    // Filled, so that a word that is not written shows.
    std::vector<std::uint64_t> words((E::fixed_bytes + sizes.bytes) / 8, 0xA5A5'A5A5'A5A5'A5A5);
    const std::size_t used = words.size();
    words.push_back(0xFEED);
    record.store(reinterpret_cast<std::byte*>(words.data()), sizes);
    BOOST_TEST(words.back() == 0xFEEDU);
    words.resize(used);
    if constexpr (E::signature::few) {  // the same words when they stay in registers
        std::vector<std::uint64_t> packed(used + 1, 0);
        record.pack(packed.data());
        packed.resize(used);
        BOOST_TEST(packed == words);
    }
    return words;
}

template <class E, class... Values>
bool is_cut(std::size_t room, const Values&... values) {
    return tr::impl::payload_of<E>(values...).measure(room).cut;
}

using words = std::vector<std::uint64_t>;

std::uint64_t letters(std::string_view text) {
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        word |= std::uint64_t{static_cast<unsigned char>(text[i])} << (i * 8);
    }
    return word;
}

struct small : tr::event<"small", tr::field<"a", std::int8_t>, tr::field<"b", std::uint16_t>,
                         tr::field<"c", bool>, tr::field<"d", char>, tr::field<"e", std::int16_t>> {
};
struct floats : tr::event<"floats", tr::field<"f", float>, tr::field<"i", std::int32_t>,
                          tr::field<"d", double>> {};
struct arrays : tr::event<"arrays", tr::field<"h", std::array<std::uint16_t, 5>>,
                          tr::field<"l", std::array<std::int64_t, 2>>> {};
struct text : tr::event<"text", tr::field<"n", std::uint32_t>, tr::field<"s", std::string_view>> {};
struct two : tr::event<"two", tr::field<"s", std::string_view>, tr::field<"n", std::uint64_t>,
                       tr::field<"t", std::string_view>> {};
struct numbers : tr::event<"numbers", tr::field<"v", std::span<const std::uint32_t>>> {};
struct bytes : tr::event<"bytes", tr::field<"v", std::span<const std::uint8_t>>> {};
struct big : tr::event<"big", tr::field<"v", std::array<std::uint8_t, 200>>> {};

constexpr std::size_t plenty = 4000;

}  // namespace

BOOST_AUTO_TEST_CASE(small_fields_share_a_word_and_signs_do_not_spill) {
    BOOST_TEST(payload<small>(plenty, std::int8_t{-1}, std::uint16_t{0x1234}, true, 'z',
                              std::int16_t{-2}) == (words{0xFFFE'7A01'1234'00FF}));
}

BOOST_AUTO_TEST_CASE(floating_point_is_stored_by_its_bits) {
    BOOST_TEST(payload<floats>(plenty, 1.0F, -1, -2.0) ==
               (words{0xFFFF'FFFF'3F80'0000, 0xC000'0000'0000'0000}));
    const auto nan = payload<floats>(plenty, std::numeric_limits<float>::quiet_NaN(), 0, 0.0);
    BOOST_TEST(nan[0] == 0x7FC0'0000U);
}

BOOST_AUTO_TEST_CASE(a_fixed_array_is_its_elements_in_a_row) {
    BOOST_TEST(payload<arrays>(plenty, std::array<std::uint16_t, 5>{1, 2, 3, 4, 5},
                               std::array<std::int64_t, 2>{-1, 7}) ==
               (words{0x0004'0003'0002'0001, 5, ~std::uint64_t{0}, 7}));
    std::array<std::uint8_t, 200> many{};
    for (std::size_t i = 0; i < many.size(); ++i) many[i] = static_cast<std::uint8_t>(i);
    const auto stored = payload<big>(plenty, many);
    BOOST_REQUIRE(stored.size() == 25U);
    BOOST_TEST(std::memcmp(stored.data(), many.data(), many.size()) == 0);
}

BOOST_AUTO_TEST_CASE(a_string_of_every_length_is_padded_with_zeros_to_whole_words) {
    const std::string all = "abcdefghijklmnopqrstuvwxyz";
    for (std::size_t n = 0; n <= all.size(); ++n) {
        const auto stored = payload<text>(plenty, 7U, std::string_view(all).substr(0, n));
        BOOST_REQUIRE(stored.size() == 1 + (n + 7) / 8);
        BOOST_TEST(stored[0] == (std::uint64_t{n} << 32 | 7));
        for (std::size_t w = 1; w < stored.size(); ++w) {
            const std::size_t at = (w - 1) * 8;
            BOOST_TEST(stored[w] == letters(all.substr(at, std::min<std::size_t>(8, n - at))));
        }
    }
}

BOOST_AUTO_TEST_CASE(an_empty_string_without_an_address_takes_no_room) {
    BOOST_TEST(payload<text>(plenty, 1U, std::string_view()) == (words{1}));
    BOOST_TEST(!is_cut<text>(0, 1U, std::string_view()));
}

BOOST_AUTO_TEST_CASE(a_string_that_just_fits_is_whole_and_one_byte_more_is_cut) {
    const std::string sixteen(16, 'x');
    BOOST_TEST(!is_cut<text>(16, 1U, sixteen));
    BOOST_TEST(is_cut<text>(16, 1U, sixteen + "y"));
    const auto stored = payload<text>(16, 1U, sixteen + "y");
    BOOST_TEST(stored == (words{std::uint64_t{16 | tr::variable_cut_bit} << 32 | 1,
                                letters("xxxxxxxx"), letters("xxxxxxxx")}));
    BOOST_TEST(!is_cut<text>(16, 1U, std::string(9, 'x')));
}

BOOST_AUTO_TEST_CASE(without_any_room_a_string_is_cut_to_nothing) {
    BOOST_TEST(payload<text>(0, 1U, "abc") ==
               (words{std::uint64_t{tr::variable_cut_bit} << 32 | 1}));
}

BOOST_AUTO_TEST_CASE(the_first_string_takes_the_room_and_the_second_is_cut) {
    const auto stored = payload<two>(24, "0123456789", std::uint64_t{5}, "abcdefghijk");
    BOOST_REQUIRE(stored.size() == 6U);  // three fixed words, two of the first, one of the second
    BOOST_TEST(stored[0] == 10U);
    BOOST_TEST(stored[1] == 5U);
    BOOST_TEST(stored[2] == (8U | tr::variable_cut_bit));
    BOOST_TEST(stored[3] == letters("01234567"));
    BOOST_TEST(stored[4] == letters("89"));
    BOOST_TEST(stored[5] == letters("abcdefgh"));
}

BOOST_AUTO_TEST_CASE(a_span_is_cut_between_elements_never_inside_one) {
    const std::vector<std::uint32_t> three{1, 2, 3};
    BOOST_TEST(payload<numbers>(plenty, std::span<const std::uint32_t>(three)) ==
               (words{12, 0x2'0000'0001, 3}));
    BOOST_TEST(payload<numbers>(8, std::span<const std::uint32_t>(three)) ==
               (words{8U | tr::variable_cut_bit, 0x2'0000'0001}));
}

BOOST_AUTO_TEST_CASE(a_span_need_not_be_aligned) {
    const std::array<std::uint8_t, 12> raw{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    BOOST_TEST(payload<bytes>(plenty, std::span(raw).subspan(1, 9)) ==
               (words{9, 0x0807'0605'0403'0201, 9}));
}

BOOST_AUTO_TEST_CASE(no_length_reaches_the_bit_that_marks_a_cut) {
    const std::string huge(100'000, 'h');
    const auto sizes = tr::impl::payload_of<text>(1U, huge).measure(65536);
    BOOST_TEST(sizes.lengths[1] == (tr::variable_length_mask | tr::variable_cut_bit));
    BOOST_TEST(sizes.bytes == 32768U);
    BOOST_TEST(sizes.cut);
}

BOOST_AUTO_TEST_SUITE_END()
