// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Emulates instructions for a thread that is stopped before them: those with which functions
/// usually begin, and those that usually follow their calls. A single step of the processor would
/// cost as much as the breakpoint itself.
/// @code
///   if (execute_by_hand(code, registers, memory)) set_registers(thread, registers);
/// @endcode
/// Source: Intel SDM volume 2. Calls are not emulated, and returns only for threads without a
/// shadow stack, which a tracer cannot access.

#include <sys/user.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include <trace_ring/record/data_model.hpp>

#include "../../branch_trace/step/condition_codes.hpp"
#include "stopped_firing.hpp"

namespace trace_clauses {

namespace impl {

/// `Memory`: `bool read(std::uint64_t, std::span<std::byte>)`, `bool write(std::uint64_t,
/// std::span<const std::byte>)`, and `bool has_shadow_stack()`.
template <class Memory>
class hand {
public:
    hand(std::span<const std::byte> code, const thread_registers& before, Memory& memory) noexcept
        : code_(code),
          now_(before),
          memory_(memory),
          wide_(mode_of(before) == trace_ring::record::program_mode::lp64) {}

    /// Returns whether the instruction was emulated. `registers` are then its result; otherwise
    /// nothing has changed.
    [[nodiscard]] bool execute(thread_registers& registers) {
        if (!instruction() || at_ > code_.size()) return false;
        now_.rip = target_ ? *target_ : now_.rip + at_;
        if (!wide_) now_.rip &= 0xFFFFFFFFU;
        // The store comes last: nothing can fail after it.
        if (stored_ &&
            !memory_.write(stored_at_, std::as_bytes(std::span(&value_, 1)).first(stored_)))
            return false;
        registers = now_;
        return true;
    }

private:
    enum class arithmetic : std::uint8_t { add, or_, adc, sbb, and_, sub, xor_, cmp };

    [[nodiscard]] unsigned byte() noexcept {
        const unsigned value = at_ < code_.size() ? std::to_integer<unsigned>(code_[at_]) : 0;
        ++at_;
        return value;
    }
    /// Sign-extended.
    [[nodiscard]] std::uint64_t number(unsigned bytes) noexcept {
        std::uint64_t value = 0;
        for (unsigned i = 0; i < bytes; ++i) value |= std::uint64_t{byte()} << 8 * i;
        if (bytes == 8) return value;
        const std::uint64_t sign = std::uint64_t{1} << (8 * bytes - 1);
        return (value ^ sign) - sign;
    }
    [[nodiscard]] static std::uint64_t cut(std::uint64_t value, unsigned bytes) noexcept {
        return bytes == 8 ? value : value & ((std::uint64_t{1} << 8 * bytes) - 1);
    }
    /// By the machine's register numbers.
    [[nodiscard]] unsigned long long& reg(unsigned n) noexcept {
        using field = unsigned long long thread_registers::*;
        constexpr std::array<field, 16> fields{
            &thread_registers::rax, &thread_registers::rcx, &thread_registers::rdx,
            &thread_registers::rbx, &thread_registers::rsp, &thread_registers::rbp,
            &thread_registers::rsi, &thread_registers::rdi, &thread_registers::r8,
            &thread_registers::r9,  &thread_registers::r10, &thread_registers::r11,
            &thread_registers::r12, &thread_registers::r13, &thread_registers::r14,
            &thread_registers::r15};
        return now_.*fields[n];
    }

    // --- The operand in a register or in memory ---

    /// Reads ModRM and the bytes that belong to it. `behind`: bytes of an immediate that follows.
    void operand(unsigned behind) noexcept {
        const unsigned all = byte();
        number_ = (all >> 3 & 7U) | (rex_ & 4U) << 1;
        const unsigned how = all >> 6;
        const unsigned low = all & 7U;
        in_register_ = how == 3;
        if (in_register_) {
            other_ = low | (rex_ & 1U) << 3;
            return;
        }
        std::uint64_t address = 0;
        bool from_here = false;
        if (low == 4) {
            const unsigned scaled = byte();
            const unsigned index = (scaled >> 3 & 7U) | (rex_ & 2U) << 2;
            if (index != 4) address = std::uint64_t{reg(index)} << (scaled >> 6);
            if ((scaled & 7U) == 5 && how == 0) {
                address += number(4);
            } else {
                address += reg((scaled & 7U) | (rex_ & 1U) << 3);
            }
        } else if (low == 5 && how == 0) {
            address = number(4);
            from_here = wide_;
        } else {
            address = reg(low | (rex_ & 1U) << 3);
        }
        if (how == 1) address += number(1);
        if (how == 2) address += number(4);
        if (from_here) address += now_.rip + at_ + behind;
        address_ = wide_ ? address : address & 0xFFFFFFFFU;
    }
    [[nodiscard]] std::optional<std::uint64_t> load(std::uint64_t from, unsigned bytes) {
        std::uint64_t value = 0;
        if (!memory_.read(from, std::as_writable_bytes(std::span(&value, 1)).first(bytes)))
            return std::nullopt;
        return value;
    }
    [[nodiscard]] std::optional<std::uint64_t> value(unsigned bytes) {
        if (in_register_) return cut(reg(other_), bytes);
        return load(address_, bytes);
    }
    /// Writing 4 bytes clears the register's high half.
    void set(unsigned n, std::uint64_t to) noexcept { reg(n) = cut(to, bytes_); }
    void store(std::uint64_t at, std::uint64_t what, unsigned bytes) noexcept {
        stored_at_ = at;
        value_ = what;
        stored_ = bytes;
    }
    void put(std::uint64_t what) noexcept {
        if (in_register_) return set(other_, what);
        store(address_, what, bytes_);
    }
    void push(std::uint64_t what) noexcept {
        const unsigned word = wide_ ? 8 : 4;
        now_.rsp -= word;
        if (!wide_) now_.rsp &= 0xFFFFFFFFU;
        store(now_.rsp, what, word);
    }

    // --- What is computed ---

    /// Computes `a` with `b`, for the given number of bytes, and sets the flags.
    [[nodiscard]] std::uint64_t computed(arithmetic how, std::uint64_t a, std::uint64_t b,
                                         unsigned bytes) noexcept {
        std::uint64_t made = 0;
        std::uint64_t carry = 0;
        std::uint64_t overflow = 0;
        switch (how) {
            case arithmetic::add:
                made = cut(a + b, bytes);
                carry = made < a ? 1 : 0;
                overflow = ~(a ^ b) & (a ^ made);
                break;
            case arithmetic::and_:
                made = a & b;
                break;
            case arithmetic::or_:
                made = a | b;
                break;
            case arithmetic::xor_:
                made = a ^ b;
                break;
            default:
                made = cut(a - b, bytes);
                carry = a < b ? 1 : 0;
                overflow = (a ^ b) & (a ^ made);
                break;
        }
        const bool sums =
            how == arithmetic::add || how == arithmetic::sub || how == arithmetic::cmp;
        const unsigned top = 8 * bytes - 1;
        std::uint64_t flags = carry | (made == 0 ? 1U << 6 : 0U) | (made >> top & 1U) << 7 |
                              (overflow >> top & 1U) << 11;
        if (std::popcount(made & 0xFFU) % 2 == 0) flags |= 1U << 2;
        if (sums) flags |= (a ^ b ^ made) & 0x10U;
        constexpr std::uint64_t all = 0x8D5;
        now_.eflags = (now_.eflags & ~all) | flags;
        return made;
    }
    /// Computes the operand with a number, and stores the result in the operand.
    [[nodiscard]] bool compute(arithmetic how, std::uint64_t with, unsigned bytes) {
        if (how == arithmetic::adc || how == arithmetic::sbb) return false;
        const auto was = value(bytes);
        if (!was) return false;
        const std::uint64_t made = computed(how, *was, cut(with, bytes), bytes);
        if (how != arithmetic::cmp) put(made);
        return true;
    }

    // --- The instructions ---

    [[nodiscard]] bool instruction() {
        if (code_.size() >= 4 && code_[0] == std::byte{0xF3} && code_[1] == std::byte{0x0F} &&
            code_[2] == std::byte{0x1E} &&
            (code_[3] == std::byte{0xFA} || code_[3] == std::byte{0xFB})) {
            at_ = 4;  // endbr64, endbr32
            return true;
        }
        unsigned opcode = byte();
        if ((opcode == 0xF3 || opcode == 0xF2) && code_.size() > 1 && code_[1] == std::byte{0xC3})
            opcode = byte();  // rep ret, bnd ret
        has_rex_ = wide_ && (opcode & 0xF0U) == 0x40;
        if (has_rex_) {
            rex_ = opcode & 0xFU;
            opcode = byte();
        }
        bytes_ = (rex_ & 8U) != 0 ? 8 : 4;
        const unsigned low = opcode & 7U;
        if (opcode < 0x40 && (low == 1 || low == 3)) {  // arithmetic of two operands
            operand(0);
            const auto how = static_cast<arithmetic>(opcode >> 3);
            if (low == 1) return compute(how, reg(number_), bytes_);
            const auto from = value(bytes_);
            if (!from) return false;
            in_register_ = true;
            other_ = number_;
            return compute(how, *from, bytes_);
        }
        if ((opcode & 0xF8U) == 0x50) {
            push(reg(low | (rex_ & 1U) << 3));
            return true;
        }
        if ((opcode & 0xF8U) == 0x58) return pop(low | (rex_ & 1U) << 3);
        if ((opcode & 0xF8U) == 0xB8) {
            set(low | (rex_ & 1U) << 3, number(bytes_));
            return true;
        }
        if ((opcode & 0xF0U) == 0x70) return conditional(opcode, 1);
        switch (opcode) {
            case 0x0F:
                return two_bytes();
            case 0x63:
                if (!wide_) return false;
                operand(0);
                return extended(4, true);
            case 0x68:
            case 0x6A:
                push(number(opcode == 0x68 ? 4 : 1));
                return true;
            case 0x80:  // byte operand, only compares
                operand(1);
                if (in_register_ || (number_ & 7U) != 7) return false;
                return compute(arithmetic::cmp, number(1), 1);
            case 0x81:
            case 0x83: {
                const unsigned constant = opcode == 0x81 ? 4 : 1;
                operand(constant);
                return compute(static_cast<arithmetic>(number_ & 7U), number(constant), bytes_);
            }
            case 0x17: {  // pop ss
                const auto top = wide_ ? std::nullopt : load(now_.rsp, 4);
                now_.rsp = cut(now_.rsp + 4, 4);
                return is_stack_segment(top);
            }
            case 0x85: {
                operand(0);
                const auto was = value(bytes_);
                if (!was) return false;
                static_cast<void>(
                    computed(arithmetic::and_, *was, cut(reg(number_), bytes_), bytes_));
                return true;
            }
            case 0x89:
                operand(0);
                put(reg(number_));
                return true;
            case 0x8B: {
                operand(0);
                const auto from = value(bytes_);
                if (from) set(number_, *from);
                return from.has_value();
            }
            case 0x8D:
                operand(0);
                if (in_register_) return false;
                set(number_, address_);
                return true;
            case 0x8E:  // mov to ss
                operand(0);
                return number_ == 2 && is_stack_segment(value(2));
            case 0x90:
                return rex_ == 0;
            case 0xC2:
                return ret(cut(number(2), 2));
            case 0xC3:
                return ret(0);
            case 0xC7:
                operand(4);
                if ((number_ & 7U) != 0) return false;
                put(number(4));
                return true;
            case 0xE9:
            case 0xEB:
                return jump(number(opcode == 0xE9 ? 4 : 1));
            default:
                return false;
        }
    }
    /// Returns whether ss already has this value. A single step would not stop after such an
    /// instruction: it would show the trap flag to the next instruction, or reach the breakpoint
    /// there.
    [[nodiscard]] bool is_stack_segment(const std::optional<std::uint64_t>& selector) const {
        return selector && cut(*selector, 2) == cut(now_.ss, 2);
    }
    [[nodiscard]] bool two_bytes() {
        const unsigned opcode = byte();
        if ((opcode & 0xF0U) == 0x80) return conditional(opcode, 4);
        if (opcode == 0x1F) {  // nop
            operand(0);
            return true;
        }
        if (opcode != 0xB6 && opcode != 0xB7 && opcode != 0xBE && opcode != 0xBF) return false;
        operand(0);
        const unsigned bytes = (opcode & 1U) + 1;
        // Second bytes of registers, such as ah, are not supported.
        if (in_register_ && bytes == 1 && !has_rex_ && other_ >= 4) return false;
        return extended(bytes, opcode >= 0xBE);
    }
    [[nodiscard]] bool extended(unsigned bytes, bool is_signed) {
        const auto from = value(bytes);
        if (!from) return false;
        const std::uint64_t sign = std::uint64_t{1} << (8 * bytes - 1);
        set(number_, is_signed ? (*from ^ sign) - sign : *from);
        return true;
    }
    [[nodiscard]] bool pop(unsigned into) {
        const unsigned word = wide_ ? 8 : 4;
        const auto top = load(now_.rsp, word);
        if (!top) return false;
        now_.rsp += word;
        if (!wide_) now_.rsp &= 0xFFFFFFFFU;
        reg(into) = *top;
        return true;
    }
    /// Also removes the given number of bytes of arguments.
    [[nodiscard]] bool ret(std::uint64_t arguments) {
        const unsigned word = wide_ ? 8 : 4;
        const auto to = load(now_.rsp, word);
        // A return to an invalid address is a fault of this instruction.
        if (!to || *to >> 47 != 0 || memory_.has_shadow_stack()) return false;
        now_.rsp += word + arguments;
        if (!wide_) now_.rsp &= 0xFFFFFFFFU;
        target_ = *to;
        return true;
    }
    [[nodiscard]] bool jump(std::uint64_t distance) noexcept {
        target_ = now_.rip + at_ + distance;
        return true;
    }
    [[nodiscard]] bool conditional(unsigned opcode, unsigned bytes) noexcept {
        const std::uint64_t distance = number(bytes);
        if (branch_trace::condition_holds(opcode, now_.eflags)) return jump(distance);
        return true;
    }

    std::span<const std::byte> code_;
    thread_registers now_;
    Memory& memory_;
    bool wide_;
    bool has_rex_ = false;
    unsigned rex_ = 0;
    unsigned bytes_ = 4;  // of the operands
    std::size_t at_ = 0;
    unsigned number_ = 0;  // the register operand, or the number of the operation
    unsigned other_ = 0;   // the other operand, if it is also a register
    bool in_register_ = false;
    std::uint64_t address_ = 0;
    std::optional<std::uint64_t> target_;
    std::uint64_t stored_at_ = 0;
    std::uint64_t value_ = 0;
    unsigned stored_ = 0;
};

}  // namespace impl

/// Emulates the instruction at the beginning of `code`. Returns false, without any change, if the
/// instruction is not supported or its memory is not accessible. `code` has 15 bytes, or as many as
/// there are. `Memory` accesses the program's memory: `bool read(std::uint64_t,
/// std::span<std::byte>)`, `bool write(std::uint64_t, std::span<const std::byte>)`, and `bool
/// has_shadow_stack()`.
template <class Memory>
[[nodiscard]] bool execute_by_hand(std::span<const std::byte> code, thread_registers& registers,
                                   Memory& memory) {
    return impl::hand<Memory>(code, registers, memory).execute(registers);
}

}  // namespace trace_clauses
