// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What follows from the list of an event's field types: where each field lies, and how the values
/// of a record become words. Events with the same list share all of it, so that a thousand event
/// types do not cost a thousand times as much to compile.

#include <cstddef>
#include <cstdint>

#include <trace_ring/record/event/codec.hpp>
#include <trace_ring/record/field.hpp>

namespace trace_ring::inline v1::impl {

template <std::size_t... Index>
struct indices {};
#if defined(__clang__)
template <class, std::size_t... Index>
using indices_from = indices<Index...>;
template <std::size_t N>
using indices_to = __make_integer_seq<indices_from, std::size_t, N>;
#else
template <std::size_t N>
using indices_to = indices<__integer_pack(N)...>;
#endif

template <class... T>
struct type_list {};
/// Words of a payload up to which it is put together in registers.
inline constexpr std::size_t most_few_words = 8;

/// What the dictionary has behind the texts of an event whose fields have these codecs: the names
/// of values (value_names.hpp) and the units of durations (duration.hpp).
template <class... Codec>
inline constexpr static_list<std::uint64_t> words_behind{};

template <class... T>
struct signature {
    static constexpr std::size_t count = sizeof...(T);
    /// Each record gives the length of its payload.
    static constexpr bool variable = ((codec<T>::form == field_form::variable) || ...);

    struct place_list {
        std::uint32_t at[count + 1]{};  ///< of each field, in the payload
        std::uint32_t bytes = 0;        ///< of the fixed part, a multiple of 8
    };
    static constexpr place_list places = [] {
        place_list out;
        const bool varies[] = {(codec<T>::form == field_form::variable)..., false};
        const std::size_t units[] = {size_of(codec<T>::type)..., 1};
        const std::size_t counts[] = {codec<T>::count..., 1};
        std::size_t at = 0;
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t unit = varies[i] ? 2 : units[i];
            at = (at + unit - 1) / unit * unit;
            out.at[i] = static_cast<std::uint32_t>(at);
            at += unit * (varies[i] ? 1 : counts[i]);
        }
        out.bytes = static_cast<std::uint32_t>((at + 7) / 8 * 8);
        return out;
    }();
    static_assert(places.bytes <= 32000, "trace_ring: an event's fixed fields exceed 32000 bytes");
    static constexpr std::size_t words = places.bytes / 8;
    static constexpr bool flows_come_first = [] {
        const bool ties[] = {codec<T>::ties..., false};
        for (std::size_t i = most_flow_fields; i < count; ++i) {
            if (ties[i]) return false;
        }
        return true;
    }();
    static_assert(flows_come_first, "trace_ring: flows are among the first 64 fields of an event");
    /// The payload is a few words that stay in registers.
    static constexpr bool few = !variable && words <= most_few_words;

    static constexpr static_list<std::uint64_t> names = words_behind<codec<T>...>;

    /// Calls `what` with the values that are stored of a record's. The parameters convert what the
    /// caller gives, and live until `what` returns.
    template <class Do>
    [[gnu::always_inline]] static auto convert(const Do& what, const T&... values) noexcept {
        return what(values...);
    }
};

}  // namespace trace_ring::inline v1::impl
