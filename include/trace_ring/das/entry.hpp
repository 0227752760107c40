// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The entry of a System/370 DAS trace table: 32 bytes on a 32-byte boundary (System/370 Principles
/// of Operation, GA22-7000-10, "Trace Entry"). This library does not know the layout that a machine
/// gives them for PROGRAM CALL, PROGRAM TRANSFER and SET SECONDARY ASN, so the payload is opaque:
/// the program that fills it and the one that reads it agree on its meaning.
/// @code
/// trace_ring::record::das_entry entry;
/// entry.fill(std::uint16_t{0x190}, std::uint64_t{42});
/// std::uint16_t device;
/// std::uint64_t program;
/// entry.unpack(device, program);
/// @endcode

#include <cstddef>
#include <cstring>
#include <type_traits>

#include <trace_ring/fwd.hpp>

namespace trace_ring::inline v1::record {

/// 32 opaque bytes, in a host's ring or a guest's table. A new one is all zero.
struct alignas(32) das_entry {
    using family = trace_ring::family::record;

    std::byte payload[32]{};  ///< the words of the entry, big-endian

    /// Packs `values` into the payload, in order and without gaps, in the host's byte order; the
    /// rest becomes zero. Values that do not fit, or cannot be copied as bytes, do not compile.
    /// `long` and pointers have other sizes in the other data model: where programs of both share
    /// entries, use types of a fixed width. (For a guest's big-endian words use store_big of
    /// data_model.hpp on the payload.) Signal-safe, constant time.
    template <class... Values>
    void fill(const Values&... values) noexcept {
        static_assert((std::is_trivially_copyable_v<Values> && ...),
                      "trace_ring: a DAS entry holds trivially copyable values only");
        static_assert((std::size_t{0} + ... + sizeof(Values)) <= 32,
                      "trace_ring: these values do not fit the 32 bytes of a DAS entry");
        std::size_t at = 0;
        ((std::memcpy(payload + at, &values, sizeof(Values)), at += sizeof(Values)), ...);
        std::memset(payload + at, 0, sizeof payload - at);
    }

    /// Reads the values that a `fill` with the same types in the same order has packed.
    template <class... Values>
    void unpack(Values&... values) const noexcept {
        static_assert((std::is_trivially_copyable_v<Values> && ...),
                      "trace_ring: a DAS entry holds trivially copyable values only");
        static_assert((std::size_t{0} + ... + sizeof(Values)) <= 32,
                      "trace_ring: a DAS entry holds 32 bytes, and these values need more");
        std::size_t at = 0;
        ((std::memcpy(&values, payload + at, sizeof(Values)), at += sizeof(Values)), ...);
    }

    friend constexpr bool operator==(const das_entry&, const das_entry&) noexcept = default;
};

static_assert(sizeof(das_entry) == 32 && alignof(das_entry) == 32);
static_assert(offsetof(das_entry, payload) == 0);
static_assert(std::is_trivially_copyable_v<das_entry> && std::is_standard_layout_v<das_entry>);

}  // namespace trace_ring::inline v1::record
