// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// The description of a declared event: names, types, forms and offsets of its fields, the same on
/// every machine. Most of it is compared at compile time.

#include <boost/test/unit_test.hpp>

#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include <trace_ring/record/event.hpp>
#include <trace_ring/record/event/as_field.hpp>
#include <trace_ring/record/event/duration.hpp>
#include <trace_ring/record/event/members.hpp>
#include <trace_ring/record/event/span.hpp>
#include <trace_ring/record/event/value_names.hpp>

namespace event {

namespace tr = trace_ring;

namespace {

enum class color : std::uint8_t { red, green };
enum class wide : std::int64_t { low = -1 };
enum plain { here, there };
enum class flag : bool { off, on };
enum class letter : char { a = 'a' };

struct order {
    std::uint64_t number;
};
struct celsius {
    double degrees;
};
struct user_name {
    std::string_view text;
};
enum class shade : std::uint8_t { dark };

enum class side : std::uint8_t { buy, sell, other };
enum degree : std::int16_t { cold = -300, warm = 20 };
enum class far : std::int64_t { least = INT64_MIN, most = INT64_MAX };
enum class power : bool { off, on };
enum class code : char { buy = 'B' };
struct sided {
    side of;
};
enum class many : std::uint32_t { first };
constexpr auto many_names = [] {
    std::array<trace_ring::value_name<many>, 1000> all{};
    for (std::uint32_t i = 0; i < all.size(); ++i) all[i] = {many{i}, "a name"};
    return all;
}();

}  // namespace
}  // namespace event

template <>
struct trace_ring::as_field<::event::celsius> {
    using type = float;
    static type convert(const ::event::celsius& value) noexcept {
        return static_cast<float>(value.degrees);
    }
};
template <>
struct trace_ring::as_field<::event::order> {
    using type = flow;
    static type convert(const ::event::order& value) noexcept { return flow(value.number); }
};
template <>
struct trace_ring::as_field<::event::user_name> {
    using type = std::string_view;
    static type convert(const ::event::user_name& value) noexcept { return value.text; }
};
template <>
struct trace_ring::names_of<::event::side> {
    static constexpr value_name<::event::side> list[] = {{::event::side::buy, "buy"},
                                                         {::event::side::sell, "sell"}};
};
template <>
struct trace_ring::names_of<::event::degree> {
    static constexpr auto list = std::to_array<value_name<::event::degree>>(
        {{::event::warm, "warm"}, {::event::cold, "cold"}, {::event::degree{1}, ""}});
};
template <>
struct trace_ring::names_of<::event::far> {
    using enum ::event::far;
    static constexpr value_name<::event::far> list[] = {{least, "least"}, {most, "most"}};
};
template <>
struct trace_ring::names_of<::event::power> {
    static constexpr value_name<::event::power> list[] = {{::event::power::on, "on"}};
};
template <>
struct trace_ring::names_of<::event::code> {
    static constexpr value_name<::event::code> list[] = {{::event::code::buy, "buy"}};
};
template <>
struct trace_ring::names_of<::event::many> {
    static constexpr std::span<const value_name<::event::many>> list = ::event::many_names;
};
template <>
struct trace_ring::as_field<::event::sided> {
    using type = ::event::side;
    static type convert(const ::event::sided& value) noexcept { return value.of; }
};
template <>
struct trace_ring::as_field<::event::shade> {
    using type = std::string_view;
    static type convert(const ::event::shade&) noexcept { return "dark"; }
};

BOOST_AUTO_TEST_SUITE(event)

namespace {

struct empty : tr::event<"empty"> {};
struct mixed : tr::event<"mixed", tr::field<"a", std::uint8_t>, tr::field<"b", std::uint64_t>,
                         tr::field<"c", std::uint16_t>, tr::field<"d", std::string_view>,
                         tr::field<"e", std::array<std::uint32_t, 3>>, tr::field<"f", bool>> {};
struct nine : tr::counter<"nine", tr::field<"x", std::array<std::uint8_t, 9>>> {};
struct pulse : tr::span<"pulse", tr::field<"p", const int*>> {
    static constexpr bool counted = true;
};
struct others
    : tr::event<"others", tr::field<"color", color>, tr::field<"wide", wide>,
                tr::field<"plain", plain>, tr::field<"flag", flag>, tr::field<"letter", letter>,
                tr::field<"t", celsius>, tr::field<"who", user_name>, tr::field<"shade", shade>,
                tr::field<"many", std::span<const double>>> {};

struct tied : tr::event<"tied", tr::field<"a", std::uint64_t>, tr::field<"b", tr::flow>,
                        tr::field<"c", std::array<tr::flow, 2>>, tr::field<"d", order>> {};

struct named : tr::event<"named", tr::field<"n", int>, tr::field<"a", side>,
                         tr::field<"b", std::array<side, 2>>, tr::field<"c", degree>,
                         tr::field<"d", std::span<const side>>, tr::field<"e", sided>,
                         tr::field<"f", color>, tr::field<"g", far>> {};
struct crowded : tr::event<"crowded", tr::field<"a", many>> {};

template <class T>
constexpr tr::field_type type_of = tr::event<"x", tr::field<"f", T>>::fields[0].type;

static_assert(type_of<std::uint8_t> == tr::field_type::u8);
static_assert(type_of<std::uint16_t> == tr::field_type::u16);
static_assert(type_of<std::uint32_t> == tr::field_type::u32);
static_assert(type_of<std::uint64_t> == tr::field_type::u64);
static_assert(type_of<std::int8_t> == tr::field_type::i8);
static_assert(type_of<std::int16_t> == tr::field_type::i16);
static_assert(type_of<std::int32_t> == tr::field_type::i32);
static_assert(type_of<std::int64_t> == tr::field_type::i64);
static_assert(type_of<unsigned long> ==
              (sizeof(long) == 8 ? tr::field_type::u64 : tr::field_type::u32));
static_assert(type_of<long long> == tr::field_type::i64);
static_assert(type_of<char16_t> == tr::field_type::u16);
static_assert(type_of<char8_t> == tr::field_type::u8);
static_assert(type_of<float> == tr::field_type::f32);
static_assert(type_of<double> == tr::field_type::f64);
static_assert(type_of<bool> == tr::field_type::boolean);
static_assert(type_of<char> == tr::field_type::character);
static_assert(type_of<tr::address> == tr::field_type::address);
static_assert(type_of<void*> == tr::field_type::address);
static_assert(type_of<std::string_view> == tr::field_type::character);
static_assert(type_of<std::span<const std::int16_t>> == tr::field_type::i16);
static_assert(type_of<std::array<float, 2>> == tr::field_type::f32);

static_assert(empty::fixed_bytes == 0 && empty::field_count == 0 && !empty::signature::variable);
static_assert(empty::name == "empty" && empty::kind == tr::event_kind::instant);

// a at 0, b at 8, c at 16, the length of d at 18, e at 20, f at 32; 40 in whole words.
static_assert(mixed::fields[0].offset == 0 && mixed::fields[1].offset == 8);
static_assert(mixed::fields[2].offset == 16 && mixed::fields[3].offset == 18);
static_assert(mixed::fields[4].offset == 20 && mixed::fields[5].offset == 32);
static_assert(mixed::fixed_bytes == 40 && mixed::signature::variable);
static_assert(mixed::fields[4].form == tr::field_form::array && mixed::fields[4].count == 3);
static_assert(mixed::fields[3].form == tr::field_form::variable);

static_assert(nine::fixed_bytes == 16 && nine::kind == tr::event_kind::counter);
static_assert(pulse::kind == tr::event_kind::span && tr::impl::is_counted<pulse>());
static_assert(!tr::impl::is_counted<nine>());

static_assert(others::fields[0].type == tr::field_type::u8);
static_assert(others::fields[1].type == tr::field_type::i64);
static_assert(others::fields[2].type == tr::field_type::u32);
static_assert(others::fields[3].type == tr::field_type::boolean);
static_assert(others::fields[4].type == tr::field_type::character);
static_assert(others::fields[5].type == tr::field_type::f32);
static_assert(others::fields[6].type == tr::field_type::character);
static_assert(others::fields[6].form == tr::field_form::variable);
static_assert(others::fields[7].form == tr::field_form::variable);
static_assert(others::fields[8].type == tr::field_type::f64);

// A flow is a u64, of which the description says more.
static_assert(!tied::fields[0].flow && tied::fields[1].flow && tied::fields[2].flow);
static_assert(tied::fields[3].flow);
static_assert(tied::fields[1].type == tr::field_type::u64 && tied::fields[2].count == 2);
static_assert(tied::fixed_bytes == 40);

struct order_sent
    : tr::event<"order.sent", tr::field<"id", std::uint64_t>, tr::field<"price", double>> {};
static_assert(tr::impl::wrong_count<order_sent, 1>().view() ==
              "order.sent takes 2 fields: id, price; 1 given");
static_assert(tr::impl::wrong_count<pulse, 12>().view() == "pulse takes 1 field: p; 12 given");

// With names, an enumeration is an integer, for any underlying type.
static_assert(type_of<power> == tr::field_type::u8 && type_of<flag> == tr::field_type::boolean);
static_assert(type_of<code> == (std::is_signed_v<char> ? tr::field_type::i8 : tr::field_type::u8));
static_assert(type_of<std::span<const degree>> == tr::field_type::i16);
static_assert(named::fields[1].type == tr::field_type::u8 && named::fields[1].offset == 4);
static_assert(tr::impl::describe<mixed>().names.empty());
static_assert(tr::impl::describe<others>().names.empty());

static_assert(tr::recordable<mixed> && tr::recordable<pulse> && !tr::recordable<int>);

}  // namespace

BOOST_AUTO_TEST_CASE(a_description_holds_what_the_declaration_says) {
    constexpr auto d = tr::impl::describe<mixed>();
    BOOST_TEST((d.name == "mixed"));
    BOOST_TEST(!d.counted);
    BOOST_TEST(d.fixed_bytes == 40U);
    BOOST_REQUIRE(d.fields.size() == 6U);
    BOOST_TEST((d.fields[3].name == "d"));
    BOOST_TEST(tr::impl::describe<pulse>().counted);
}

BOOST_AUTO_TEST_CASE(every_type_has_a_size_and_no_other_number_has) {
    std::size_t known = 0;
    for (unsigned i = 0; i < 256; ++i) {
        if (tr::size_of(static_cast<tr::field_type>(i)) != 0) ++known;
    }
    BOOST_TEST(known == 13U);
    BOOST_TEST(tr::size_of(tr::field_type::u8) == 1U);
    BOOST_TEST(tr::size_of(tr::field_type::address) == 8U);
}

BOOST_AUTO_TEST_CASE(a_conversion_reaches_through_to_the_type_on_the_wire) {
    const auto kept = []<class T>(const T& value) { return tr::impl::codec<T>::keep(value); };
    BOOST_TEST(kept(color::green) == 1U);
    BOOST_TEST(kept(wide::low) == UINT64_MAX);
    BOOST_TEST(kept(there) == 1U);
    BOOST_TEST(kept(flag::on) == 1U);
    BOOST_TEST(kept(letter::a) == std::uint64_t{'a'});
    BOOST_TEST(kept(celsius{36.6}) == std::bit_cast<std::uint32_t>(36.6F));
    const auto text = [](tr::impl::bytes_view bytes) {
        return std::string_view(static_cast<const char*>(bytes.data), bytes.size);
    };
    BOOST_TEST(text(kept(user_name{"ann"})) == "ann");
    BOOST_TEST(text(kept(shade::dark)) == "dark");
    BOOST_TEST(kept(std::span<const double>()).size == 0U);
}

BOOST_AUTO_TEST_CASE(a_flow_is_recorded_as_its_number) {
    BOOST_TEST(tr::impl::codec<tr::flow>::keep(tr::flow(2)) == 2U);
    BOOST_TEST(tr::impl::codec<order>::keep(order{4}) == 4U);
    using pair = std::array<tr::flow, 2>;
    const pair flows{tr::flow(3), tr::flow()};
    const auto kept = tr::impl::codec<pair>::keep(flows);
    BOOST_TEST(tr::impl::codec<pair>::bits(kept, 0) == 3U);
    BOOST_TEST(tr::impl::codec<pair>::bits(kept, 1) == 0U);
}

/// Word by word: fields of one enumeration have the same values, and what has no name is left out.
BOOST_AUTO_TEST_CASE(a_description_has_the_names_of_values) {
    const auto text = [](std::string_view eight) {
        std::uint64_t word = 0;
        for (std::size_t i = eight.size(); i-- != 0;) {
            word = word << 8 | static_cast<unsigned char>(eight[i]);
        }
        return word;
    };
    const auto u64 = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
    const std::uint64_t sides = 0 << 16 | std::uint64_t{2} << 32;
    const std::uint64_t wanted[] = {
        tr::names_magic | std::uint64_t{6} << 32 | std::uint64_t{6} << 48,
        1 | sides,
        2 | sides,
        3 | 2 << 16 | std::uint64_t{2} << 32,
        4 | sides,
        5 | sides,
        7 | 4 << 16 | std::uint64_t{2} << 32,
        0,
        1,
        20,
        u64(-300),
        u64(INT64_MIN),
        u64(INT64_MAX),
        3 | 4 << 16 | std::uint64_t{4} << 32 | std::uint64_t{4} << 48,
        5 | 4 << 16,
        text("buysellw"),
        text("armcoldl"),
        text("eastmost")};
    const auto found = tr::impl::describe<named>().names;
    BOOST_TEST(found == wanted, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(what_an_event_has_no_room_for_is_without_a_name) {
    const auto found = tr::impl::describe<crowded>().names;
    BOOST_TEST(found.size_bytes() <= tr::most_names_bytes + 32);
    BOOST_TEST((found[0] >> 48) == (tr::most_names_bytes - 8) / 16);
}

BOOST_AUTO_TEST_CASE(an_address_is_a_number_of_64_bits_on_every_machine) {
    const int object = 0;
    BOOST_TEST(tr::address(&object).value == reinterpret_cast<std::uintptr_t>(&object));
    BOOST_TEST((tr::address(std::uint64_t{0xFFFF'FFFF'0000'0001}).value == 0xFFFF'FFFF'0000'0001U));
    BOOST_TEST(tr::impl::codec<const int*>::keep(&object) == tr::address(&object).value);
}

BOOST_AUTO_TEST_SUITE_END()
