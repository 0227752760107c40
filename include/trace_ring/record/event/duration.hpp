// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Fields that are a std::chrono::duration. A duration is recorded as its count, exactly, and the
/// dictionary has its unit (value_names.hpp says how).

#include <trace_ring/fwd.hpp>

#if __cplusplus >= 202002L

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <trace_ring/record/event/codec.hpp>
#include <trace_ring/record/event/signature.hpp>
#include <trace_ring/record/event/value_names.hpp>

namespace trace_ring::inline v1::impl {

/// std::chrono::duration, known by what it has. A user's as_field is preferred.
template <class T>
concept duration = !has_as_field<T> && std::is_trivially_copyable_v<T> && requires(const T& value) {
    typename T::rep;
    T::period::num;
    T::period::den;
    requires std::is_same_v<decltype(value.count()), typename T::rep>;
};
/// The seconds between two counts of a duration: `Num` / `Den`.
template <std::int64_t Num, std::int64_t Den>
struct time_unit {
    static constexpr std::uint64_t num = Num;
    static constexpr std::uint64_t den = Den;
    static constexpr bool is_positive = Num > 0 && Den > 0;
    static_assert(is_positive, "trace_ring: a duration's period is positive");
    /// Readers compare durations as nanoseconds, num * 10^9 / den of them for each count.
    static constexpr bool fits = [] {
        std::uint64_t a = 1'000'000'000;
        for (std::uint64_t b = den; b != 0;) {
            const std::uint64_t rest = a % b;
            a = b;
            b = rest;
        }
        return num <= (std::uint64_t{1} << 63) / (1'000'000'000 / a);
    }();
    static_assert(fits, "trace_ring: the period of a field's duration is at most 292 years");
};

template <duration T>
struct codec<T> : scalar_codec<scalar_type<typename T::rep>()> {
    static_assert(!is_one_of<typename T::rep, bool, char>,
                  "trace_ring: a duration counts in numbers");
    using unit = time_unit<T::period::num, T::period::den>;
    static constexpr bool as_it_lies = sizeof(T) == sizeof(typename T::rep);
    [[gnu::always_inline]] static constexpr std::uint64_t keep(T value) noexcept {
        return bits_of(value.count());
    }
};

template <duration T>
inline constexpr bool in_rows<T> = true;

/// The units of an event's fields, where `U` has one for each field, before the names of values.
template <class Names, class... U>
struct units_with_names {
    static constexpr std::size_t count = (0 + ... + (std::is_void_v<U> ? 0U : 1U));
    static constexpr static_list<std::uint64_t> names = Names::words;
    struct array {
        std::uint64_t words[1 + 3 * count + names.size()]{};
    };
    static constexpr array all = [] {
        array made;
        made.words[0] = units_magic | std::uint64_t{count} << 32;
        std::size_t at = 1;
        std::size_t field = 0;
        const auto add = [&]<class Unit>(Unit*) {
            if constexpr (!std::is_void_v<Unit>) {
                made.words[at++] = field;
                made.words[at++] = Unit::num;
                made.words[at++] = Unit::den;
            }
            ++field;
        };
        (add(static_cast<U*>(nullptr)), ...);
        for (const std::uint64_t word : names) made.words[at++] = word;
        return made;
    }();
    static constexpr static_list<std::uint64_t> words{all.words, sizeof all / 8};
};
template <class... Codec>
requires(!std::is_void_v<typename Codec::unit> ||
         ...) inline constexpr static_list<std::uint64_t> words_behind<Codec...> =
    units_with_names<names_alone<typename Codec::enumeration...>, typename Codec::unit...>::words;

}  // namespace trace_ring::inline v1::impl

#endif
