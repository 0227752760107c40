// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Proves, before byte code runs, that it terminates, that its stack neither overflows nor
/// underflows, and that it stores nothing outside its output. A fault is reported with its
/// instruction.
/// @code
///   if (const auto wrong = trace_ring::point::find_fault(code, {.output_bytes = 24})) {
///       complain(wrong->at, wrong->what);
///   }
/// @endcode

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <trace_ring/point/machine/code.hpp>
#include <trace_ring/record/field.hpp>

namespace trace_ring::inline v1::point {

/// The fields of records, and of the context, that code may read.
struct record_bounds {
    std::uint32_t bytes = 0;           ///< of each record, behind its header
    std::uint32_t words = 0;           ///< words of the context that code may read
    std::uint32_t numbers = 0;         ///< numbers of the context that code may read
    std::uint32_t ranges = 0;          ///< ranges of the context that code may read
    std::uint32_t depth = most_depth;  ///< words on the stack; at most `most_record_depth`
};

/// What code is checked for.
struct purpose {
    std::uint32_t output_bytes = 0;          ///< an action's; at most `most_output`
    bool is_predicate = false;               ///< it leaves one word, and stores nothing
    const record_bounds* records = nullptr;  ///< null: it asks a firing
};

/// Why code is rejected.
struct code_fault {
    std::size_t at = 0;     ///< the instruction's number
    const char* what = "";  ///< what is wrong; empty if nothing is
};

/// The first fault of the code; empty if it may run. Linear. Throws std::bad_alloc.
[[nodiscard]] inline std::optional<code_fault> find_fault(code of, const purpose& as) {
    constexpr record_bounds none;
    const record_bounds& records = as.records != nullptr ? *as.records : none;
    const std::size_t longest =
        as.records != nullptr ? most_record_instructions : most_instructions;
    if (of.empty()) return code_fault{0, "there is no instruction"};
    if (of.size() > longest) return code_fault{longest, "too long"};
    if (as.output_bytes > most_output) return code_fault{0, "too much output"};
    if (records.depth > most_record_depth) return code_fault{0, "too deep a stack"};
    constexpr std::uint16_t unknown = 0xFFFF;
    // The depth of the stack before each instruction: the same on each path to it.
    std::vector<std::uint16_t> depths(of.size(), unknown);
    depths[0] = 0;
    for (std::size_t i = 0; i < of.size(); ++i) {
        const instruction& one = of[i];
        const auto wrong = [i](const char* what) { return code_fault{i, what}; };
        if (static_cast<std::uint8_t>(one.code) >= ops) return wrong("no such operation");
        if (as.records != nullptr ? asks_firing(one.code) : asks_records(one.code)) {
            return wrong(as.records != nullptr ? "it asks a firing" : "it asks records");
        }
        if (depths[i] == unknown) return wrong("no way leads here");
        const stack_effect effect = effect_of(one.code);
        if (depths[i] < effect.takes) return wrong("the stack is empty");
        const unsigned depth = depths[i] - unsigned{effect.takes} + effect.leaves;
        if (depth > records.depth) return wrong("the stack is full");

        constexpr const char* other_depth =
            "another depth of the stack than on the other way there";
        const auto leads_to = [&depths, depth](std::size_t there) {
            const std::uint16_t before =
                std::exchange(depths[there], static_cast<std::uint16_t>(depth));
            return before == unknown || before == depth;
        };
        bool uses_what = false;
        bool uses_size = false;
        bool uses_value = false;
        std::size_t stored = 0;
        switch (one.code) {
            case op::finish:
                if (i + 1 != of.size()) return wrong("'finish' before the end");
                if (depth != (as.is_predicate ? 1U : 0U)) {
                    return wrong(as.is_predicate ? "a predicate leaves one word"
                                                 : "an action leaves no word");
                }
                break;
            case op::constant:
            case op::constant_high:
                uses_value = true;
                break;
            case op::context:
                uses_what = true;
                if (one.what >= context_words) return wrong("no such word of the context");
                break;
            case op::argument:
                uses_what = true;
                if (one.what >= most_arguments) return wrong("no such argument");
                break;
            case op::reg:
                uses_what = true;
                if (one.what >= most_registers) return wrong("no such register");
                break;
            case op::load:
            case op::narrow:
            case op::store:
                uses_what = true;
                if (one.what >= widths) return wrong("no such width");
                uses_value = one.code != op::narrow;
                if (one.code == op::store) stored = bytes_of(static_cast<width>(one.what));
                break;
            case op::store_text:
            case op::store_bytes:
            case op::store_stack:
                uses_size = true;
                uses_value = true;
                if (one.size == 0) return wrong("nothing is stored");
                if (one.code == op::store_stack && one.size % 8 != 0) {
                    return wrong("an address has 8 bytes");
                }
                stored = one.size + (one.code == op::store_text ? std::size_t{2} : 0);
                break;
            case op::store_faults:
                uses_value = true;
                stored = 2;
                break;
            case op::skip:
            case op::skip_if_zero: {
                uses_value = true;
                const std::size_t left = of.size() - 1 - i;
                if (one.value < 0 || static_cast<std::size_t>(one.value) >= left) {
                    return wrong("skips to outside of the code");
                }
                if (!leads_to(i + 1 + static_cast<std::size_t>(one.value))) {
                    return wrong(other_depth);
                }
                break;
            }
            case op::field: {
                uses_what = true;
                uses_value = true;
                const auto bytes =
                    static_cast<std::uint32_t>(size_of(static_cast<field_type>(one.what)));
                if (bytes == 0) return wrong("no such type");
                if (one.value < 0 || bytes > records.bytes ||
                    static_cast<std::uint32_t>(one.value) > records.bytes - bytes) {
                    return wrong("outside of the record");
                }
                break;
            }
            case op::record_word:
            case op::record_number:
            case op::within: {
                uses_value = true;
                const std::uint32_t there = one.code == op::record_word     ? records.words
                                            : one.code == op::record_number ? records.numbers
                                                                            : records.ranges;
                if (one.value < 0 || static_cast<std::uint32_t>(one.value) >= there) {
                    return wrong("the context has no such");
                }
                break;
            }
            case op::number:
                uses_what = true;
                if (one.what >= word_kinds) return wrong("no such kind of number");
                break;
            case op::number_compare:
                uses_what = true;
                if (one.what == 0 || one.what > 6) return wrong("no such comparison");
                break;
            default:
                break;
        }
        // Unused parts must be 0, so that a later version may give them a meaning.
        if ((!uses_what && one.what != 0) || (!uses_size && one.size != 0) ||
            (!uses_value && one.value != 0)) {
            return wrong("an operand that the operation does not have");
        }
        if (stored != 0) {
            if (as.is_predicate) return wrong("a predicate stores nothing");
            if (one.value < 0 || stored > as.output_bytes ||
                static_cast<std::uint32_t>(one.value) > as.output_bytes - stored) {
                return wrong("stores outside of the output");
            }
        }
        if (one.code == op::skip || one.code == op::finish) continue;
        if (i + 1 == of.size()) return wrong("the last instruction is not 'finish'");
        if (!leads_to(i + 1)) return wrong(other_depth);
    }
    return std::nullopt;
}

}  // namespace trace_ring::inline v1::point
