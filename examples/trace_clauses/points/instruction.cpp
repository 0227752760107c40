// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "instruction.hpp"

#include <Zydis/Zydis.h>

#include <array>

namespace trace_clauses {

using trace_ring::record::program_mode;

struct instruction_decoder::state {
    ZydisDecoder decoder{};
    program_mode mode = program_mode::lp64;
};

namespace {

[[nodiscard]] instruction::flow flow_of(const ZydisDecodedInstruction& one) noexcept {
    using flow = instruction::flow;
    const bool has_target = one.raw.imm[0].is_relative != 0;
    const bool is_far = one.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR;
    // Intel and AMD interpret an operand size prefix of branches differently.
    const bool is_short = one.operand_width == 16;
    switch (one.meta.category) {
        case ZYDIS_CATEGORY_RET:
            return one.mnemonic == ZYDIS_MNEMONIC_RET && !is_far && !is_short ? flow::ret
                                                                              : flow::foreign;
        case ZYDIS_CATEGORY_UNCOND_BR:
            if (is_far || (has_target && is_short)) return flow::foreign;
            return has_target ? flow::jump : flow::indirect_jump;
        case ZYDIS_CATEGORY_COND_BR:
            return has_target && !is_short ? flow::conditional_jump : flow::foreign;
        case ZYDIS_CATEGORY_CALL:
            if (is_far) return flow::foreign;
            return has_target ? flow::call : flow::indirect_call;
        case ZYDIS_CATEGORY_NOP:
        case ZYDIS_CATEGORY_WIDENOP:
            return flow::nop;
        case ZYDIS_CATEGORY_PUSH:
            return flow::push;
        case ZYDIS_CATEGORY_POP:
            return flow::pop;
        default:
            break;
    }
    switch (one.mnemonic) {
        case ZYDIS_MNEMONIC_UD2:
        case ZYDIS_MNEMONIC_HLT:
            return flow::stop;
        case ZYDIS_MNEMONIC_SYSRET:
        case ZYDIS_MNEMONIC_SYSEXIT:
        case ZYDIS_MNEMONIC_RSM:
            return flow::foreign;
        default:
            return flow::other;
    }
}

}  // namespace

instruction_decoder::instruction_decoder(program_mode mode) : state_(std::make_unique<state>()) {
    state_->mode = mode;
    const bool wide = mode == program_mode::lp64;
    ZydisDecoderInit(&state_->decoder,
                     wide ? ZYDIS_MACHINE_MODE_LONG_64 : ZYDIS_MACHINE_MODE_LEGACY_32,
                     wide ? ZYDIS_STACK_WIDTH_64 : ZYDIS_STACK_WIDTH_32);
}
instruction_decoder::~instruction_decoder() = default;

std::optional<instruction> instruction_decoder::operator()(std::span<const std::byte> code,
                                                           std::uint64_t address) const {
    ZydisDecodedInstruction one;
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&state_->decoder, nullptr, code.data(),
                                                    code.size(), &one)))
        return std::nullopt;
    instruction made{.address = address, .target = 0, .length = one.length, .is = flow_of(one)};
    if (one.raw.imm[0].is_relative != 0) {
        made.target = address + one.length + one.raw.imm[0].value.u;
        if (state_->mode == program_mode::ilp32) made.target &= 0xFFFFFFFFU;
    }
    return made;
}

namespace {

/// Reads the instructions before an indirect jump, backwards.
class table_search {
public:
    table_search(const ZydisDecoder& decoder, program_mode mode, std::span<const instruction> all,
                 std::span<const std::byte> code)
        : decoder_(decoder), wide_(mode == program_mode::lp64), all_(all), code_(code) {}

    [[nodiscard]] std::vector<jump_table> of(std::size_t jump) {
        if (!decode(jump)) return {};
        if (operands_[0].type == ZYDIS_OPERAND_TYPE_MEMORY) return element(operands_[0]);
        const ZydisRegister target = whole(operands_[0]);
        for (std::size_t i = jump; i-- > 0 && goes_on(i) && decode(i);) {
            if (!writes(target)) continue;
            if (one_.mnemonic == ZYDIS_MNEMONIC_ADD) return sum(i);
            if (one_.mnemonic != ZYDIS_MNEMONIC_MOV) return {};
            if (!wide_ && operands_[1].mem.base != ZYDIS_REGISTER_NONE) return by_sum(i);
            return element(operands_[1]);
        }
        return {};
    }

private:
    [[nodiscard]] bool decode(std::size_t i) {
        const auto at = code_.subspan(static_cast<std::size_t>(all_[i].address - all_[0].address));
        return ZYAN_SUCCESS(
            ZydisDecoderDecodeFull(&decoder_, at.data(), at.size(), &one_, operands_.data()));
    }
    /// Returns whether the following instruction may be executed next.
    [[nodiscard]] bool goes_on(std::size_t i) const noexcept {
        using flow = instruction::flow;
        const flow is = all_[i].is;
        return is == flow::other || is == flow::nop || is == flow::conditional_jump ||
               is == flow::push || is == flow::pop;
    }
    /// Writing the low half of a register writes the register.
    [[nodiscard]] ZydisRegister whole(ZydisRegister part) const noexcept {
        return ZydisRegisterGetLargestEnclosing(
            wide_ ? ZYDIS_MACHINE_MODE_LONG_64 : ZYDIS_MACHINE_MODE_LEGACY_32, part);
    }
    [[nodiscard]] ZydisRegister whole(const ZydisDecodedOperand& of) const noexcept {
        return of.type == ZYDIS_OPERAND_TYPE_REGISTER ? whole(of.reg.value) : ZYDIS_REGISTER_NONE;
    }
    [[nodiscard]] bool writes(ZydisRegister what) const noexcept {
        return (operands_[0].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0 &&
               what != ZYDIS_REGISTER_NONE && whole(operands_[0]) == what;
    }
    [[nodiscard]] std::uint64_t cut(std::int64_t number) const noexcept {
        const auto all = static_cast<std::uint64_t>(number);
        return wide_ ? all : all & 0xFFFFFFFFU;
    }
    /// The address is an element of an array of addresses, whose address is in the instruction.
    [[nodiscard]] std::vector<jump_table> element(const ZydisDecodedOperand& of) const {
        if (of.type != ZYDIS_OPERAND_TYPE_MEMORY || of.mem.base != ZYDIS_REGISTER_NONE ||
            of.mem.scale != (wide_ ? 8 : 4) || of.mem.disp.has_displacement == 0)
            return {};
        return {{.address = cut(of.mem.disp.value)}};
    }
    /// i386 without optimization: the array's address was added to the index before.
    [[nodiscard]] std::vector<jump_table> by_sum(std::size_t load) {
        const ZydisRegister base = whole(operands_[1].mem.base);
        if (operands_[1].mem.index != ZYDIS_REGISTER_NONE || operands_[1].mem.disp.value != 0)
            return {};
        for (std::size_t i = load; i-- > 0 && goes_on(i) && decode(i);) {
            if (!writes(base)) continue;
            const bool adds = one_.mnemonic == ZYDIS_MNEMONIC_ADD &&
                              operands_[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
            if (!adds) return {};
            return {{.address = cut(operands_[1].imm.value.s)}};
        }
        return {};
    }
    /// The address is the sum of a table's address and a distance from the table, as in
    /// position-independent code. The table's address may have been loaded into its register much
    /// earlier.
    [[nodiscard]] std::vector<jump_table> sum(std::size_t addition) {
        for (std::size_t i = addition + 1; i-- > 0 && goes_on(i) && decode(i);) {
            const ZydisDecodedOperand& from = operands_[1];
            // The distance is loaded before the addition, or by it.
            const bool loads = i == addition || one_.mnemonic == ZYDIS_MNEMONIC_MOV ||
                               one_.mnemonic == ZYDIS_MNEMONIC_MOVSXD;
            if (!loads || from.type != ZYDIS_OPERAND_TYPE_MEMORY ||
                from.mem.index == ZYDIS_REGISTER_NONE || from.mem.base == ZYDIS_REGISTER_NONE)
                continue;
            if (!wide_) {
                return {
                    {.address = cut(from.mem.disp.value), .is_relative = true, .is_by_got = true}};
            }
            return addresses_in(whole(from.mem.base), whole(from.mem.index));
        }
        return {};
    }
    [[nodiscard]] std::vector<jump_table> addresses_in(ZydisRegister one, ZydisRegister other) {
        std::vector<jump_table> found;
        for (std::size_t i = 0; i < all_.size(); ++i) {
            if (!decode(i) || one_.mnemonic != ZYDIS_MNEMONIC_LEA ||
                operands_[1].mem.base != ZYDIS_REGISTER_RIP ||
                (whole(operands_[0]) != one && whole(operands_[0]) != other))
                continue;
            found.push_back({.address = all_[i].address + all_[i].length +
                                        static_cast<std::uint64_t>(operands_[1].mem.disp.value),
                             .is_relative = true});
        }
        return found;
    }

    const ZydisDecoder& decoder_;
    bool wide_;
    std::span<const instruction> all_;
    std::span<const std::byte> code_;
    ZydisDecodedInstruction one_{};
    std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands_{};
};

}  // namespace

std::vector<jump_table> instruction_decoder::tables_of(std::size_t jump,
                                                       std::span<const instruction> all,
                                                       std::span<const std::byte> code) const {
    return table_search(state_->decoder, state_->mode, all, code).of(jump);
}

}  // namespace trace_clauses
