// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Instructions that need not be executed where they are, as they do the same at any address.
/// @code
///   if (is_movable(code, mode)) step_elsewhere();
/// @endcode
/// Source: Intel SDM volume 2, the opcode maps.

#include <cstddef>
#include <cstdint>
#include <span>

#include <trace_ring/record/data_model.hpp>

namespace trace_clauses {

/// Whether the instruction is one of those known to do the same at any address: arithmetic, moves,
/// pushes, pops and returns, whose operands are not found relative to it. False of all others.
[[nodiscard]] constexpr bool is_movable(std::span<const std::byte> code,
                                        trace_ring::record::program_mode mode) noexcept {
    const bool wide = mode == trace_ring::record::program_mode::lp64;
    const auto byte = [&](std::size_t at) {
        return at < code.size() ? std::to_integer<unsigned>(code[at]) : 0x62U;  // in no list below
    };
    std::size_t at = 0;
    while (byte(at) == 0x66 || byte(at) == 0xF2 || byte(at) == 0xF3 || byte(at) == 0x64 ||
           byte(at) == 0x65) {
        ++at;
    }
    if (wide && (byte(at) & 0xF0U) == 0x40) ++at;
    const unsigned opcode = byte(at++);
    const unsigned low = opcode & 7U;
    bool has_operand = false;  // a ModRM byte
    if (opcode == 0x0F) {
        const unsigned second = byte(at++);
        const bool known = second == 0x1F || (second & 0xFEU) == 0x10 || (second & 0xFEU) == 0x28 ||
                           (second & 0xF0U) == 0x40 || (second & 0xFEU) == 0x6E ||
                           (second & 0xFEU) == 0x7E || (second & 0xF0U) == 0x90 || second == 0xAF ||
                           (second & 0xFEU) == 0xB6 || (second & 0xFEU) == 0xBE || second == 0x57 ||
                           second == 0xEF;
        if (!known) return false;  // moves, nop, cmov, set, imul, movzx, xorps, pxor
        has_operand = true;
    } else if (opcode < 0x40) {
        if (low > 5) return false;  // prefixes, and segments' pushes and pops
        has_operand = low < 4;
    } else if (opcode < 0x50) {
        return !wide;                                                 // inc, dec
    } else if (opcode < 0x60 || (opcode >= 0xB0 && opcode < 0xC0)) {  // push, pop, mov
        return true;
    } else if (opcode == 0x68 || opcode == 0x6A || (opcode & 0xFEU) == 0xA8 ||
               (opcode & 0xFEU) == 0xC2 ||
               (opcode >= 0x90 && opcode < 0x9A)) {  // push, test, ret, xchg, cdq
        return true;
    } else if ((opcode == 0x63 && wide) || opcode == 0x69 || opcode == 0x6B ||
               (opcode >= 0x80 && opcode < 0x8C) || opcode == 0x8D || opcode == 0xC0 ||
               opcode == 0xC1 || opcode == 0xC6 || opcode == 0xC7 ||
               (opcode >= 0xD0 && opcode < 0xD4)) {            // mov, lea, test, shifts
        if (opcode == 0xC7 && byte(at) == 0xF8) return false;  // xbegin
        has_operand = true;
    } else {
        return false;
    }
    if (!has_operand) return true;
    // In 64-bit code: relative to the instruction.
    return !wide || (byte(at) & 0xC7U) != 0x05;
}

}  // namespace trace_clauses
