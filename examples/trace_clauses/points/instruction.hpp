// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Instructions of x86-64 and i386, as far as they decide where a function's code goes on.
/// @code
///   instruction_decoder decode(program_mode::lp64);
///   if (const auto one = decode(code, address)) next = address + one->length;
/// @endcode
/// Zydis decodes them.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <trace_ring/record/data_model.hpp>

namespace trace_clauses {

struct instruction {
    enum class flow : std::uint8_t {
        other,  ///< the next one follows
        call,   ///< of `target`
        indirect_call,
        jump,              ///< to `target`
        conditional_jump,  ///< to `target`, or the next one follows
        indirect_jump,
        ret,   ///< near, with or without a number of bytes
        stop,  ///< ud2, hlt
        nop,
        push,
        pop,
        foreign,  ///< leads where user code of this mode does not go: far jumps, iret and the like
    };
    std::uint64_t address = 0;
    std::uint64_t target = 0;
    std::uint8_t length = 0;
    flow is = flow::other;
};

/// Where an indirect jump may find its target, if it is by a table.
struct jump_table {
    std::uint64_t address = 0;
    bool is_relative = false;  ///< entries are 32-bit distances; otherwise addresses
    /// Of i386, and relative: `address`, and what the entries say, is an offset from the GOT.
    bool is_by_got = false;
};

/// Not for two threads at once.
class instruction_decoder {
public:
    explicit instruction_decoder(trace_ring::record::program_mode mode);
    ~instruction_decoder();
    instruction_decoder(const instruction_decoder&) = delete;
    instruction_decoder& operator=(const instruction_decoder&) = delete;

    /// The instruction that `code` begins with, which is at that address. Nothing: it is none, or
    /// not all of it is there.
    [[nodiscard]] std::optional<instruction> operator()(std::span<const std::byte> code,
                                                        std::uint64_t address) const;
    /// The tables that an indirect jump may use, by the ways in which gcc and clang do that; empty:
    /// it is none of these ways. `all`: a function's instructions, whose code this is; `jump`:
    /// which of them. O(n).
    [[nodiscard]] std::vector<jump_table> tables_of(std::size_t jump,
                                                    std::span<const instruction> all,
                                                    std::span<const std::byte> code) const;

private:
    struct state;
    std::unique_ptr<state> state_;
};

}  // namespace trace_clauses
