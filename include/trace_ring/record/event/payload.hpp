// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// From the values of one record to the words of its payload. The writer's side of
/// record/field.hpp: lengths are measured before the record is opened, so that between opening and
/// commit there are only stores.

#include <cstddef>
#include <cstdint>

#include <trace_ring/atomic.hpp>
#include <trace_ring/record/event/codec.hpp>
#include <trace_ring/record/event/signature.hpp>
#include <trace_ring/record/field.hpp>

namespace trace_ring::inline v1::impl {

/// The lengths of the variable fields of one record of `Fields` fields, cut so that the whole fits.
template <std::size_t Fields>
struct measured {
    std::uint16_t lengths[Fields + 1]{};  ///< with the cut bit
    std::uint32_t bytes = 0;              ///< of all variable data, padded
    std::uint32_t cut = 0;                ///< 1: some was cut
};
/// Of one field with the bytes in `data`, of elements of `unit` bytes, where `room` is what the
/// variable data of the record may take. Returns the length with the cut bit.
[[nodiscard, gnu::always_inline]] constexpr std::uint16_t measure_bytes(
    const bytes_view& data, std::size_t unit, std::size_t room, std::uint32_t& all,
    std::uint32_t& cut) noexcept {
    std::size_t most = room - all;
    if (most > variable_length_mask) most = variable_length_mask;
    most = most / unit * unit;
    std::size_t length = data.size;
    std::size_t bit = 0;
    if (length > most) {
        length = most;
        cut = 1;
        bit = variable_cut_bit;
    }
    all += static_cast<std::uint32_t>((length + 7) / 8 * 8);
    return static_cast<std::uint16_t>(length | bit);
}

// g++ warns of reading beyond a literal that it knows, where nothing is read.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Warray-bounds"
template <class Word = std::uint64_t>
[[nodiscard, gnu::always_inline]] inline std::uint64_t load_word(
    const unsigned char* from) noexcept {
    Word word = 0;
    __builtin_memcpy(&word, from, sizeof word);
    return word;
}
#pragma GCC diagnostic pop
/// False for a literal, known to the compiler, that is shorter than a word. No word of it is read
/// in any case; this shows it to g++, which forgets the pragma above in a precompiled header.
[[nodiscard, gnu::always_inline]] inline bool has_words(const unsigned char* from) noexcept {
    return __builtin_object_size(from, 0) >= 8;
}
/// The last `rest` (1 to 7) of `bytes` bytes from there, as a word: by loads that may overlap.
[[nodiscard, gnu::always_inline]] inline std::uint64_t last_word(const unsigned char* from,
                                                                 std::size_t bytes,
                                                                 std::size_t rest) noexcept {
    if (has_words(from) && bytes >= 8) return load_word(from + bytes - 8) >> (64 - rest * 8);
    if (rest >= 4) {
        return load_word<std::uint32_t>(from) | load_word<std::uint32_t>(from + rest - 4)
                                                    << (rest - 4) * 8;
    }
    const std::size_t middle = rest / 2;
    return from[0] | std::uint64_t{from[middle]} << middle * 8 |
           std::uint64_t{from[rest - 1]} << (rest - 1) * 8;
}
/// Stores `bytes` bytes as whole words, padded with zeros.
[[gnu::always_inline]] inline void store_bytes(std::byte* to, const void* data,
                                               std::size_t bytes) noexcept {
    const auto* const from = static_cast<const unsigned char*>(data);
    std::size_t at = 0;
    // relaxed, to the end: published by the commit word
    for (; has_words(from) && at + 8 <= bytes; at += 8)
        word_at<std::uint64_t>(to, at).store(load_word(from + at), relaxed);
    if (at < bytes)
        word_at<std::uint64_t>(to, at).store(last_word(from, bytes, bytes - at), relaxed);
}

/// One kept value, by its place in the list of fields.
template <std::size_t Index, class Kept>
struct kept_value {
    Kept value;
};

template <class Signature, class Places = indices_to<Signature::count>>
struct payload;
/// The values of one record, converted and ready to be stored.
template <class... T, std::size_t... Index>
struct payload<signature<T...>, indices<Index...>> : kept_value<Index, typename codec<T>::kept>... {
    using fields = signature<T...>;
    using sizes = measured<fields::count>;

    [[gnu::always_inline]] explicit constexpr payload(const T&... values) noexcept
        : kept_value<Index, typename codec<T>::kept>{codec<T>::keep(values)}... {}

    /// `room` is what variable data may take, a multiple of 8.
    [[nodiscard, gnu::always_inline]] constexpr sizes measure(
        [[maybe_unused]] std::size_t room) const noexcept {
        sizes out;
        (measure_one<Index, T>(out, room), ...);
        return out;
    }

    /// Puts the fixed part together: `word` is zero, and has `fields::words` of them.
    [[gnu::always_inline]] constexpr void pack(
        [[maybe_unused]] std::uint64_t* word) const noexcept {
        (pack_one<Index, T>(word, 0), ...);
    }

    /// Stores the payload at `to`, aligned to 8 bytes, as relaxed words: no reader looks yet.
    [[gnu::always_inline]] void store(std::byte* to,
                                      [[maybe_unused]] const sizes& m) const noexcept {
        std::uint64_t fixed[fields::words + 1] = {};
        [[maybe_unused]] std::size_t data = fields::places.bytes;
        (store_one<Index, T>(to, fixed, data, m.lengths[Index]), ...);
        // One by one, if they are few, so that no word goes through memory.
        constexpr std::size_t spelled_out = together.count <= 16 ? together.count : 0;
        store_words(indices_to<spelled_out>{}, to, fixed);
        for (std::size_t i = spelled_out; i < together.count; ++i) {
            const std::size_t at = together.word[i];
            word_at<std::uint64_t>(to, at * 8).store(fixed[at], relaxed);  // relaxed: as below
        }
    }

private:
    /// A fixed array that fills whole words of the payload, and lies in memory as it does there, is
    /// stored from where it is: long ones would otherwise be copied once more.
    template <std::size_t Field, class U>
    static constexpr bool stored_whole =
        codec<U>::form == field_form::array&& codec<U>::as_it_lies&& fields::places.at[Field] % 8 ==
            0 &&
        codec<U>::count* size_of(codec<U>::type) % 8 == 0;

    /// The words of the fixed part that are put together from their fields.
    struct word_list {
        std::uint32_t word[fields::words + 1]{};
        std::size_t count = 0;
    };
    static constexpr word_list together = [] {
        bool whole[fields::words + 1]{};
        const bool stored[] = {stored_whole<Index, T>..., false};
        const std::size_t bytes[] = {codec<T>::count * size_of(codec<T>::type)..., 0};
        for (std::size_t i = 0; i < fields::count; ++i) {
            for (std::size_t k = 0; stored[i] && k < bytes[i] / 8; ++k)
                whole[fields::places.at[i] / 8 + k] = true;
        }
        word_list out;
        for (std::uint32_t i = 0; i < fields::words; ++i) {
            if (!whole[i]) out.word[out.count++] = i;
        }
        return out;
    }();
    template <std::size_t... W>
    [[gnu::always_inline]] static void store_words(indices<W...>, [[maybe_unused]] std::byte* to,
                                                   [[maybe_unused]] const std::uint64_t* fixed) {
        // relaxed, all: published by the commit word
        (word_at<std::uint64_t>(to, together.word[W] * 8).store(fixed[together.word[W]], relaxed),
         ...);
    }

    template <std::size_t Field, class U>
    [[nodiscard, gnu::always_inline]] constexpr const typename codec<U>::kept& kept()
        const noexcept {
        return static_cast<const kept_value<Field, typename codec<U>::kept>*>(this)->value;
    }
    template <std::size_t Field, class U>
    [[gnu::always_inline]] constexpr void measure_one(sizes& out, std::size_t room) const noexcept {
        if constexpr (codec<U>::form == field_form::variable) {
            out.lengths[Field] = measure_bytes(codec<U>::memory(kept<Field, U>()),
                                               size_of(codec<U>::type), room, out.bytes, out.cut);
        }
    }
    template <std::size_t Field, class U>
    [[gnu::always_inline]] constexpr void pack_one(std::uint64_t* word,
                                                   std::uint64_t length) const noexcept {
        constexpr std::size_t at = fields::places.at[Field];
        using of = codec<U>;
        if constexpr (of::form == field_form::variable) {
            word[at / 8] |= length << (at % 8 * 8);
        } else if constexpr (stored_whole<Field, U>) {
            const auto* const from =
                static_cast<const unsigned char*>(of::memory(kept<Field, U>()).data);
            for (std::size_t k = 0; k < of::count * size_of(of::type) / 8; ++k)
                word[at / 8 + k] = load_word(from + k * 8);
        } else {
            for (std::size_t k = 0; k < of::count; ++k) {
                const std::size_t place = at + k * size_of(of::type);
                word[place / 8] |= of::bits(kept<Field, U>(), k) << (place % 8 * 8);
            }
        }
    }
    template <std::size_t Field, class U>
    [[gnu::always_inline]] void store_one(std::byte* to, std::uint64_t* fixed, std::size_t& data,
                                          std::uint64_t length) const noexcept {
        if constexpr (stored_whole<Field, U>) {
            const bytes_view from = codec<U>::memory(kept<Field, U>());
            store_bytes(to + fields::places.at[Field], from.data, from.size);
        } else {
            pack_one<Field, U>(fixed, length);
            if constexpr (codec<U>::form == field_form::variable) {
                const bytes_view from = codec<U>::memory(kept<Field, U>());
                const std::size_t bytes = length & variable_length_mask;
                store_bytes(to + data, from.data, bytes);
                data += (bytes + 7) / 8 * 8;
            }
        }
    }
};

/// The values of a record of event E.
template <class E>
using payload_of = payload<typename E::signature>;

}  // namespace trace_ring::inline v1::impl
