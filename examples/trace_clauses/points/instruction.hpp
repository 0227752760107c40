// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Decodes instructions of x86-64 and i386, as far as they determine where a function's code
/// continues.
/// @code
///   instruction_decoder decode(program_mode::lp64);
///   if (const auto one = decode(code, address)) next = address + one->length;
/// @endcode
/// Based on Zydis.

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
        other,  ///< continues at the next one
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
        foreign,  ///< continues where user code of this mode does not: far jumps, iret and similar
    };
    std::uint64_t address = 0;
    std::uint64_t target = 0;
    std::uint8_t length = 0;
    flow is = flow::other;
};

/// A table in which an indirect jump may find its target.
struct jump_table {
    std::uint64_t address = 0;
    bool is_relative = false;  ///< entries are 32-bit distances; otherwise they are addresses
    /// For relative tables of i386: `address` and the entries are offsets from the GOT.
    bool is_by_got = false;
};

/// To be used by one thread at a time.
class instruction_decoder {
public:
    explicit instruction_decoder(trace_ring::record::program_mode mode);
    ~instruction_decoder();
    instruction_decoder(const instruction_decoder&) = delete;
    instruction_decoder& operator=(const instruction_decoder&) = delete;

    /// Decodes the first instruction of `code`, which is located at this address. Empty if it is
    /// invalid or incomplete.
    [[nodiscard]] std::optional<instruction> operator()(std::span<const std::byte> code,
                                                        std::uint64_t address) const;
    /// The tables that an indirect jump may use, for the instruction sequences that gcc and clang
    /// generate. Empty: another sequence. `all`: the instructions of the function; `jump`: the
    /// index of the jump. O(n).
    [[nodiscard]] std::vector<jump_table> tables_of(std::size_t jump,
                                                    std::span<const instruction> all,
                                                    std::span<const std::byte> code) const;

private:
    struct state;
    std::unique_ptr<state> state_;
};

}  // namespace trace_clauses
