// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The names of an enumeration's values: declared once, kept in a trace's dictionary with each
/// event that has a field of the enumeration, and shown by readers instead of the number.
/// @code
///   template <>
///   struct trace_ring::names_of<side> {
///       static constexpr trace_ring::value_name<side> list[] = {{side::buy, "buy"},
///                                                               {side::sell, "sell"}};
///   };
/// @endcode
/// The list must be declared before the first event with such a field. It may also be a std::array
/// or std::span, and need not have all values.

#include <trace_ring/fwd.hpp>

#if __cplusplus >= 202002L

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <trace_ring/record/event/names_shape.hpp>
#include <trace_ring/record/event/signature.hpp>
#include <trace_ring/record/field.hpp>

namespace trace_ring::inline v1 {

/// A value of enumeration E and its name in readers: UTF-8, not empty.
template <class E>
struct value_name {
    E value;         ///< the value
    name_view name;  ///< its name
};

namespace impl {

/// Calls `put(word, bits)` for each part of the words that hold the names of `E`, the enumerations
/// of an event's fields, and returns their shape. The words are right if `of` is that shape.
template <class... E, class Put>
constexpr names_shape lay_out_names(const names_shape& of, Put&& put) {
    names_shape made;
    std::size_t room = most_names_bytes;
    std::uint64_t lists[sizeof...(E)]{};  // of each enumeration, at the first field that has it
    const auto add_value = [&](std::uint64_t value, name_view name) {
        const std::size_t bytes = 10 + name.size();
        if (name.empty() || bytes > room) return;
        room -= bytes;
        put(of.values_at() + made.values, value);
        put(of.lengths_at() + made.values / 4, std::uint64_t{name.size()} << made.values % 4 * 16);
        ++made.values;
        for (const char c : name) {
            put(of.text_at() + made.text / 8,
                std::uint64_t{static_cast<unsigned char>(c)} << made.text % 8 * 8);
            ++made.text;
        }
    };
    const auto add = [&]<class One>(One*, std::size_t field) {
        if constexpr (has_names<One>) {
            if (room < 8) return;
            room -= 8;
            constexpr bool same[] = {std::is_same_v<One, E>...};
            std::size_t first = 0;
            while (!same[first]) ++first;
            if (first == field) {
                const std::uint64_t begin = made.values;
                for (const value_name<One>& each : names_of<One>::list) {
                    using number = std::underlying_type_t<One>;
                    add_value(static_cast<std::uint64_t>(static_cast<number>(each.value)),
                              each.name);
                }
                lists[field] = begin << 16 | (made.values - begin) << 32;
            }
            put(1 + made.fields++, field | lists[first]);
        }
    };
    std::size_t field = 0;
    (add(static_cast<E*>(nullptr), field++), ...);
    return made;
}

template <class... E>
struct names_with_words {
    static constexpr names_shape shape = lay_out_names<E...>({}, [](std::size_t, std::uint64_t) {});
    struct array {
        std::uint64_t words[shape.words()]{};
    };
    static constexpr array all = [] {
        array made;
        made.words[0] = shape.head();
        lay_out_names<E...>(
            shape, [&](std::size_t word, std::uint64_t bits) { made.words[word] |= bits; });
        return made;
    }();
};
/// The names of an event's values, as the dictionary has them; empty if there are none.
template <class... E>
struct names_alone {
    static constexpr static_list<std::uint64_t> words{};
};
template <class... E>
requires(has_names<E> || ...) struct names_alone<E...> {
    static constexpr static_list<std::uint64_t> words{names_with_words<E...>::all.words,
                                                      names_with_words<E...>::shape.words()};
};

template <class... Codec>
requires((has_names<typename Codec::enumeration> || ...) &&
         (std::is_void_v<typename Codec::unit> &&
          ...)) inline constexpr static_list<std::uint64_t> words_behind<Codec...> =
    names_alone<typename Codec::enumeration...>::words;

}  // namespace impl

}  // namespace trace_ring::inline v1

#endif
