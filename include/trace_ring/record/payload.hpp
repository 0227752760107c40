// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// From the values of one record to the words of its payload. The writer's side of
/// record/field.hpp: lengths are measured before the record is opened, so that between opening and
/// commit there are only stores.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <trace_ring/atomic.hpp>
#include <trace_ring/record/event.hpp>

namespace trace_ring::inline v1::impl {

template <class T>
inline constexpr bool is_variable_wire = false;
template <>
inline constexpr bool is_variable_wire<std::string_view> = true;
template <class T>
inline constexpr bool is_variable_wire<std::span<const T>> = true;

template <class T>
[[nodiscard]] constexpr std::size_t bytes_in(const T& wire) noexcept {
    if constexpr (std::is_same_v<T, std::string_view>) {
        return wire.size();
    } else {
        return wire.size_bytes();
    }
}

/// The lengths of the variable fields of one record, cut so that the whole fits.
template <class Event>
struct measured {
    std::array<std::uint16_t, Event::field_count + 1> lengths{};  // with the cut bit
    std::uint32_t bytes = 0;                                      // of all variable data, padded
    bool cut = false;
};

/// `room` is what variable data may take, a multiple of 8.
template <class Event>
[[nodiscard, gnu::always_inline]] constexpr measured<Event> measure(
    const typename Event::wires& values, std::size_t room) noexcept {
    measured<Event> out;
    [[maybe_unused]] const auto one = [&]<std::size_t I>(std::integral_constant<std::size_t, I>) {
        const auto& wire = std::get<I>(values);
        using wire_type = std::remove_cvref_t<decltype(wire)>;
        if constexpr (is_variable_wire<wire_type>) {
            const std::size_t unit = size_of(Event::fields[I].type);
            std::size_t bytes = bytes_in(wire);
            const std::size_t most =
                std::min<std::size_t>(room - out.bytes, variable_length_mask) / unit * unit;
            if (bytes > most) {
                bytes = most;
                out.cut = true;
                out.lengths[I] = static_cast<std::uint16_t>(bytes | variable_cut_bit);
            } else {
                out.lengths[I] = static_cast<std::uint16_t>(bytes);
            }
            out.bytes += static_cast<std::uint32_t>((bytes + 7) / 8 * 8);
        }
    };
    [&]<std::size_t... I>(std::index_sequence<I...>) {
        (one(std::integral_constant<std::size_t, I>{}), ...);
    }
    (std::make_index_sequence<Event::field_count>{});
    return out;
}

/// A fixed array that fills whole words of the payload, and lies in memory as it does there: it is
/// stored from where it is. Long ones would otherwise be copied once more.
template <class Event, std::size_t I>
inline constexpr bool is_stored_whole = [] {
    constexpr field_description f = Event::fields[I];
    if constexpr (f.form == field_form::array) {
        using element = typename std::tuple_element_t<I, typename Event::wires>::value_type;
        return sizeof(element) == size_of(f.type) && f.offset % 8 == 0 &&
               f.count * sizeof(element) % 8 == 0;
    } else {
        return false;
    }
}();

/// The words of the fixed payload that are put together from their fields, by number: `count` of
/// them.
template <class Event>
struct words_put_together {
    static constexpr std::size_t all = Event::fixed_bytes / 8;
    static constexpr auto list = [] {
        std::array<bool, all + 1> whole{};
        [&]<std::size_t... I>(std::index_sequence<I...>) {
            [[maybe_unused]] const auto mark = [&](bool stored, const field_description& f) {
                for (std::size_t k = 0; stored && k < f.count * size_of(f.type) / 8; ++k) {
                    whole[f.offset / 8 + k] = true;
                }
            };
            (mark(is_stored_whole<Event, I>, Event::fields[I]), ...);
        }
        (std::make_index_sequence<Event::field_count>{});
        std::pair<std::array<std::size_t, all + 1>, std::size_t> out{};
        for (std::size_t i = 0; i < all; ++i) {
            if (!whole[i]) out.first[out.second++] = i;
        }
        return out;
    }();
    static constexpr std::size_t count = list.second;
};

/// Whether a payload is a few words that are put together: it can go to an indexed_place.
template <class Event>
inline constexpr bool is_few_words = !Event::variable && words_put_together<Event>::count <= 8 &&
                                     words_put_together<Event>::count == Event::fixed_bytes / 8;

/// Stores a payload `Start` bytes (a multiple of 8) behind `to` as relaxed words: no reader looks
/// before the commit. `Place` is std::byte* or, for few words, indexed_place.
template <class Event, std::size_t Start = 0, class Place>
[[gnu::always_inline]] inline void store_payload(
    Place to, const typename Event::wires& values,
    [[maybe_unused]] const measured<Event>& m) noexcept {
    constexpr bool indexed = std::is_same_v<Place, indexed_place>;
    static_assert(!indexed || is_few_words<Event>);
    constexpr std::size_t words = Event::fixed_bytes / 8;
    std::array<std::uint64_t, words + 1> fixed{};
    [[maybe_unused]] std::size_t data = Start + Event::fixed_bytes;
    [[maybe_unused]] const auto one = [&]<std::size_t I>(std::integral_constant<std::size_t, I>)
        __attribute__((always_inline)) {
        const auto& wire = std::get<I>(values);
        constexpr field_description f = Event::fields[I];
        if constexpr (is_stored_whole<Event, I>) {
            const auto* from = reinterpret_cast<const std::byte*>(wire.data());
            for (std::size_t at = 0; at < f.count * size_of(f.type); at += 8) {
                std::uint64_t word = 0;
                std::memcpy(&word, from + at, 8);
                // relaxed: published by the commit word
                word_at<std::uint64_t>(to, Start + f.offset + at).store(word, relaxed);
            }
        } else if constexpr (f.form == field_form::scalar) {
            fixed[f.offset / 8] |= bits_of(wire) << (f.offset % 8 * 8);
        } else if constexpr (f.form == field_form::array) {
            for (std::size_t k = 0; k < f.count; ++k) {
                const std::size_t at = f.offset + k * size_of(f.type);
                fixed[at / 8] |= bits_of(wire[k]) << (at % 8 * 8);
            }
        } else {
            fixed[f.offset / 8] |= std::uint64_t{m.lengths[I]} << (f.offset % 8 * 8);
            const std::size_t bytes = m.lengths[I] & variable_length_mask;
            const auto* from = reinterpret_cast<const std::byte*>(wire.data());
            std::size_t at = 0;
            for (; at + 8 <= bytes; at += 8) {
                std::uint64_t word = 0;
                std::memcpy(&word, from + at, 8);
                // relaxed: published by the commit word
                word_at<std::uint64_t>(to, data + at).store(word, relaxed);
            }
            if (at < bytes) {
                std::uint64_t word = 0;
                for (std::size_t k = 0; at + k < bytes; ++k) {
                    word |= std::to_integer<std::uint64_t>(from[at + k]) << (k * 8);
                }
                // relaxed: published by the commit word
                word_at<std::uint64_t>(to, data + at).store(word, relaxed);
            }
            data += (bytes + 7) / 8 * 8;
        }
    };
    [&]<std::size_t... I>(std::index_sequence<I...>) __attribute__((always_inline)) {
        (one(std::integral_constant<std::size_t, I>{}), ...);
    }
    (std::make_index_sequence<Event::field_count>{});
    using together = words_put_together<Event>;
    // One by one, if they are few, so that no word goes through memory.
    constexpr std::size_t spelled_out = together::count <= 16 ? together::count : 0;
    const auto store = [&](std::size_t i) __attribute__((always_inline)) {
        // relaxed: published by the commit word
        word_at<std::uint64_t>(to, Start + i * 8).store(fixed[i], relaxed);
    };
    [&]<std::size_t... I>(std::index_sequence<I...>) __attribute__((always_inline)) {
        if constexpr (indexed) {
            (store_at<Start + I * 8>(to, fixed[I]), ...);
        } else if constexpr (spelled_out != 0) {
            (store(together::list.first[I]), ...);
        } else {
            for (std::size_t i = 0; i < together::count; ++i) store(together::list.first[i]);
        }
    }
    (std::make_index_sequence<spelled_out>{});
}

}  // namespace trace_ring::inline v1::impl
