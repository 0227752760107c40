// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A number for a text that is the same on each machine and in each run.

#include <cstdint>
#include <string_view>

namespace records {

/// FNV-1a, of 64 bits. Linear in the text.
[[nodiscard]] constexpr std::uint64_t fingerprint(std::string_view text) noexcept {
    std::uint64_t hash = 0xCBF29CE484222325U;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
    return hash;
}

}  // namespace records
