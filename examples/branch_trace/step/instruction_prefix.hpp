// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file The bytes that may precede an opcode (Intel SDM volume 2, instruction format).

#include <algorithm>
#include <cstddef>
#include <span>

namespace branch_trace {

/// Whether a byte is a prefix; `wide`: in code of 64 bits, which has REX.
[[nodiscard]] constexpr bool is_prefix(unsigned byte, bool wide) noexcept {
    switch (byte) {
        case 0x26:
        case 0x2E:
        case 0x36:
        case 0x3E:
        case 0x64:
        case 0x65:
        case 0x66:
        case 0x67:
        case 0xF0:
        case 0xF2:
        case 0xF3:
            return true;
        default:
            return wide && (byte & 0xF0U) == 0x40;
    }
}

/// The number of prefixes before the opcode.
[[nodiscard]] inline std::size_t count_prefixes(std::span<const std::byte> code,
                                                bool wide) noexcept {
    const auto opcode = std::find_if(code.begin(), code.end(), [wide](std::byte one) {
        return !is_prefix(std::to_integer<unsigned>(one), wide);
    });
    return static_cast<std::size_t>(opcode - code.begin());
}

}  // namespace branch_trace
