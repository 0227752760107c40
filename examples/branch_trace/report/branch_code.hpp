// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file The x86 instructions that can branch, with their lengths and kinds. Works on any machine.
/// Source: the opcode map of the Intel SDM, volume 2.

#include <cstddef>
#include <cstdint>
#include <span>

#include "../branch_events.hpp"

namespace branches {

inline constexpr std::size_t longest_instruction = 15;

namespace impl {

/// Bytes of a ModRM operand: the byte itself, a SIB byte, and the displacement.
[[nodiscard]] constexpr std::size_t operand_length(std::span<const std::uint8_t> at, bool is_16) {
    if (at.empty()) return 0;
    const unsigned mod = at[0] >> 6;
    const unsigned rm = at[0] & 7;
    if (mod == 3) return 1;
    if (is_16) {
        return mod == 1 ? 2U : mod == 2 || rm == 6 ? 3U : 1U;
    }
    std::size_t length = 1;
    unsigned base = rm;
    if (rm == 4) {
        if (at.size() < 2) return 0;
        base = at[1] & 7;
        ++length;
    }
    if (mod == 1) return length + 1;
    return mod == 2 || base == 5 ? length + 4 : length;
}

}  // namespace impl

/// A jump, call, return, loop, interrupt or system call.
struct branch_code {
    std::size_t length = 0;  ///< in bytes; 0: another instruction, or incomplete
    branch_kind kind{};
};

/// Decodes the first instruction of `bytes`.
[[nodiscard]] constexpr branch_code decode_branch(std::span<const std::uint8_t> bytes, bool is_64) {
    std::size_t at = 0;
    bool word = false;  // 66: a 16-bit operand, outside 64-bit code
    bool half = false;  // 67: a 16-bit address, outside 64-bit code
    const auto prefix = [](std::uint8_t b) {
        return b == 0x26 || b == 0x2E || b == 0x36 || b == 0x3E || (b >= 0x64 && b <= 0x67) ||
               b == 0xF2 || b == 0xF3;
    };
    for (; at < bytes.size() && prefix(bytes[at]); ++at) {
        word = word || (bytes[at] == 0x66 && !is_64);
        half = half || (bytes[at] == 0x67 && !is_64);
    }
    if (is_64 && at < bytes.size() && (bytes[at] & 0xF0) == 0x40) ++at;  // REX
    if (at >= bytes.size()) return {};
    const std::size_t near = word ? 2 : 4;
    const std::uint8_t op = bytes[at++];
    branch_code found;
    if ((op >= 0x70 && op <= 0x7F) || (op >= 0xE0 && op <= 0xE3)) {
        found = {at + 1, branch_kind::conditional};
    } else if (op == 0xEB) {
        found = {at + 1, branch_kind::jump};
    } else if (op == 0xE9) {
        found = {at + near, branch_kind::jump};
    } else if (op == 0xE8) {
        found = {at + near, branch_kind::call};
    } else if (op == 0xC2 || op == 0xCA) {
        found = {at + 2, branch_kind::function_return};
    } else if (op == 0xC3 || op == 0xCB) {
        found = {at, branch_kind::function_return};
    } else if (op == 0xCF) {
        found = {at, branch_kind::interrupt_return};
    } else if (op == 0xCD) {
        found = {at + 1, at < bytes.size() && bytes[at] == 0x80 ? branch_kind::system_call
                                                                : branch_kind::exception};
    } else if (op == 0xCC || op == 0xCE || op == 0xF1) {
        found = {at, branch_kind::exception};
    } else if ((op == 0x9A || op == 0xEA) && !is_64) {
        found = {at + near + 2, op == 0x9A ? branch_kind::call : branch_kind::jump};
    } else if (op == 0x0F && at < bytes.size()) {
        const std::uint8_t second = bytes[at++];
        if (second >= 0x80 && second <= 0x8F) found = {at + near, branch_kind::conditional};
        if (second == 0x05 || second == 0x34) found = {at, branch_kind::system_call};
        if (second == 0x07 || second == 0x35) found = {at, branch_kind::system_return};
        if (second == 0x0B) found = {at, branch_kind::exception};  // ud2
    } else if (op == 0xFF && at < bytes.size()) {
        const unsigned which = bytes[at] >> 3 & 7;
        const std::size_t operand = impl::operand_length(bytes.subspan(at), half);
        if (which >= 2 && which <= 5 && operand != 0) {
            found = {at + operand,
                     which <= 3 ? branch_kind::indirect_call : branch_kind::indirect_jump};
        }
    }
    return found.length <= bytes.size() ? found : branch_code{};
}

}  // namespace branches
