// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Bytes inside the ring object itself, for rings with static storage duration: they need no
/// set-up, so such a ring records before main and after static destruction. It lies in .bss, and
/// takes no memory before it is used.

#include <cstddef>
#include <cstdint>

#include <trace_ring/policy/storage/storage.hpp>

namespace trace_ring::inline v1::storage {

/// `Bytes` for records; the ring's control comes in addition.
template <std::uint64_t Bytes>
class inline_bytes {
public:
    using family = trace_ring::family::storage;
    static constexpr std::uint64_t extent = control_bytes + Bytes;  ///< the bytes of the storage

    constexpr inline_bytes() noexcept = default;
    inline_bytes(const inline_bytes&) = delete;
    inline_bytes& operator=(const inline_bytes&) = delete;

    [[nodiscard]] std::byte* data() noexcept { return bytes_; }
    [[nodiscard]] static constexpr std::uint64_t size() noexcept { return extent; }
    [[nodiscard]] static constexpr bool fresh() noexcept { return true; }

private:
    alignas(alignment) std::byte bytes_[extent]{};
};
static_assert(fixed<inline_bytes<64>>);

}  // namespace trace_ring::inline v1::storage
