// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The two data models of traced programs, as types. `long` and pointers differ between them, and
/// so do structure offsets; C's other integers do not:
/// @code
///            char  short  int  long  long long  pointer
///   ilp32     1      2     4     4       8         4
///   lp64      1      2     4     8       8         8
/// @endcode
/// One process may read the records of both, so nothing here depends on the reader's own model.
/// Below them are words of a big-endian guest in plain bytes.
/// @code
///   const std::uint32_t address = trace_ring::record::load_big<std::uint32_t>(bytes, 4);
/// @endcode

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace trace_ring::inline v1::record {

/// The mode of a traced program; the value is a bit that is set for 32-bit programs.
enum class program_mode : std::uint8_t { lp64 = 0, ilp32 = 1 };

/// 32-bit programs.
struct ilp32 {
    using long_type = std::int32_t;
    using ulong_type = std::uint32_t;
    using pointer_type = std::uint32_t;  ///< an address of the traced program, as a number
    static constexpr program_mode mode = program_mode::ilp32;
    static constexpr std::size_t long_bytes = 4, long_alignment = 4;
    static constexpr std::size_t pointer_bytes = 4, pointer_alignment = 4;
};

/// 64-bit programs. The alignments are the traced program's: an i386 reader aligns a plain
/// std::uint64_t member to 4 bytes, so mirror such a structure with alignas.
struct lp64 {
    using long_type = std::int64_t;
    using ulong_type = std::uint64_t;
    using pointer_type = std::uint64_t;  ///< an address of the traced program, as a number
    static constexpr program_mode mode = program_mode::lp64;
    static constexpr std::size_t long_bytes = 8, long_alignment = 8;
    static constexpr std::size_t pointer_bytes = 8, pointer_alignment = 8;
};

/// A type that describes a data model as `ilp32` and `lp64` do.
template <class M>
concept data_model =
    std::signed_integral<typename M::long_type> && std::unsigned_integral<typename M::ulong_type> &&
        std::unsigned_integral<typename M::pointer_type> &&
        std::same_as<decltype(M::mode), const program_mode> &&
        sizeof(typename M::long_type) == M::long_bytes
    && sizeof(typename M::ulong_type) == M::long_bytes &&
    sizeof(typename M::pointer_type) == M::pointer_bytes&& std::has_single_bit(M::long_alignment) &&
    std::has_single_bit(M::pointer_alignment);

static_assert(data_model<ilp32> && data_model<lp64>);

/// The data model of this translation unit.
using host_model = std::conditional_t<sizeof(void*) == 4, ilp32, lp64>;
static_assert(sizeof(long) == host_model::long_bytes && sizeof(void*) == host_model::pointer_bytes,
              "trace_ring knows ILP32 and LP64 hosts");

/// A word of a guest: unsigned, of 16, 32 or 64 bits.
template <class T>
concept guest_word = std::same_as<T, std::uint16_t> || std::same_as<T, std::uint32_t> ||
    std::same_as<T, std::uint64_t>;

/// The big-endian word of type T at `offset` in `bytes`. It need not be aligned;
/// `offset + sizeof(T)` must not exceed `bytes.size()`. Signal-safe, constant time.
template <guest_word T>
[[nodiscard]] constexpr T load_big(std::span<const std::byte> bytes,
                                   std::size_t offset = 0) noexcept {
    T value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i)
        value = static_cast<T>(value << 8 | std::to_integer<T>(bytes[offset + i]));
    return value;
}

/// Stores `value` big-endian at `offset` in `bytes`, under the conditions of `load_big`.
template <guest_word T>
constexpr void store_big(std::span<std::byte> bytes, std::size_t offset, T value) noexcept {
    for (std::size_t i = sizeof(T); i-- > 0; value = static_cast<T>(value >> 8))
        bytes[offset + i] = static_cast<std::byte>(value & 0xFFU);
}

/// `value` in the byte order of a big-endian guest, or back: both are the same operation. For words
/// that are loaded and stored whole, such as atomics.
[[nodiscard]] constexpr std::uint32_t big_endian(std::uint32_t value) noexcept {
    if constexpr (std::endian::native == std::endian::big)
        return value;
    else
        return __builtin_bswap32(value);
}

}  // namespace trace_ring::inline v1::record
