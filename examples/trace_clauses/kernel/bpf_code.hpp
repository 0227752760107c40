// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A program for the kernel's BPF machine, instruction by instruction.
/// @code
///   bpf_code code;
///   code.move(bpf::r0, 0);
///   code.exit();
/// @endcode
/// Source: the kernel's Documentation/bpf/standardization/instruction-set.rst.

#include <linux/bpf.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace trace_clauses {

namespace bpf {

/// Results and arguments are in r0 to r5, which a call loses; r6 to r9 are kept; r10 is the end of
/// the stack of 512 bytes.
enum reg : std::uint8_t { r0, r1, r2, r3, r4, r5, r6, r7, r8, r9, r10 };

}  // namespace bpf

class bpf_code {
public:
    [[nodiscard]] const std::vector<::bpf_insn>& instructions() const noexcept { return code_; }
    [[nodiscard]] std::size_t size() const noexcept { return code_.size(); }

    void move(bpf::reg to, bpf::reg from) { add(BPF_ALU64 | BPF_MOV | BPF_X, to, from); }
    void move(bpf::reg to, std::int32_t value) {
        add(BPF_ALU64 | BPF_MOV | BPF_K, to, 0, 0, value);
    }
    /// The low half; the high one becomes 0.
    void move_low(bpf::reg to, bpf::reg from) { add(BPF_ALU | BPF_MOV | BPF_X, to, from); }
    /// `how`: BPF_ADD and the like, of 64 bits.
    void compute(unsigned how, bpf::reg to, bpf::reg with) {
        add(BPF_ALU64 | how | BPF_X, to, with);
    }
    void compute(unsigned how, bpf::reg to, std::int32_t value) {
        add(BPF_ALU64 | how | BPF_K, to, 0, 0, value);
    }
    /// A number of 64 bits.
    void load_constant(bpf::reg to, std::uint64_t value) {
        add(BPF_LD | BPF_IMM | BPF_DW, to, 0, 0, static_cast<std::int32_t>(value));
        add(0, 0, 0, 0, static_cast<std::int32_t>(value >> 32));
    }
    void negate(bpf::reg what) { add(BPF_ALU64 | BPF_NEG, what, 0); }
    /// `bytes`: 1, 2, 4 or 8, in memory that the kernel has given.
    void load(bpf::reg to, bpf::reg base, int offset, unsigned bytes = 8) {
        add(BPF_LDX | BPF_MEM | size_code(bytes), to, base, offset);
    }
    void store(bpf::reg base, int offset, bpf::reg from, unsigned bytes = 8) {
        add(BPF_STX | BPF_MEM | size_code(bytes), base, from, offset);
    }
    void store(bpf::reg base, int offset, std::int32_t value, unsigned bytes = 8) {
        add(BPF_ST | BPF_MEM | size_code(bytes), base, 0, offset, value);
    }
    void add_atomically(bpf::reg base, int offset, bpf::reg what) {
        add(BPF_STX | BPF_ATOMIC | BPF_DW, base, what, offset, BPF_ADD);
    }
    void load_map(bpf::reg to, int descriptor) {
        add(BPF_LD | BPF_IMM | BPF_DW, to, BPF_PSEUDO_MAP_FD, 0, descriptor);
        add(0, 0, 0);
    }
    /// Stores the value at `value_at` of the stack under the key at `key_at`. Uses r0 to r5.
    void update_map(int map, int key_at, int value_at) {
        load_map(bpf::r1, map);
        move(bpf::r2, bpf::r10);
        compute(BPF_ADD, bpf::r2, key_at);
        move(bpf::r3, bpf::r10);
        compute(BPF_ADD, bpf::r3, value_at);
        move(bpf::r4, BPF_ANY);
        call(BPF_FUNC_map_update_elem);
    }
    void call(std::int32_t helper) { add(BPF_JMP | BPF_CALL, 0, 0, 0, helper); }
    void exit() { add(BPF_JMP | BPF_EXIT, 0, 0); }
    /// A jump whose end is not known yet: `here` is its end, or `ends`.
    [[nodiscard]] std::size_t jump() { return add(BPF_JMP | BPF_JA, 0, 0); }
    /// `how`: BPF_JEQ and the like.
    [[nodiscard]] std::size_t jump_if(unsigned how, bpf::reg what, std::int32_t value) {
        return add(BPF_JMP | how | BPF_K, what, 0, 0, value);
    }
    void here(std::size_t jump) { ends(jump, code_.size()); }
    /// False: too far for a jump.
    bool ends(std::size_t jump, std::size_t at) {
        const std::size_t distance = at - jump - 1;
        too_far_ = too_far_ || distance > INT16_MAX;
        code_[jump].off = static_cast<std::int16_t>(distance);
        return !too_far_;
    }
    [[nodiscard]] bool too_far() const noexcept { return too_far_; }

private:
    [[nodiscard]] static unsigned size_code(unsigned bytes) noexcept {
        return bytes == 1 ? BPF_B : bytes == 2 ? BPF_H : bytes == 4 ? BPF_W : BPF_DW;
    }
    std::size_t add(unsigned code, unsigned to, unsigned from, int offset = 0,
                    std::int32_t value = 0) {
        ::bpf_insn one{};
        one.code = static_cast<std::uint8_t>(code);
        one.dst_reg = static_cast<std::uint8_t>(to & 15U);
        one.src_reg = static_cast<std::uint8_t>(from & 15U);
        one.off = static_cast<std::int16_t>(offset);
        one.imm = value;
        code_.push_back(one);
        return code_.size() - 1;
    }

    std::vector<::bpf_insn> code_;
    bool too_far_ = false;
};

}  // namespace trace_clauses
