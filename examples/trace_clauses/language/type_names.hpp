// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Types by the names that C gives them: "unsigned long", "struct order *".
/// @code
///   const auto found = find_type(types, "struct order *");
/// @endcode

#include <bit>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../types/type_table.hpp"

namespace trace_clauses {

namespace impl {

/// A basic type by its words, in any order.
[[nodiscard]] inline std::optional<type_id> basic_type(type_table& types,
                                                       const std::vector<std::string>& words) {
    using point::c_type;
    unsigned longs = 0;
    bool is_unsigned = false;
    bool is_signed = false;
    std::string base;
    for (const auto& word : words) {
        if (word == "long") {
            ++longs;
        } else if (word == "unsigned") {
            is_unsigned = true;
        } else if (word == "signed") {
            is_signed = true;
        } else if (word == "short" || word == "char" || word == "float" || word == "double" ||
                   word == "bool" || word == "_Bool" || word == "void") {
            if (!base.empty()) return std::nullopt;
            base = word;
        } else if (word != "int") {
            return std::nullopt;
        }
    }
    if (base == "void") return type_table::nothing();
    if (base == "bool" || base == "_Bool") return types.of(c_type::boolean, false);
    if (base == "char") {
        return is_signed || is_unsigned ? types.byte(!is_unsigned)
                                        : types.of(c_type::character, true);
    }
    if (base == "short") return types.of(c_type::short_integer, !is_unsigned);
    if (base == "float") return types.of(c_type::single_float);
    if (base == "double") {
        return types.of(longs == 0 ? c_type::double_float : c_type::long_double_float);
    }
    return types.of(longs == 0   ? c_type::integer
                    : longs == 1 ? c_type::long_integer
                                 : c_type::long_long_integer,
                    !is_unsigned);
}

/// Those of <stdint.h> and the like that differ by nothing or by the mode alone.
[[nodiscard]] inline std::optional<type_id> standard_type(type_table& types,
                                                          std::string_view name) {
    using point::c_type;
    const struct {
        std::string_view name;
        c_type type;
        bool is_signed;
    } known[] = {
        {"int16_t", c_type::short_integer, true},
        {"uint16_t", c_type::short_integer, false},
        {"int32_t", c_type::integer, true},
        {"uint32_t", c_type::integer, false},
        {"int64_t", c_type::long_long_integer, true},
        {"uint64_t", c_type::long_long_integer, false},
        {"size_t", c_type::long_integer, false},
        {"ssize_t", c_type::long_integer, true},
        {"intptr_t", c_type::long_integer, true},
        {"uintptr_t", c_type::long_integer, false},
        {"ptrdiff_t", c_type::long_integer, true},
    };
    if (name == "int8_t" || name == "uint8_t") return types.byte(name == "int8_t");
    for (const auto& each : known) {
        if (each.name == name) return types.of(each.type, each.is_signed);
    }
    return std::nullopt;
}

}  // namespace impl

/// The type of that name; nothing if there is none. Throws std::bad_alloc only.
[[nodiscard]] inline std::optional<type_id> find_type(type_table& types, std::string_view name) {
    std::vector<std::string> words;
    std::size_t pointers = 0;
    for (std::size_t i = 0; i < name.size();) {
        const auto in_word = [&](std::size_t at) {
            return at < name.size() && name[at] != ' ' && name[at] != '\t' && name[at] != '\n' &&
                   name[at] != '*';
        };
        const std::size_t begin = i;
        while (in_word(i)) ++i;
        if (i != begin) {
            const std::string word(name.substr(begin, i - begin));
            if (word != "const" && word != "volatile") words.push_back(word);
        } else {
            pointers += name[i] == '*' ? 1 : 0;
            ++i;
        }
    }
    if (words.empty()) return std::nullopt;
    std::optional<type_id> found;
    const bool tagged = words[0] == "struct" || words[0] == "union" || words[0] == "enum";
    if (tagged || words.size() == 1) {
        std::string whole = words[0];
        if (tagged && words.size() == 2) whole += " " + words[1];
        if (const type_id known = types.find(whole); known != type_table::nothing()) found = known;
    }
    if (!found && words.size() == 1) found = impl::standard_type(types, words[0]);
    if (!found && !tagged) found = impl::basic_type(types, words);
    if (!found) return std::nullopt;
    for (; pointers != 0; --pointers) found = types.pointer_to(*found);
    return found;
}

/// How C would write it, for messages.
[[nodiscard]] inline std::string shown_type(const type_table& types, type_id of,
                                            unsigned depth = 0) {
    const type& is = types[of];
    if (!is.name.empty()) return is.name;
    if (depth > 8) return "...";
    switch (is.is) {
        case type::kind::nothing:
            return "void";
        case type::kind::pointer: {
            const std::string to = shown_type(types, is.of, depth + 1);
            return to + (to.back() == '*' ? "" : " ") + (is.is_reference ? '&' : '*');
        }
        case type::kind::array:
            return shown_type(types, is.of, depth + 1) + "[" + std::to_string(is.count) + "]";
        case type::kind::structure:
            return "a structure without a name";
        case type::kind::real:
            return "a floating-point number";
        case type::kind::integer:
            break;
    }
    constexpr const char* names[] = {"char", "short", "int", "long long"};
    if (!std::has_single_bit(is.size.bytes) || is.size.bytes > 8) {
        return "a number of " + std::to_string(is.size.bytes) + " bytes";
    }
    const auto at = static_cast<std::size_t>(std::countr_zero(is.size.bytes));
    const bool is_long = is.size.bytes == 8 && types.mode() == program_mode::lp64;
    return (is.is_signed ? "" : "unsigned ") + std::string(is_long ? "long" : names[at]);
}

}  // namespace trace_clauses
