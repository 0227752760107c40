// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The byte code of predicates and actions: compiled from a clause's text for one data model, or
/// from a condition for the records of one event. It is a stack machine of 64-bit words with
/// forward jumps only, so its time is bounded by its length. Code that check.hpp accepts cannot
/// access memory outside its arguments, for any contents of the traced program or the record.
/// @code
///   using trace_ring::point::op;
///   const trace_ring::point::instruction large[] = {  // arg0 > 4096
///       {op::argument, 0}, {op::constant, 0, 0, 4096}, {op::exceeds}, {op::finish}};
/// @endcode
/// A predicate leaves one word, which is true unless 0. An action leaves none: it stores its values
/// into its output, whose size is fixed. A failed read, and a division by zero, yields 0 and counts
/// as a fault. Nothing else can fail.
///
/// Code runs on one firing of a trace point, or on many records together. Its reads from records
/// may be missing: a condition leaves a truth, one of three words, for which `bit_and` and `bit_or`
/// are "and" and "or".

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace trace_ring::inline v1::point {

// `x` is the word on top of the stack, `w` the one below it. An operation pops its operands and
// pushes its result.
/// The instructions.
enum class op : std::uint8_t {
    finish,         ///< the last instruction, and the only one of its kind
    constant,       ///< `value`, sign-extended
    constant_high,  ///< x with `value` in its high half: for constants of more than 32 bits
    context,        ///< the firing's word `what`: a context_word
    argument,       ///< the called function's argument number `what`, by its calling convention; at
                    ///< a function's exit, word `what` of those kept at its entry
    reg,            ///< the register number `what`, as below
    load,           ///< the number of width `what` at address x + `value` in the process
    add,            ///< w + x, modulo 2^64, as all arithmetic is
    subtract,       ///< w - x
    multiply,       ///< w * x
    divide,         ///< w / x, signed, towards zero
    divide_unsigned,
    remainder,  ///< of w / x, signed: with the sign of w
    remainder_unsigned,
    bit_and,
    bit_or,
    bit_xor,
    shift_left,            ///< w << (x mod 64)
    shift_right,           ///< w >> (x mod 64), signed
    shift_right_unsigned,  ///< w >> (x mod 64)
    negate,                ///< -x
    invert,                ///< all bits of x
    is_zero,               ///< 1 if x is 0, else 0
    equals,                ///< 1 if w == x, else 0
    exceeds,               ///< 1 if w > x, signed
    exceeds_unsigned,      ///< 1 if w > x, unsigned
    narrow,                ///< x cut to width `what`, and extended to 64 bits again
    skip,                  ///< continues `value` instructions further on
    skip_if_zero,          ///< skips if x is 0
    store,                 ///< x, in width `what`, into the output at `value`
    store_text,    ///< the text at address x into the output at `value`: its length in two bytes,
                   ///< then `size` bytes, zero-padded
    store_bytes,   ///< `size` bytes at address x into the output at `value`
    store_stack,   ///< the return addresses, `size` bytes of them, the innermost first
    store_faults,  ///< the number of faults, in two bytes of the output at `value`
    // Of records. A number is two words: its bits, and above them its number_kind.
    copy,           ///< x again
    field,          ///< the number at byte `value` after the header, of the field_type `what`:
                    ///< extended, or as a double
    record_word,    ///< the context's word `value` for the record
    record_number,  ///< the context's number `value` for the record
    within,         ///< whether x lies in its ranges `value`, a truth
    same_truth,     ///< whether the truths w and x are the same, as a truth
    number,         ///< x as a number: of the kind `what`
    number_negate,
    number_add,
    number_subtract,
    number_multiply,
    number_divide,
    number_remainder,
    number_and,
    number_compare,  ///< whether the lower number compares with the upper one by `what`, a truth
};
/// The number of instructions.
inline constexpr std::uint8_t ops = static_cast<std::uint8_t>(op::number_compare) + 1;

/// The size and signedness of a number in memory, in the output, or of a narrowed word.
enum class width : std::uint8_t { u8, u16, u32, u64, s8, s16, s32, s64 };
inline constexpr std::uint8_t widths = 8;  ///< the number of widths

/// The meaning of a number's bits. If an operand is unknown, or otherwise undefined, so is the
/// result.
enum class number_kind : std::uint8_t {
    whole,      ///< 0 to 2^64-1
    negative,   ///< -2^63 to -1, in two's complement
    real,       ///< a double
    undefined,  ///< divided by zero: no comparison with it holds
    unknown,    ///< the record has no such number
};
/// The kinds to which words can be converted; `negative`: if the sign is set, otherwise whole.
inline constexpr std::uint8_t word_kinds = 3;

/// Words for truths.
inline constexpr std::uint64_t truth_no = 0;
/// Of a condition that is neither true nor false.
inline constexpr std::uint64_t truth_unknown = 1;
inline constexpr std::uint64_t truth_yes = ~std::uint64_t{0};  ///< of a condition that is true

/// The bytes of a width.
[[nodiscard]] constexpr std::uint32_t bytes_of(width of) noexcept {
    return 1U << (static_cast<unsigned>(of) & 3U);
}
/// `value` cut to that width and extended again.
[[nodiscard]] constexpr std::uint64_t narrowed(std::uint64_t value, width to) noexcept {
    const unsigned unused = 64 - 8 * bytes_of(to);
    if (static_cast<unsigned>(to) < static_cast<unsigned>(width::s8)) {
        return value << unused >> unused;
    }
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(value << unused) >> unused);
}

/// The properties of a firing in addition to its arguments.
enum class context_word : std::uint8_t {
    time,          ///< CLOCK_MONOTONIC, ns
    process,       ///< its id
    thread,        ///< its id
    user,          ///< the real user's id
    processor,     ///< its number
    bits,          ///< 32 or 64: the process's mode
    returned,      ///< the value that the function returned; 0 at an entry
    address,       ///< of the instruction
    command,       ///< the thread's name: its first 8 bytes, in the order of memory,
    command_rest,  ///< and the 8 behind them; 0 behind its end
    elapsed,       ///< at an exit, ns since the entry, or `unknown_elapsed`
};
/// As a firing's word, this yields 0 and a fault.
inline constexpr std::uint64_t unknown_elapsed = ~std::uint64_t{0};

/// The number of context words.
inline constexpr std::uint8_t context_words = static_cast<std::uint8_t>(context_word::elapsed) + 1;

inline constexpr std::uint16_t most_arguments = 12;  ///< the arguments that code can name
/// Of registers, the numbers below 17 are DWARF's of the process's mode: of x86-64, rax to r15 and
/// rip. They are followed by the lower 8 bytes of the 16 vector registers, their upper 8 bytes, and
/// the values of the 8 x87 registers, st(0) first, as the bits of doubles and then of floats.
inline constexpr std::uint8_t vector_registers = 17;
inline constexpr std::uint8_t vector_upper_halves = 33;   ///< number of the first
inline constexpr std::uint8_t x87_as_double = 49;         ///< number of the first
inline constexpr std::uint8_t x87_as_float = 57;          ///< number of the first
inline constexpr std::uint16_t most_registers = 65;       ///< the registers that code can name
inline constexpr std::uint32_t most_depth = 16;           ///< words on the stack
inline constexpr std::uint32_t most_instructions = 1024;  ///< the longest code
inline constexpr std::uint32_t most_output = 4096;        ///< bytes
inline constexpr std::uint32_t most_record_depth = 4096;  ///< of code that asks records
inline constexpr std::uint32_t most_record_instructions = 65536;  ///< the longest code for records

/// One instruction.
struct instruction {
    op code = op::finish;    ///< what it does
    std::uint8_t what = 0;   ///< a number or a width, by the operation
    std::uint16_t size = 0;  ///< bytes
    std::int32_t value = 0;  ///< its operand

    friend constexpr bool operator==(const instruction&, const instruction&) = default;
};
static_assert(sizeof(instruction) == 8);
static_assert(offsetof(instruction, what) == 1 && offsetof(instruction, size) == 2 &&
              offsetof(instruction, value) == 4);

using code = std::span<const instruction>;  ///< a part of a program

/// Appends one or two instructions that push a constant.
inline void append_constant(std::vector<instruction>& to, std::uint64_t value) {
    const auto low = static_cast<std::int32_t>(static_cast<std::uint32_t>(value));
    to.push_back({op::constant, 0, 0, low});
    if (static_cast<std::uint64_t>(std::int64_t{low}) == value) return;
    to.push_back({op::constant_high, 0, 0, static_cast<std::int32_t>(value >> 32)});
}

/// The number of words that an operation pops and pushes.
struct stack_effect {
    std::uint8_t takes;   ///< words that it takes
    std::uint8_t leaves;  ///< words that it leaves
};
/// What an instruction takes and leaves.
[[nodiscard]] constexpr stack_effect effect_of(op of) noexcept {
    switch (of) {
        case op::finish:
        case op::skip:
        case op::store_stack:
        case op::store_faults:
            return {0, 0};
        case op::constant:
        case op::context:
        case op::argument:
        case op::reg:
        case op::field:
        case op::record_word:
            return {0, 1};
        case op::constant_high:
        case op::load:
        case op::negate:
        case op::invert:
        case op::is_zero:
        case op::narrow:
        case op::within:
            return {1, 1};
        case op::skip_if_zero:
        case op::store:
        case op::store_text:
        case op::store_bytes:
            return {1, 0};
        case op::record_number:
            return {0, 2};
        case op::copy:
        case op::number:
            return {1, 2};
        case op::number_negate:
            return {2, 2};
        case op::number_add:
        case op::number_subtract:
        case op::number_multiply:
        case op::number_divide:
        case op::number_remainder:
        case op::number_and:
            return {4, 2};
        case op::number_compare:
            return {4, 1};
        default:
            return {2, 1};
    }
}
/// Whether only code for records has the operation.
[[nodiscard]] constexpr bool asks_records(op of) noexcept {
    return of > op::store_faults;
}
/// Whether only code for firings has it.
[[nodiscard]] constexpr bool asks_firing(op of) noexcept {
    switch (of) {
        case op::context:
        case op::argument:
        case op::reg:
        case op::load:
        case op::divide:
        case op::divide_unsigned:
        case op::remainder:
        case op::remainder_unsigned:
            return true;
        default:
            return of >= op::store && of <= op::store_faults;
    }
}

namespace impl {
inline constexpr std::array<std::string_view, ops> op_names{"finish",
                                                            "constant",
                                                            "constant_high",
                                                            "context",
                                                            "argument",
                                                            "reg",
                                                            "load",
                                                            "add",
                                                            "subtract",
                                                            "multiply",
                                                            "divide",
                                                            "divide_unsigned",
                                                            "remainder",
                                                            "remainder_unsigned",
                                                            "bit_and",
                                                            "bit_or",
                                                            "bit_xor",
                                                            "shift_left",
                                                            "shift_right",
                                                            "shift_right_unsigned",
                                                            "negate",
                                                            "invert",
                                                            "is_zero",
                                                            "equals",
                                                            "exceeds",
                                                            "exceeds_unsigned",
                                                            "narrow",
                                                            "skip",
                                                            "skip_if_zero",
                                                            "store",
                                                            "store_text",
                                                            "store_bytes",
                                                            "store_stack",
                                                            "store_faults",
                                                            "copy",
                                                            "field",
                                                            "record_word",
                                                            "record_number",
                                                            "within",
                                                            "same_truth",
                                                            "number",
                                                            "number_negate",
                                                            "number_add",
                                                            "number_subtract",
                                                            "number_multiply",
                                                            "number_divide",
                                                            "number_remainder",
                                                            "number_and",
                                                            "number_compare"};
}  // namespace impl

/// For listings.
[[nodiscard]] constexpr std::string_view name_of(op of) noexcept {
    const auto at = static_cast<std::size_t>(of);
    return at < impl::op_names.size() ? impl::op_names[at] : "?";
}

}  // namespace trace_ring::inline v1::point
