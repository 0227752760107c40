// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The words in the dictionary that hold the names of values and the units of durations. The names
/// are 64-bit words: the head, a word for each field that has names,
/// the values, then the lengths of their names, four to a word, and the names, without terminators,
/// padded with zeros. Fields of the same enumeration share their values.
///   head    bits 0-31 names_magic, 32-47 the number of fields, 48-63 of values
///   field   bits 0-15 which field of the event, 16-31 the first of its values, 32-47 how many
///   value   as a 64-bit number, with its sign
/// Before them lie the units of fields that are durations, if there are any: a head, and three
/// words for each such field.
///   head    bits 0-31 units_magic, 32-47 the number of fields
///   field   which field of the event; then the unit in seconds, as numerator and denominator

#include <cstddef>
#include <cstdint>

namespace trace_ring::inline v1 {

/// The most bytes that the names of an event's values may take in the dictionary: 10 and the name
/// for each value, 8 for each field. Values beyond that have no name, and are shown as numbers.
inline constexpr std::size_t most_names_bytes = 8192;

inline constexpr std::uint32_t names_magic = 0x53454D4E;  ///< "NMES"

inline constexpr std::uint32_t units_magic = 0x54494E55;  ///< "UNIT"
/// The words that the units of fields take, by the first of the words behind an entry's texts.
[[nodiscard]] constexpr std::size_t units_words(std::uint64_t head) noexcept {
    const bool are_there = static_cast<std::uint32_t>(head) == units_magic;
    return are_there ? 1 + 3 * (static_cast<std::uint32_t>(head >> 32) & 0xFFFFU) : 0;
}

/// The numbers of fields, values and bytes in an event's names, and where each part begins.
struct names_shape {
    std::size_t fields = 0;  ///< fields with names of values
    std::size_t values = 0;  ///< values with names
    std::size_t text = 0;    ///< bytes

    /// First word of the values.
    [[nodiscard]] constexpr std::size_t values_at() const noexcept { return 1 + fields; }
    /// First word of the lengths.
    [[nodiscard]] constexpr std::size_t lengths_at() const noexcept { return values_at() + values; }
    /// First word of the texts.
    [[nodiscard]] constexpr std::size_t text_at() const noexcept {
        return lengths_at() + (values + 3) / 4;
    }
    /// Words in all.
    [[nodiscard]] constexpr std::size_t words() const noexcept {
        return text_at() + (text + 7) / 8;
    }
    /// The first word. Zero fields mean: the dictionary had no room for the event's names.
    [[nodiscard]] constexpr std::uint64_t head() const noexcept {
        return names_magic | std::uint64_t{fields} << 32 | std::uint64_t{values} << 48;
    }
};

}  // namespace trace_ring::inline v1
