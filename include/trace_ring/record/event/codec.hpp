// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What a field of an event may be, and how each value becomes what lies in a record.
///
/// Texts, rows and arrays are recognized by their members, not by their names, so that a file that
/// does not record them need not compile the headers that declare them.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <trace_ring/record/field.hpp>

namespace trace_ring::inline v1 {

/// A code or data address: 8 bytes in the file for each word size of the program.
struct address {
    std::uint64_t value = 0;  ///< the address
    constexpr address() noexcept = default;
    constexpr explicit address(std::uint64_t where) noexcept : value(where) {}  ///< from a number
    /// From a pointer.
    explicit address(const void* where) noexcept : value(reinterpret_cast<std::uintptr_t>(where)) {}
    friend constexpr bool operator==(address, address) noexcept = default;
};
static_assert(sizeof(address) == 8);

/// A number that ties records together: records with the same number belong to one flow, across
/// events, threads and processes. Viewers draw arrows from each to the next. 0: none. In a record
/// it is a u64; the dictionary marks the field as a flow.
struct flow {
    std::uint64_t value = 0;  ///< the number of the flow
    constexpr flow() noexcept = default;
    /// Records with the same id form one flow.
    constexpr explicit flow(std::uint64_t id) noexcept : value(id) {}
    friend constexpr bool operator==(flow, flow) noexcept = default;
};
static_assert(sizeof(flow) == 8);

/// Customisation point: how a type of the user's is recorded (as_field.hpp).
template <class T>
struct as_field;

/// Customisation point: the names of an enumeration's values (value_names.hpp).
template <class E>
struct names_of;

/// Customisation point: the recorded members of a structure; it derives from `members`.
template <class T>
struct members_of;
template <auto... Members>
struct members;  // include <trace_ring/record/event/members.hpp>

/// A field: its name and its type.
template <literal Name, class T>
struct field {
    using type = T;                                 ///< the type that `record` takes
    static constexpr name_view name = Name.view();  ///< the name, in static storage
};

namespace impl {

template <class E>
concept has_names = requires {
    names_of<E>::list;
};

template <class T>
concept has_as_field = requires(const T& value) {
    typename as_field<T>::type;
    { as_field<T>::convert(value) }
    noexcept;
};

/// What a field may be by itself. Traits differ for extended types, and between c++20 and gnu++20.
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
    } else {
        constexpr int log = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
        return static_cast<field_type>((std::is_signed_v<T> ? 5 : 1) + log);
    }
}

/// An enumeration that is recorded as its number.
template <class T>
concept own_enum = std::is_enum_v<T> && !has_as_field<T>;
/// The type of that number. An enumeration whose values have names is recorded as an integer, even
/// if its underlying type is bool or char.
template <own_enum T, class Kept = std::underlying_type_t<T>>
using number_of = std::conditional_t<
    !has_names<T> || (!std::is_same_v<Kept, bool> && !std::is_same_v<Kept, char>), Kept,
    std::conditional_t<std::is_signed_v<Kept>, signed char, unsigned char>>;

/// A scalar as the bits that go into a word.
template <class T>
[[nodiscard, gnu::always_inline]] constexpr std::uint64_t bits_of(T value) noexcept {
    if constexpr (std::is_same_v<T, address>) {
        return value.value;
    } else if constexpr (std::is_same_v<T, bool>) {
        return value ? 1 : 0;
    } else if constexpr (std::is_same_v<T, float>) {
        return __builtin_bit_cast(std::uint32_t, value);
    } else if constexpr (std::is_same_v<T, double>) {
        return __builtin_bit_cast(std::uint64_t, value);
    } else {
        return static_cast<std::make_unsigned_t<T>>(value);
    }
}

/// The bytes of a text or a row, which are the caller's.
struct bytes_view {
    const void* data;
    std::size_t size;
};

/// The members of a codec, besides `type`:
///   form, count, ties   as the dictionary has them
///   enumeration, unit   of the values; void: they are of none
///   as_it_lies          an array or row has the same bytes in memory as in a record
///   kept                what is kept of a value from before its record is opened until it is
///                       stored; `keep(value)` makes it
///   bits(kept, k)       element k of a scalar (0) or an array
///   memory(kept)        the bytes of a row or of an array that is `as_it_lies`
template <field_type Type, field_form Form = field_form::scalar, std::size_t Count = 1>
struct codec_of {
    static constexpr field_type type = Type;
    static constexpr field_form form = Form;
    static constexpr std::size_t count = Count;
    static constexpr bool ties = false;
    static constexpr bool as_it_lies = true;
    using enumeration = void;
    using unit = void;
};
template <field_type Type>
struct scalar_codec : codec_of<Type> {
    using kept = std::uint64_t;
    [[gnu::always_inline]] static constexpr std::uint64_t bits(kept k, std::size_t) noexcept {
        return k;
    }
};

// The codec of a type: what it is in the file, and how a value is converted. This one is for types
// that cannot be fields. It is complete, so that the compiler reports only the message.
template <class T>
struct codec : scalar_codec<field_type::character> {
    static_assert(has_as_field<T>,
                  "trace_ring: this type cannot be a field; for a text use std::string_view, for a "
                  "row std::array or std::span<const T>, for a duration include "
                  "<trace_ring/record/event/duration.hpp>, else specialise trace_ring::as_field");
    static_assert(
        !has_as_field<T>,
        "trace_ring: include <trace_ring/record/event/as_field.hpp> for a field whose type "
        "has a trace_ring::as_field");
    static constexpr std::uint64_t keep(const T&) noexcept { return 0; }
};

template <class T>
requires scalar<T>
struct codec<T> : scalar_codec<scalar_type<T>()> {
    [[gnu::always_inline]] static constexpr std::uint64_t keep(T value) noexcept {
        return bits_of(value);
    }
};

template <own_enum T>
struct codec<T> : scalar_codec<scalar_type<number_of<T>>()> {
    using enumeration = T;
    [[gnu::always_inline]] static constexpr std::uint64_t keep(T value) noexcept {
        return bits_of(static_cast<std::underlying_type_t<T>>(value));
    }
};

template <>
struct codec<flow> : scalar_codec<field_type::u64> {
    static constexpr bool ties = true;
    [[gnu::always_inline]] static constexpr std::uint64_t keep(flow value) noexcept {
        return value.value;
    }
};

template <class T>
requires(std::is_object_v<T> || std::is_void_v<T>) struct codec<T*>
    : scalar_codec<field_type::address> {
    static_assert(!std::is_same_v<std::remove_cv_t<T>, char>,
                  "trace_ring: a char pointer is ambiguous; use std::string_view for text or "
                  "trace_ring::address for the pointer");
    static constexpr bool as_it_lies = sizeof(T*) == sizeof(std::uint64_t);
    [[gnu::always_inline]] static std::uint64_t keep(const volatile T* value) noexcept {
        return reinterpret_cast<std::uintptr_t>(value);
    }
};

/// std::string_view, or a type with the same members that owns nothing either.
template <class T>
concept text_view = std::is_trivially_copyable_v<T> && requires(const T& value) {
    typename T::traits_type;
    { value.size() }
    noexcept;
    requires std::is_same_v<decltype(value.data()), const char*>;
};
template <text_view T>
struct codec<T> : codec_of<field_type::character, field_form::variable> {
    using kept = bytes_view;
    [[gnu::always_inline]] static constexpr kept keep(const T& value) noexcept {
        return {value.data(), value.size()};
    }
    [[gnu::always_inline]] static constexpr bytes_view memory(const kept& k) noexcept { return k; }
};

/// std::span<const T>.
template <class S, class T>
concept row_view = requires(const S& value) {
    requires S::extent == static_cast<std::size_t>(-1);
    requires std::is_same_v<decltype(value.data()), const T*>;
    value.size_bytes();
};
template <class T>
inline constexpr bool in_rows = scalar<T> || own_enum<T>;
template <template <class, std::size_t> class S, class T, std::size_t N>
requires(row_view<S<const T, N>, T>&& in_rows<T>) struct codec<S<const T, N>>
    : codec_of<codec<T>::type, field_form::variable> {
    static_assert(codec<T>::as_it_lies, "trace_ring: a row is recorded as it lies in memory");
    using enumeration = typename codec<T>::enumeration;
    using unit = typename codec<T>::unit;
    using kept = bytes_view;
    [[gnu::always_inline]] static constexpr kept keep(const S<const T, N>& value) noexcept {
        return {value.data(), value.size_bytes()};
    }
    [[gnu::always_inline]] static constexpr bytes_view memory(const kept& k) noexcept { return k; }
};

/// The elements of an array whose elements are converted.
template <std::size_t N>
struct bits_row {
    std::uint64_t of[N];
};

/// std::array<T, N>.
template <class A, class T, std::size_t N>
concept array_of = sizeof(A) == sizeof(T[N == 0 ? 1 : N]) && !has_as_field<A> &&
                   requires(const A& value) {
    requires std::is_same_v<decltype(value.data()), const T*>;
    typename A::value_type;
};
template <template <class, std::size_t> class A, class T, std::size_t N>
requires array_of<A<T, N>, T, N>
struct codec<A<T, N>> : codec_of<codec<T>::type, field_form::array, N> {
    static_assert(N > 0 && N <= 0xFFFF, "trace_ring: a fixed array has 1 to 65535 elements");
    static_assert(codec<T>::form == field_form::scalar, "trace_ring: arrays hold scalars only");
    static constexpr bool ties = codec<T>::ties;
    static constexpr bool as_it_lies = codec<T>::as_it_lies && !has_as_field<T>;
    using enumeration = typename codec<T>::enumeration;
    using unit = typename codec<T>::unit;
    using kept = std::conditional_t<as_it_lies, const T*, bits_row<N>>;
    [[gnu::always_inline]] static constexpr kept keep(const A<T, N>& value) noexcept {
        if constexpr (as_it_lies) {
            return value.data();
        } else {
            kept out{};
            for (std::size_t i = 0; i < N; ++i) out.of[i] = codec<T>::keep(value[i]);
            return out;
        }
    }
    [[gnu::always_inline]] static constexpr std::uint64_t bits(const kept& from,
                                                               std::size_t k) noexcept {
        if constexpr (as_it_lies) {
            return codec<T>::keep(from[k]);
        } else {
            return from.of[k];
        }
    }
    [[gnu::always_inline]] static constexpr bytes_view memory(const kept& from) noexcept {
        return {from, N * sizeof(T)};
    }
};

}  // namespace impl

}  // namespace trace_ring::inline v1
