// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file Decodes branch instructions of 64- and 32-bit programs (Intel SDM volume 2, the opcode
/// maps). For other instructions it only reports that they are not branches.

#include <cstddef>
#include <cstdint>
#include <span>

#include <trace_ring/record/data_model.hpp>
#include <trace_ring/x86/branch_source.hpp>

#include "condition_codes.hpp"
#include "instruction_prefix.hpp"

namespace branch_trace {

namespace record = trace_ring::record;
using trace_ring::x86::branch_kind;

/// No instruction is longer.
inline constexpr std::size_t longest_instruction = 15;

/// The properties of an instruction that matter for branches.
struct branch_instruction {
    enum class what : std::uint8_t {
        unreadable,     ///< its bytes are missing or incomplete
        no_branch,      ///< continues at the next instruction
        may_branch,     ///< conditional, or a transaction's begin: goes to `target` or continues
        does_branch,    ///< always taken
        enters_kernel,  ///< a system call
        raises,         ///< int3, int n and similar: raises an exception
    };
    /// The condition of a conditional branch.
    enum class test : std::uint8_t { flags, count, count_and_zero, count_and_not_zero, no_count };

    alignas(8) std::uint64_t target = 0;  ///< for may_branch
    what is = what::unreadable;
    branch_kind kind = branch_kind::unknown;
    test by = test::flags;
    std::uint8_t length = 0;      ///< in bytes; only for may_branch, enters_kernel and delays_trap
    std::uint8_t condition = 0;   ///< for test::flags: the low four bits of the opcode
    bool count_is_short = false;  ///< for the other tests: the register is half as wide
    bool changes_mode = false;    ///< a far branch: the target may be code of the other mode
    /// Its effect on the processor's flags as a whole.
    enum class flags : std::uint8_t { leaves, stores, loads };
    flags does = flags::leaves;
    bool delays_trap = false;  ///< a step does not end after it, but after the next instruction
};

namespace impl {

class branch_decoder {
public:
    constexpr branch_decoder(std::span<const std::byte> code, std::uint64_t at,
                             record::program_mode mode) noexcept
        : code_(code), start_(at), wide_(mode == record::program_mode::lp64) {}

    [[nodiscard]] constexpr branch_instruction decode() noexcept {
        for (;; ++at_) {
            if (!there(1)) return {};
            const unsigned byte = peek();
            if (!is_prefix(byte, wide_)) break;
            short_operand_ = short_operand_ || byte == 0x66;
            short_address_ = short_address_ || byte == 0x67;
        }
        const unsigned opcode = next();
        if ((opcode & 0xF0U) == 0x70) return conditional(opcode, 1);
        switch (opcode) {
            case 0x0F:
                return two_bytes();
            case 0xE0:
            case 0xE1:
            case 0xE2:
            case 0xE3:
                return counted(opcode);
            case 0xE8:
                return taken(branch_kind::call);
            case 0xE9:
            case 0xEB:
                return taken(branch_kind::jump);
            case 0xC2:
            case 0xC3:
                return taken(branch_kind::function_return);
            case 0xCA:
            case 0xCB:
                return far_transfer(branch_kind::function_return);
            case 0xCF:
                return {.is = what::does_branch,
                        .kind = branch_kind::interrupt_return,
                        .changes_mode = true,
                        .does = branch_instruction::flags::loads};
            case 0x9A:
                return wide_ ? none() : far_transfer(branch_kind::call);
            case 0xEA:
                return wide_ ? none() : far_transfer(branch_kind::jump);
            case 0xFF:
                return group_five();
            case 0xC7:
                return transaction();
            case 0xCD:
                if (!there(1)) return {};
                if (peek() != 0x80) return raises();
                next();
                return enters();
            case 0xCC:
            case 0xCE:
            case 0xF1:
                return raises();
            case 0x9C:
                return {.is = what::no_branch, .does = branch_instruction::flags::stores};
            case 0x9D:
                return {.is = what::no_branch, .does = branch_instruction::flags::loads};
            case 0x17:
                return wide_ ? none() : delays();
            case 0x8E:
                return move_to_segment();
            default:
                return {.is = what::no_branch};
        }
    }

private:
    using what = branch_instruction::what;
    using test = branch_instruction::test;

    [[nodiscard]] constexpr bool there(std::size_t bytes) const noexcept {
        return at_ + bytes <= code_.size() && at_ + bytes <= longest_instruction;
    }
    [[nodiscard]] constexpr unsigned peek() const noexcept {
        return std::to_integer<unsigned>(code_[at_]);
    }
    constexpr unsigned next() noexcept { return std::to_integer<unsigned>(code_[at_++]); }

    static constexpr branch_instruction none() noexcept { return {.is = what::no_branch}; }
    static constexpr branch_instruction taken(branch_kind kind) noexcept {
        return {.is = what::does_branch, .kind = kind};
    }
    static constexpr branch_instruction far_transfer(branch_kind kind) noexcept {
        return {.is = what::does_branch, .kind = kind, .changes_mode = true};
    }
    static constexpr branch_instruction raises() noexcept {
        return {.is = what::raises, .kind = branch_kind::exception};
    }
    [[nodiscard]] constexpr branch_instruction delays() const noexcept {
        return {
            .is = what::no_branch, .length = static_cast<std::uint8_t>(at_), .delays_trap = true};
    }
    /// A move to ss delays the trap, from a register or from memory.
    [[nodiscard]] constexpr branch_instruction move_to_segment() noexcept {
        constexpr unsigned stack_segment = 2;
        if (!there(1)) return {};
        const unsigned operand = next();
        if ((operand >> 3 & 7U) != stack_segment) return none();
        const unsigned how = operand >> 6;
        const unsigned base = operand & 7U;
        std::size_t behind = how == 1 ? 1 : 0;  // of a displacement
        if (short_address_ && !wide_) {         // an address of 16 bits has no SIB byte
            if (how == 2 || (how == 0 && base == 6)) behind = 2;
        } else if (how != 3) {
            unsigned without_base = base;
            if (base == 4) {
                if (!there(1)) return {};
                without_base = next() & 7U;
            }
            if (how == 2 || (how == 0 && without_base == 5)) behind = 4;
        }
        if (!there(behind)) return {};
        at_ += behind;
        return delays();
    }
    [[nodiscard]] constexpr branch_instruction enters() const noexcept {
        return {.is = what::enters_kernel,
                .kind = branch_kind::system_call,
                .length = static_cast<std::uint8_t>(at_)};
    }

    /// Reads the displacement, which ends the instruction: 1 or 4 bytes, or 2 for short operands in
    /// 32-bit code. In 64-bit code, Intel's processors ignore that prefix.
    [[nodiscard]] constexpr branch_instruction relative(std::size_t bytes,
                                                        branch_kind kind) noexcept {
        const bool cut = short_operand_ && !wide_;
        if (bytes == 4 && cut) bytes = 2;
        if (!there(bytes)) return {};
        std::uint64_t distance = 0;
        for (std::size_t i = 0; i < bytes; ++i) distance |= std::uint64_t{next()} << i * 8;
        const std::uint64_t sign = std::uint64_t{1} << (bytes * 8 - 1);
        distance = (distance ^ sign) - sign;
        std::uint64_t target = start_ + at_ + distance;
        if (!wide_) target &= cut ? 0xFFFFU : 0xFFFFFFFFU;
        return {.target = target,
                .is = what::may_branch,
                .kind = kind,
                .length = static_cast<std::uint8_t>(at_)};
    }
    [[nodiscard]] constexpr branch_instruction conditional(unsigned opcode,
                                                           std::size_t bytes) noexcept {
        branch_instruction found = relative(bytes, branch_kind::conditional);
        found.condition = static_cast<std::uint8_t>(opcode & 0xFU);
        return found;
    }
    [[nodiscard]] constexpr branch_instruction counted(unsigned opcode) noexcept {
        constexpr test tests[] = {test::count_and_not_zero, test::count_and_zero, test::count,
                                  test::no_count};
        branch_instruction found = relative(1, branch_kind::conditional);
        found.by = tests[opcode & 3U];
        found.count_is_short = short_address_;
        return found;
    }
    [[nodiscard]] constexpr branch_instruction two_bytes() noexcept {
        if (!there(1)) return {};
        const unsigned opcode = next();
        if ((opcode & 0xF0U) == 0x80) return conditional(opcode, 4);
        if (opcode == 0x05 || opcode == 0x34) return enters();
        if (opcode == 0x07 || opcode == 0x35) return far_transfer(branch_kind::system_return);
        return none();
    }
    [[nodiscard]] constexpr branch_instruction group_five() noexcept {
        if (!there(1)) return {};
        switch (peek() >> 3 & 7U) {
            case 2:
                return taken(branch_kind::indirect_call);
            case 3:
                return far_transfer(branch_kind::indirect_call);
            case 4:
                return taken(branch_kind::indirect_jump);
            case 5:
                return far_transfer(branch_kind::indirect_jump);
            default:
                return none();
        }
    }
    /// xbegin continues at the next instruction, and at its target when the transaction is aborted.
    [[nodiscard]] constexpr branch_instruction transaction() noexcept {
        if (!there(1)) return {};
        if (peek() != 0xF8) return none();
        next();
        return relative(4, branch_kind::other);
    }

    std::span<const std::byte> code_;
    std::uint64_t start_;
    std::size_t at_ = 0;
    bool wide_;
    bool short_operand_ = false;
    bool short_address_ = false;
};

}  // namespace impl

/// Decodes the instruction at `at`. `code` has its bytes: 15 of them, or as many as there are.
/// Never throws, for any bytes; constant time.
[[nodiscard]] constexpr branch_instruction decode_branch(std::span<const std::byte> code,
                                                         std::uint64_t at,
                                                         record::program_mode mode) noexcept {
    return impl::branch_decoder(code, at, mode).decode();
}

/// Whether a conditional branch was taken, from the flags and the count register (rcx, ecx) after
/// it.
[[nodiscard]] constexpr bool condition_held(const branch_instruction& what, std::uint64_t flags,
                                            std::uint64_t count,
                                            record::program_mode mode) noexcept {
    using test = branch_instruction::test;
    if (what.by == test::flags) return condition_holds(what.condition, flags);
    constexpr unsigned zero = 4;  // its code
    const bool is_zero = condition_holds(zero, flags);
    const bool wide = mode == record::program_mode::lp64;
    if (wide ? what.count_is_short : !what.count_is_short) count &= 0xFFFFFFFFU;
    if (!wide && what.count_is_short) count &= 0xFFFFU;
    switch (what.by) {
        case test::count:
            return count != 0;
        case test::count_and_zero:
            return count != 0 && is_zero;
        case test::count_and_not_zero:
            return count != 0 && !is_zero;
        default:
            return count == 0;
    }
}

}  // namespace branch_trace
