// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The entry of a System/370 DAS trace table: 32 bytes on a 32-byte boundary (System/370 Principles
/// of Operation, GA22-7000-10, "Trace Entry"). The layout that a machine gives them for PROGRAM
/// CALL, PROGRAM TRANSFER and SET SECONDARY ASN is not known here, so the payload is opaque: what
/// it means is between the one who fills it and the one who reads it.

#include <cstddef>
#include <cstring>
#include <type_traits>

#include <trace_ring/fwd.hpp>

namespace trace_ring::inline v1::record {

/// 32 opaque bytes, in a host's ring as in a guest's table. A fresh one is all zero.
struct alignas(32) das_entry {
    using family = trace_ring::family::record;

    std::byte payload[32]{};

    /// Packs `values` into the payload, in order and without gaps, in the host's byte order; the
    /// rest becomes zero. What does not fit, or cannot be copied as bytes, does not compile.
    /// `long` and pointers have other sizes in the other data model: name the width where both
    /// meet. (For a guest's big-endian words use store_big of data_model.hpp on the payload.)
    /// Signal safe, constant time.
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

    /// Reads values back, as a `fill` with the same types in the same order packed them.
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
