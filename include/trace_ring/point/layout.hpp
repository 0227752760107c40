// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Lays out a C structure or union whose members are known only at run time, like gcc and clang on
/// i386 and x86-64.
/// @code
///   using namespace trace_ring;
///   point::layout of_sigaction(record::program_mode::ilp32, point::layout::structure);
///   of_sigaction.add(point::extent_of(point::c_type::pointer, record::program_mode::ilp32));
///   const auto mask = of_sigaction.add({128, 4});  // at 4, where a 64-bit program has it at 8
/// @endcode
/// Nothing throws or allocates. Sizes beyond `most_bytes`, which no program can have, are rejected.

#include <cstdint>
#include <optional>

#include <trace_ring/point/c_types.hpp>

namespace trace_ring::inline v1::point {

/// Where the bits of a bit-field are: in the little-endian word of `bytes` at `offset`. The word is
/// aligned as its type is in a structure, and lies within the structure; of a packed structure it
/// begins at any byte, and lies within it unless the word is larger than the whole.
struct bit_field {
    std::uint64_t offset = 0;    ///< bytes from the beginning
    std::uint8_t bytes = 0;      ///< 1, 2, 4 or 8
    std::uint8_t first_bit = 0;  ///< from the lowest
    std::uint8_t width = 0;      ///< bits of a bit-field; 0: no bit-field

    friend constexpr bool operator==(const bit_field&, const bit_field&) = default;
};

/// Where C puts the members of a structure or union.
class layout {
public:
    /// What is laid out.
    enum kind : std::uint8_t { structure, union_of_all };
    /// No structure is larger: sums of sizes stay far from the end of 64 bits.
    static constexpr std::uint64_t most_bytes = std::uint64_t{1} << 40;

    /// `packed`: as by `__attribute__((packed))`, members and bit-fields have no alignment.
    constexpr explicit layout(kind of, bool packed = false) noexcept : kind_(of), packed_(packed) {}

    /// The offset of the next member, an array of `count` of that type; empty if it is too large.
    constexpr std::optional<std::uint64_t> add(extent type, std::uint64_t count = 1) noexcept {
        const std::uint64_t alignment = packed_ ? 1 : type.alignment;
        const std::uint64_t at = kind_ == union_of_all ? 0 : rounded((bits_ + 7) / 8, alignment);
        if (type.bytes > most_bytes || (type.bytes != 0 && count > most_bytes / type.bytes) ||
            at + type.bytes * count > most_bytes) {
            return std::nullopt;
        }
        align(alignment);
        reach((at + type.bytes * count) * 8);
        return at;
    }

    /// The place of the next bit-field, of an integer type of at most 8 bytes and at most as many
    /// bits; empty if it has more. A width of 0 ends the current word and has no place: a field of
    /// width 0 is returned. An unnamed bit-field does not align the structure.
    constexpr std::optional<bit_field> add_bits(extent type, unsigned width,
                                                bool named = true) noexcept {
        if (type.bytes > 8 || width > type.bytes * 8 || bits_ > most_bytes * 8) return std::nullopt;
        const std::uint64_t unit = type.alignment * 8;
        if (width == 0) {
            if (kind_ == structure) bits_ = rounded(bits_, unit);
            return bit_field{bits_ / 8, 0, 0, 0};
        }
        std::uint64_t at = kind_ == union_of_all ? 0 : bits_;
        // A bit-field that does not fit into the current word of its type begins at the next one.
        if (!packed_ && (at % unit + width + unit - 1) / unit > type.bytes * 8 / unit) {
            at = rounded(at, unit);
        }
        if (named && !packed_) align(type.alignment);
        reach(at + width);
        return word_of(at, width, packed_ ? 1 : type.alignment);
    }

    /// The word in which bits `at` to `at + width` of a structure are, where words are so aligned;
    /// empty if they are in nine bytes. If a word may begin at any byte, it ends with the bits as
    /// soon as there are bytes enough before.
    [[nodiscard]] static constexpr std::optional<bit_field> word_of(
        std::uint64_t at, std::uint64_t width, std::uint64_t alignment) noexcept {
        std::uint64_t from = at / 8 / alignment * alignment;
        const std::uint64_t needed = at - from * 8 + width;
        if (needed > 64) return std::nullopt;
        std::uint8_t bytes = 1;
        while (bytes * 8U < needed) bytes = static_cast<std::uint8_t>(bytes * 2);
        const std::uint64_t end = (at + width + 7) / 8;
        if (alignment == 1) from = end > bytes ? end - bytes : 0;
        return bit_field{from, bytes, static_cast<std::uint8_t>(at - from * 8),
                         static_cast<std::uint8_t>(width)};
    }

    /// The extent of the whole, as a member of another structure or an element of an array.
    [[nodiscard]] constexpr extent whole() const noexcept {
        return {rounded((bits_ + 7) / 8, alignment_), alignment_};
    }

private:
    [[nodiscard]] static constexpr std::uint64_t rounded(std::uint64_t value,
                                                         std::uint64_t to) noexcept {
        return (value + to - 1) / to * to;
    }
    constexpr void align(std::uint64_t alignment) noexcept {
        if (alignment > alignment_) alignment_ = alignment;
    }
    constexpr void reach(std::uint64_t bits) noexcept {
        if (kind_ == structure || bits > bits_) bits_ = bits;
    }

    std::uint64_t bits_ = 0;  // of a union, the largest member's
    std::uint64_t alignment_ = 1;
    kind kind_;
    bool packed_;
};

}  // namespace trace_ring::inline v1::point
