// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Detects instructions at which the kernel sets no uprobe, or one that harms the program.
/// @code
///   if (const char* why = no_uprobe_at(code, wide)) leave_out(why);
/// @endcode
/// Source: the kernel's arch/x86/kernel/uprobes.c (to Linux 6.18). The kernel sets no uprobe at an
/// instruction with a lock prefix, and does not report this if no program has mapped the file yet.
/// For an instruction with a VEX or EVEX prefix it checks the opcode alone, and mistakes
/// vpbroadcastb (0x7C) for jl and vcmpps (0xC2) for ret, which it then emulates.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "../../branch_trace/step/instruction_prefix.hpp"

namespace trace_clauses {

/// `code`: at least the instruction's prefixes and opcode, if the file has that many bytes. Returns
/// null if the kernel can decide. `wide`: the program has 64 bits.
[[nodiscard]] inline const char* no_uprobe_at(std::span<const std::byte> code, bool wide) noexcept {
    const auto at = [code](std::size_t i) {
        return i < code.size() ? std::to_integer<unsigned>(code[i]) : 0U;
    };
    const std::size_t i = branch_trace::count_prefixes(code, wide);
    const auto prefixes = code.first(i);
    constexpr std::byte lock{0xF0};
    if (std::find(prefixes.begin(), prefixes.end(), lock) != prefixes.end())
        return "the kernel sets no uprobe at an instruction with a lock prefix";
    constexpr unsigned vex_of_2 = 0xC5, vex_of_3 = 0xC4, evex = 0x62;
    const unsigned first = at(i);
    // In 32 bits these bytes are separate instructions, unless a register follows.
    if (!wide && (at(i + 1) & 0xC0U) != 0xC0) return nullptr;
    std::size_t opcode = 0;
    if (first == vex_of_2) opcode = i + 2;
    if (first == vex_of_3) opcode = i + 3;
    if (first == evex) opcode = i + 4;
    if (opcode == 0) return nullptr;
    const unsigned taken_for = at(opcode);
    const bool is_done_otherwise =
        (taken_for >= 0x50 && taken_for <= 0x5F) || (taken_for >= 0x70 && taken_for <= 0x7F) ||
        taken_for == 0x90 || taken_for == 0x9A || taken_for == 0x9D ||
        (taken_for >= 0xC2 && taken_for <= 0xC3) || (taken_for >= 0xCA && taken_for <= 0xCF) ||
        (taken_for >= 0xE0 && taken_for <= 0xE3) || (taken_for >= 0xE8 && taken_for <= 0xEB) ||
        taken_for >= 0xFE;
    return is_done_otherwise ? "the kernel takes its first instruction for another one (a VEX or "
                               "EVEX prefix), and would change what the program does"
                             : nullptr;
}

}  // namespace trace_clauses
