// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What is copied of a thread that fires, to find by unwind information who has called: its
/// registers, and the innermost part of its stack. It follows the output of clauses that ask for
/// stacks, at a multiple of 8 bytes.
/// @code
///   0    u64 the registers, by DWARF's numbers of the program's mode: of x86-64, rax to r15 and rip
///   136  u32 bytes of the stack that were copied, from the stack pointer on
///   140  u32 1: the first address is where it fires; 0: where that returns to
///   144  the stack
/// @endcode

#include <array>
#include <cstddef>
#include <cstdint>

#include "firing_record.hpp"

namespace trace_clauses {

struct stack_snapshot {
    /// The stack is copied by so many bytes: what lies behind its end cannot be read.
    static constexpr std::uint32_t step = 512;
    static constexpr std::uint32_t most_bytes = std::uint32_t{16} << 10;

    std::array<std::uint64_t, 17> registers{};
    std::uint32_t bytes = 0;
    std::uint32_t has_place = 0;
};
static_assert(sizeof(stack_snapshot) == 144 && offsetof(stack_snapshot, bytes) == 136);

/// Whether the first address of a stack is where it fires: at an exit, or of a system call, that is
/// where it has returned to, or will.
[[nodiscard]] constexpr bool begins_with_place(function_part of) noexcept {
    return of == function_part::exit || is_system_call(of);
}
/// Where the snapshot begins in what a clause hands over.
[[nodiscard]] constexpr std::size_t snapshot_at(std::size_t output_bytes) noexcept {
    return (output_bytes + 7) / 8 * 8;
}

}  // namespace trace_clauses
