// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The types of C programs of both data models: as C++ types, for structures that a program
/// mirrors, and as sizes, for layouts that are computed.
/// @code
///   template <trace_ring::record::data_model M>
///   struct io_vector {
///       typename trace_ring::point::c_types<M>::template pointer<void> base;
///       typename trace_ring::point::c_types<M>::ulong_type length;
///   };
///   static_assert(sizeof(io_vector<trace_ring::record::ilp32>) == 8);
/// @endcode
/// A reader of either model may mirror both: the alignments are the traced program's, not its own.
/// Source: System V ABI, i386 supplement, figure 2.1, and x86-64 supplement, figure 3.1. A
/// structure may have pointers to itself or to incomplete types, because pointers are not followed.

#include <cstdint>

#include <trace_ring/record/data_model.hpp>

namespace trace_ring::inline v1::point {

/// The types that differ between the data models. C's other types are std::int8_t to std::int32_t,
/// float, and these; `long double` is not mirrored.
template <record::data_model M>
struct c_types;

/// An address in a traced program of that model, of a T there.
template <class T, record::data_model M>
struct pointer_to {
    using element_type = T;                     ///< the type that it points to
    typename c_types<M>::address_type address;  ///< where it points to, in the traced process

    /// Whether it is not null.
    [[nodiscard]] constexpr explicit operator bool() const noexcept { return address != 0; }
    friend constexpr bool operator==(const pointer_to&, const pointer_to&) = default;
};

// A typedef may lower an alignment, and does so for the structures it is used in.
/// C's types in a 32-bit process.
template <>
struct c_types<record::ilp32> {
    using long_type = std::int32_t;    ///< as C's long
    using ulong_type = std::uint32_t;  ///< as C's unsigned long
    /// As C's long long.
    using long_long_type [[gnu::aligned(4)]] = std::int64_t;
    /// As C's unsigned long long.
    using ulong_long_type [[gnu::aligned(4)]] = std::uint64_t;
    /// As C's double.
    using double_type [[gnu::aligned(4)]] = double;
    using address_type = std::uint32_t;  ///< an address
    template <class T>
    using pointer = pointer_to<T, record::ilp32>;  ///< as C's T*
};
/// C's types in a 64-bit process.
template <>
struct c_types<record::lp64> {
    /// As C's long.
    using long_type [[gnu::aligned(8)]] = std::int64_t;
    /// As C's unsigned long.
    using ulong_type [[gnu::aligned(8)]] = std::uint64_t;
    /// As C's long long.
    using long_long_type [[gnu::aligned(8)]] = std::int64_t;
    /// As C's unsigned long long.
    using ulong_long_type [[gnu::aligned(8)]] = std::uint64_t;
    /// As C's double.
    using double_type [[gnu::aligned(8)]] = double;
    /// An address.
    using address_type [[gnu::aligned(8)]] = std::uint64_t;
    template <class T>
    using pointer = pointer_to<T, record::lp64>;  ///< as C's T*
};

/// A type of C by its size in each model.
enum class c_type : std::uint8_t {
    boolean,
    character,
    short_integer,
    integer,
    long_integer,
    long_long_integer,
    single_float,
    double_float,
    long_double_float,
    pointer,
};

/// The requirements of a type as a structure's member.
struct extent {
    std::uint64_t bytes = 0;      ///< the size
    std::uint64_t alignment = 1;  ///< as a member; a power of two

    friend constexpr bool operator==(const extent&, const extent&) = default;
};

/// Size and alignment of a type in that mode.
[[nodiscard]] constexpr extent extent_of(c_type type, record::program_mode mode) noexcept {
    const bool wide = mode == record::program_mode::lp64;
    switch (type) {
        case c_type::boolean:
        case c_type::character:
            return {1, 1};
        case c_type::short_integer:
            return {2, 2};
        case c_type::integer:
        case c_type::single_float:
            return {4, 4};
        case c_type::long_integer:
        case c_type::pointer:
            return wide ? extent{8, 8} : extent{4, 4};
        case c_type::long_long_integer:
        case c_type::double_float:
            return wide ? extent{8, 8} : extent{8, 4};
        default:  // long_double_float
            return wide ? extent{16, 16} : extent{12, 4};
    }
}

}  // namespace trace_ring::inline v1::point
