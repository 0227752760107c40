// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What a field of an event may be, and how each value becomes what lies in a record.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include <trace_ring/record/event/value_names.hpp>
#include <trace_ring/record/field.hpp>

namespace trace_ring::inline v1 {

/// A code or data address: 8 bytes in the file whatever the program's word size.
struct address {
    std::uint64_t value = 0;
    constexpr address() noexcept = default;
    constexpr explicit address(std::uint64_t where) noexcept : value(where) {}
    explicit address(const void* where) noexcept : value(reinterpret_cast<std::uintptr_t>(where)) {}
    friend constexpr bool operator==(address, address) noexcept = default;
};
static_assert(sizeof(address) == 8);

/// A number that ties records together: those that bear the same one belong to one flow, of
/// whatever event, thread or process they are. Viewers draw arrows from each to the next. 0: none.
/// In a record it is a u64; that it ties, the dictionary tells.
struct flow {
    std::uint64_t value = 0;
    constexpr flow() noexcept = default;
    constexpr explicit flow(std::uint64_t id) noexcept : value(id) {}
    friend constexpr bool operator==(flow, flow) noexcept = default;
};
static_assert(sizeof(flow) == 8);

/// Customisation point: how a type of the user's is recorded. Specialise with `type`, one of the
/// types a field may have, and `static type convert(const T&) noexcept`. The conversion runs before
/// the record is opened, so it may itself record.
template <class T>
struct as_field;

template <literal Name, class T>
struct field {
    using type = T;
    static constexpr std::string_view name = Name.view();
};

namespace impl {

template <class T>
concept has_as_field = requires(const T& value) {
    typename as_field<T>::type;
    { as_field<T>::convert(value) }
    noexcept;
};

/// What a field may be by itself: what is listed here. Traits say otherwise of extended types, and
/// differ between -std=c++20 and gnu++20.
template <class T, class... Listed>
inline constexpr bool is_one_of = (std::is_same_v<T, Listed> || ...);
template <class T>
concept scalar = is_one_of<T, bool, char, signed char, unsigned char, wchar_t, char8_t, char16_t,
                           char32_t, short, unsigned short, int, unsigned, long, unsigned long,
                           long long, unsigned long long, float, double, long double, address>;

template <class T>
consteval field_type scalar_type() {
    static_assert(scalar<T>, "trace_ring: an integer of a field has at most 64 bits");
    if constexpr (std::is_same_v<T, bool>) {
        return field_type::boolean;
    } else if constexpr (std::is_same_v<T, char>) {
        return field_type::character;
    } else if constexpr (std::is_same_v<T, address>) {
        return field_type::address;
    } else if constexpr (std::is_floating_point_v<T>) {
        static_assert(sizeof(T) == 4 || sizeof(T) == 8,
                      "trace_ring: a field may be float or double, not long double");
        return sizeof(T) == 4 ? field_type::f32 : field_type::f64;
    } else if constexpr (std::is_integral_v<T>) {
        constexpr int log = std::countr_zero(sizeof(T));
        return static_cast<field_type>((std::is_signed_v<T> ? 5 : 1) + log);
    }
}

/// An enumeration that is recorded as its number.
template <class T>
concept own_enum = std::is_enum_v<T> && !has_as_field<T>;
/// That number. If its values have names it is an integer, whatever it is kept in.
template <own_enum T, class Kept = std::underlying_type_t<T>>
using number_of = std::conditional_t<
    !has_names<T> || (!std::is_same_v<Kept, bool> && !std::is_same_v<Kept, char>), Kept,
    std::conditional_t<std::is_signed_v<Kept>, signed char, unsigned char>>;

/// A scalar as the bits that go into a word.
template <class T>
[[nodiscard]] constexpr std::uint64_t bits_of(T value) noexcept {
    if constexpr (std::is_same_v<T, address>) {
        return value.value;
    } else if constexpr (std::is_same_v<T, bool>) {
        return value ? 1 : 0;
    } else if constexpr (std::is_same_v<T, float>) {
        return std::bit_cast<std::uint32_t>(value);
    } else if constexpr (std::is_same_v<T, double>) {
        return std::bit_cast<std::uint64_t>(value);
    } else {
        return static_cast<std::make_unsigned_t<T>>(value);
    }
}

/// What a codec encodes is the number of a flow.
template <class Codec>
[[nodiscard]] consteval bool ties() {
    if constexpr (requires { Codec::ties; }) {
        return Codec::ties;
    } else {
        return false;
    }
}

// What most codecs say of themselves: one element, or a number of them that each record tells.
template <class Wire, field_type Type, field_form Form = field_form::scalar>
struct codec_of {
    using wire = Wire;
    static constexpr field_form form = Form;
    static constexpr field_type type = Type;
    static constexpr std::size_t count = 1;
};

// The codec of a type: what it is on the wire, and how a value becomes that. This one is what is
// left of a type that cannot be a field, so that nothing but the sentence is said.
template <class T>
struct codec : codec_of<char, field_type::character> {
    static_assert(has_as_field<T>,
                  "trace_ring: this type cannot be a field; for a text use std::string_view, for a "
                  "row std::array or std::span<const T>, else specialise trace_ring::as_field");
    static char encode(const T&) noexcept { return {}; }
};

template <class T>
requires has_as_field<T>
struct codec<T> {
    using inner = codec<typename as_field<T>::type>;
    using wire = typename inner::wire;
    static constexpr field_form form = inner::form;
    static constexpr field_type type = inner::type;
    static constexpr std::size_t count = inner::count;
    static constexpr bool ties = impl::ties<inner>();
    using enumeration = typename enumeration_of<inner>::type;
    static wire encode(const T& value) noexcept {
        using given = std::remove_cvref_t<decltype(as_field<T>::convert(value))>;
        static_assert(!narrows<typename as_field<T>::type, given>(),
                      "trace_ring: as_field<T>::type does not hold every value of what its convert "
                      "returns");
        return inner::encode(as_field<T>::convert(value));
    }
};

template <class T>
requires scalar<T>
struct codec<T> : codec_of<T, scalar_type<T>()> {
    static constexpr T encode(T value) noexcept { return value; }
};

template <own_enum T>
struct codec<T> : codec_of<std::underlying_type_t<T>, scalar_type<number_of<T>>()> {
    using enumeration = T;
    static constexpr std::underlying_type_t<T> encode(T value) noexcept {
        return static_cast<std::underlying_type_t<T>>(value);
    }
};

template <>
struct codec<flow> : codec_of<std::uint64_t, field_type::u64> {
    static constexpr bool ties = true;
    static constexpr std::uint64_t encode(flow value) noexcept { return value.value; }
};

template <class T>
requires(std::is_object_v<T> || std::is_void_v<T>) struct codec<T*>
    : codec_of<address, field_type::address> {
    static_assert(!std::is_same_v<std::remove_cv_t<T>, char>,
                  "trace_ring: a char pointer is ambiguous; use std::string_view for text or "
                  "trace_ring::address for the pointer");
    static address encode(const volatile T* value) noexcept {
        return address(reinterpret_cast<std::uintptr_t>(value));
    }
};

template <class T, std::size_t N>
struct codec<std::array<T, N>> {
    static_assert(N > 0 && N <= 0xFFFF, "trace_ring: a fixed array has 1 to 65535 elements");
    using wire = std::array<typename codec<T>::wire, N>;
    static_assert(codec<T>::form == field_form::scalar, "trace_ring: arrays hold scalars only");
    static constexpr field_form form = field_form::array;
    static constexpr field_type type = codec<T>::type;
    static constexpr std::size_t count = N;
    static constexpr bool ties = impl::ties<codec<T>>();
    using enumeration = typename enumeration_of<codec<T>>::type;
    static constexpr wire encode(const std::array<T, N>& value) noexcept {
        wire out{};
        for (std::size_t i = 0; i < N; ++i) out[i] = codec<T>::encode(value[i]);
        return out;
    }
};

template <>
struct codec<std::string_view>
    : codec_of<std::string_view, field_type::character, field_form::variable> {
    static constexpr std::string_view encode(std::string_view value) noexcept { return value; }
};

template <class T>
requires(scalar<T> || own_enum<T>) struct codec<std::span<const T>>
    : codec_of<std::span<const T>, codec<T>::type, field_form::variable> {
    using enumeration = typename enumeration_of<codec<T>>::type;
    static constexpr std::span<const T> encode(std::span<const T> value) noexcept { return value; }
};

}  // namespace impl

}  // namespace trace_ring::inline v1
