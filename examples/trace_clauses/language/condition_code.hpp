// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The code of conditions, and of the texts that they compare.
/// @code
///   condition_code code(in);
///   code.condition(*clause.when);  // 0 or 1 is left
/// @endcode

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compile.hpp"
#include "value_code.hpp"

namespace trace_clauses {

inline constexpr std::uint32_t usual_text = 64;

class condition_code final : public value_code {
public:
    using value_code::value_code;

    /// 0 or 1.
    void condition(const expression& of) final {
        count_step(of);
        switch (of.what) {
            case form::all_of:
            case form::any_of:
                join(of, 0);
                return;
            case form::none_of:
                condition(of.parts[0]);
                code_.append({op::is_zero});
                return;
            case form::compared:
                compare(of);
                return;
            case form::among:
                among(of);
                return;
            case form::like:
                refuse(of, "globs are not for clauses: compare with ==");
            case form::truth:
                code_.constant(of.value.is_zero() ? 0 : 1);
                return;
            default:
                static_cast<void>(value(of));
                code_.truth();
        }
    }
    struct text_value {
        std::uint32_t bytes = 0;      ///< at most
        bool is_whole_array = false;  ///< there are no more
    };
    /// str(POINTER), str(POINTER, BYTES), or an array of characters. Nothing is compiled.
    [[nodiscard]] std::optional<text_value> find_text(const expression& of) {
        if (of.what == form::call && of.word == "str") {
            if (of.parts.empty() || of.parts.size() > 2)
                refuse(of, "str(POINTER) or str(POINTER, BYTES)");
            const std::uint32_t asked =
                of.parts.size() == 2 ? constant(of.parts[1], 1, 1024) : usual_text;
            // Of an array, no more than it has.
            const auto array = array_in_memory(of.parts[0]);
            const std::uint64_t has =
                array && types_[*array].count != 0 ? types_[*array].size.bytes : UINT64_MAX;
            return text_value{static_cast<std::uint32_t>(std::min<std::uint64_t>(asked, has)),
                              has <= asked};
        }
        const auto array = array_in_memory(of);
        if (!array || !is_character(types_[*array].of)) return std::nullopt;
        const type& is = types_[*array];
        return text_value{static_cast<std::uint32_t>(std::clamp<std::uint64_t>(is.count, 1, 1024)),
                          is.count >= 1 && is.count <= 1024};
    }
    void address_of_text(const expression& of) {
        const operand made = compile(of.what == form::call ? of.parts[0] : of);
        if (made.is == operand::kind::object && types_.of(made).is == type::kind::array) return;
        if (made.is == operand::kind::object) {
            // A pointer in memory.
            static_cast<void>(loaded(of, made));
        }
    }

private:
    using comparison = trace_ring::point::comparison;
    using context_word = point::context_word;

    /// The parts from number `first` on: the next one counts only if this one does not decide.
    void join(const expression& of, std::size_t first) {
        condition(of.parts[first]);
        if (first + 1 == of.parts.size()) return;
        const bool all = of.what == form::all_of;
        const std::size_t to_other = code_.skip(op::skip_if_zero);
        if (all) {
            join(of, first + 1);
        } else {
            code_.constant(1);
        }
        const std::size_t to_end = code_.skip(op::skip);
        code_.here(to_other);
        if (all) {
            code_.constant(0);
        } else {
            join(of, first + 1);
        }
        code_.here(to_end);
    }
    void compare(const expression& of) {
        const auto is_text = [](const expression& one) { return one.what == form::text; };
        if (is_text(of.parts[0]) || is_text(of.parts[1])) {
            const bool turned = is_text(of.parts[0]);
            if (of.sign != comparison::equal && of.sign != comparison::unequal) {
                refuse(of, "texts are equal or not, and have no order");
            }
            compare_text(of.parts[turned ? 1 : 0], of.parts[turned ? 0 : 1]);
            if (of.sign == comparison::unequal) code_.append({op::is_zero});
            return;
        }
        // There is "exceeds" alone: w < x is x > w.
        const bool turned = of.sign == comparison::less || of.sign == comparison::at_least;
        const expression& first = of.parts[turned ? 1 : 0];
        const expression& second = of.parts[turned ? 0 : 1];
        const operand a = value(first);
        const std::size_t at = code_.size();
        const integer_type both = convert(at, a, value(second));
        const bool equal = of.sign == comparison::equal || of.sign == comparison::unequal;
        code_.append({equal ? op::equals : both.is_signed ? op::exceeds : op::exceeds_unsigned});
        const bool negated = of.sign == comparison::unequal || of.sign == comparison::at_most ||
                             of.sign == comparison::at_least;
        if (negated) code_.append({op::is_zero});
    }
    [[nodiscard]] static bool is_condition(const expression& of) noexcept {
        return of.what >= form::compared || of.what == form::truth;
    }

    /// One range after the other: the value is computed for each, for the stack has no copies.
    void among(const expression& of) {
        std::vector<std::size_t> to_end;
        for (std::size_t i = 1; i + 1 < of.parts.size(); i += 2) {
            const auto compared = [&](comparison sign, std::size_t with) {
                expression made = expression::compare(of.parts[0], sign, of.parts[with]);
                made.column = of.parts[with].column;
                made.length = of.parts[with].length;
                return made;
            };
            if (of.parts[i].column == of.parts[i + 1].column) {
                compare(compared(comparison::equal, i));
            } else {
                std::vector<expression> both;
                both.push_back(compared(comparison::at_least, i));
                both.push_back(compared(comparison::at_most, i + 1));
                join(expression::join(form::all_of, std::move(both)), 0);
            }
            const std::size_t next = code_.skip(op::skip_if_zero);
            code_.constant(1);
            to_end.push_back(code_.skip(op::skip));
            code_.here(next);
        }
        code_.constant(0);
        for (const std::size_t each : to_end) code_.here(each);
    }
    /// A text in memory, or the thread's name, with a constant one. Byte by byte, with the 0 behind
    /// it, and only as far as both are the same: nothing is read behind the end of a text.
    void compare_text(const expression& of, const expression& with) {
        std::string wanted = with.word;
        if (const auto name = text_of_point(of)) {
            code_.constant(*name == wanted ? 1 : 0);
            return;
        }
        if (of.what == form::name && of.word == "comm") {
            if (wanted.size() > 15) refuse(with, "a thread's name has at most 15 bytes");
            wanted.resize(16);
            std::array<std::uint64_t, 2> words{};
            std::memcpy(words.data(), wanted.data(), 16);
            for (const std::size_t i : {0U, 1U}) {
                code_.append(
                    {op::context, static_cast<std::uint8_t>(
                                      static_cast<std::size_t>(context_word::command) + i)});
                code_.constant(words[i]);
                code_.append({op::equals});
            }
            code_.append({op::bit_and});
            return;
        }
        if (wanted.find('\0') != std::string::npos) refuse(with, "a text with a 0 in it");
        wanted += '\0';
        const text_value text = text_of(of, of);
        if (wanted.size() > text.bytes + std::size_t{1})
            refuse(with, "longer than the text can be");
        std::vector<std::size_t> to_no;
        const std::size_t bytes = std::min<std::size_t>(wanted.size(), text.bytes);
        for (std::size_t i = 0; i < bytes; ++i) {
            address_of_text(of);
            code_.load({1, false}, i);
            code_.constant(static_cast<unsigned char>(wanted[i]));
            code_.append({op::equals});
            if (i + 1 != bytes) to_no.push_back(code_.skip(op::skip_if_zero));
        }
        const std::size_t to_end = code_.skip(op::skip);
        for (const std::size_t each : to_no) code_.here(each);
        if (!to_no.empty()) code_.constant(0);
        code_.here(to_end);
    }
    /// The type of the array in memory that an expression names; nothing: it names none.
    [[nodiscard]] std::optional<type_id> array_in_memory(const expression& of) {
        if (of.what == form::call || of.what == form::constant || of.what == form::text ||
            is_condition(of)) {
            return std::nullopt;
        }
        const operand made = without_code([&] { return compile(of); });
        const bool is_array =
            made.is == operand::kind::object && types_.of(made).is == type::kind::array;
        return is_array ? std::optional(made.type) : std::nullopt;
    }
    [[nodiscard]] bool is_character(type_id of) const {
        const type& is = types_[of];
        return is.is == type::kind::integer && is.is_character;
    }
    [[nodiscard]] text_value text_of(const expression& of, const expression& at) {
        const auto found = find_text(of);
        if (!found) refuse(at, "a text compared with another type: use str(POINTER) for a text");
        return *found;
    }
};

}  // namespace trace_clauses
