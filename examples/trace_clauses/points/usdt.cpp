// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "usdt.hpp"

#include <array>
#include <charconv>
#include <cstddef>
#include <span>
#include <system_error>

namespace trace_clauses {
namespace {

/// A register by its assembler name, and the part of the register that the name means.
struct reg_part {
    std::uint8_t number = usdt_argument::none;
    std::uint8_t bytes = 0;
    std::uint8_t shift = 0;
};

constexpr std::uint8_t pointer_of_64 = 16;  // rip
constexpr std::uint8_t pointer_of_32 = 8;   // eip

[[nodiscard]] std::optional<reg_part> register_of(std::string_view name, program_mode mode) {
    const bool wide = mode == program_mode::lp64;
    // By their numbers in DWARF, of x86-64 and of i386.
    struct known {
        std::string_view letters;  // without r and e; for a byte, without the last letter
        std::uint8_t of_64, of_32;
    };
    static constexpr std::array<known, 8> names{{{"ax", 0, 0},
                                                 {"dx", 1, 2},
                                                 {"cx", 2, 1},
                                                 {"bx", 3, 3},
                                                 {"si", 4, 6},
                                                 {"di", 5, 7},
                                                 {"bp", 6, 5},
                                                 {"sp", 7, 4}}};
    const auto number = [wide](const known& one) { return wide ? one.of_64 : one.of_32; };
    if (wide && name == "rip") return reg_part{pointer_of_64, 8, 0};
    if (name == "eip") return reg_part{wide ? pointer_of_64 : pointer_of_32, 4, 0};
    for (const known& one : names) {
        if (wide && name.size() == 3 && name[0] == 'r' && name.substr(1) == one.letters) {
            return reg_part{number(one), 8, 0};
        }
        if (name.size() == 3 && name[0] == 'e' && name.substr(1) == one.letters) {
            return reg_part{number(one), 4, 0};
        }
        if (name == one.letters) return reg_part{number(one), 2, 0};
        if (one.letters[1] == 'x' && name.size() == 2 && name[0] == one.letters[0]) {
            if (name[1] == 'l') return reg_part{number(one), 1, 0};
            if (name[1] == 'h') return reg_part{number(one), 1, 8};
        }
        if (wide && one.letters[1] != 'x' && name.size() == 3 && name[2] == 'l' &&
            name.substr(0, 2) == one.letters) {
            return reg_part{number(one), 1, 0};
        }
    }
    if (!wide || name.size() < 2 || name[0] != 'r') return std::nullopt;
    unsigned value = 0;
    const auto [end, error] = std::from_chars(name.data() + 1, name.data() + name.size(), value);
    if (error != std::errc{} || value < 8 || value > 15) return std::nullopt;
    const std::string_view rest(end, static_cast<std::size_t>(name.data() + name.size() - end));
    const auto n = static_cast<std::uint8_t>(value);
    if (rest.empty()) return reg_part{n, 8, 0};
    if (rest == "d") return reg_part{n, 4, 0};
    if (rest == "w") return reg_part{n, 2, 0};
    if (rest == "b" || rest == "l") return reg_part{n, 1, 0};
    return std::nullopt;
}

[[nodiscard]] bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/// A sum of numbers, and of at most one symbol: "8", "-4+x", "x@GOTOFF-8".
struct sum {
    std::uint64_t number = 0;
    std::string_view symbol{};
};
[[nodiscard]] std::optional<sum> sum_of(std::string_view text) {
    sum made;
    while (!text.empty()) {
        bool minus = false;
        while (!text.empty() && (text[0] == '+' || text[0] == '-')) {
            minus = minus != (text[0] == '-');
            text.remove_prefix(1);
        }
        const std::string_view term = text.substr(0, text.find_first_of("+-"));
        if (term.empty()) return std::nullopt;
        text.remove_prefix(term.size());
        if (!is_digit(term[0])) {
            if (minus || !made.symbol.empty()) return std::nullopt;
            made.symbol = term;
            continue;
        }
        const bool sixteen = term.starts_with("0x") || term.starts_with("0X");
        const std::string_view digits = term.substr(sixteen ? 2 : 0);
        std::uint64_t value = 0;
        const auto [end, error] =
            std::from_chars(digits.data(), digits.data() + digits.size(), value, sixteen ? 16 : 10);
        if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
        made.number += minus ? 0 - value : value;
    }
    return made;
}

/// Reads the contents of parentheses: "%rax", "%rax,%rbx,4", ",%rbx,8".
[[nodiscard]] bool read_registers(std::string_view text, program_mode mode, usdt_argument& into) {
    std::array<std::string_view, 3> parts{};
    std::size_t count = 0;
    while (true) {
        if (count == parts.size()) return false;
        const std::size_t comma = text.find(',');
        std::string_view part = text.substr(0, comma);
        while (part.starts_with(' ')) part.remove_prefix(1);
        while (part.ends_with(' ')) part.remove_suffix(1);
        parts[count++] = part;
        if (comma == std::string_view::npos) break;
        text.remove_prefix(comma + 1);
    }
    // Only registers of the program's full width can form an address.
    const auto whole = [mode](std::string_view name) {
        std::uint8_t found = usdt_argument::none;
        if (!name.starts_with('%')) return found;
        const auto part = register_of(name.substr(1), mode);
        if (part && part->bytes == (mode == program_mode::lp64 ? 8 : 4)) found = part->number;
        return found;
    };
    if (!parts[0].empty() && (into.reg = whole(parts[0])) == usdt_argument::none) return false;
    if (count == 1) return into.reg != usdt_argument::none;
    if ((into.index = whole(parts[1])) == usdt_argument::none) return false;
    if (count == 2) return true;
    if (parts[2] != "1" && parts[2] != "2" && parts[2] != "4" && parts[2] != "8") return false;
    into.scale = static_cast<std::uint8_t>(parts[2][0] - '0');
    return true;
}

/// "4@", "-8@", "8f@". Returns false for anything else.
[[nodiscard]] bool read_size(std::string_view text, usdt_argument& into) {
    if (text.starts_with('-')) {
        into.is_signed = true;
        text.remove_prefix(1);
    }
    if (text.ends_with('f')) {
        into.is_real = true;
        text.remove_suffix(1);
    }
    if (text != "1" && text != "2" && text != "4" && text != "8") return false;
    into.bytes = static_cast<std::uint8_t>(text[0] - '0');
    return true;
}

/// Converts `made.value` to a variable's address, relative to the probe's location.
[[nodiscard]] bool relate(std::string_view symbol, program_mode mode, std::uint64_t location,
                          const find_symbol& find, usdt_argument& made) {
    constexpr std::string_view from_table = "@GOTOFF";
    if (symbol.ends_with(from_table)) symbol.remove_suffix(from_table.size());
    const auto at = find ? find(symbol) : std::nullopt;
    if (!at) return false;
    made.reg = mode == program_mode::lp64 ? pointer_of_64 : pointer_of_32;
    const std::uint64_t from_here = *at + static_cast<std::uint64_t>(made.value) - location;
    made.value = static_cast<std::int64_t>(from_here);
    return true;
}

[[nodiscard]] bool read_operand(std::string_view text, program_mode mode, std::uint64_t location,
                                const find_symbol& find, usdt_argument& made) {
    using kind = usdt_argument::kind;
    if (text.empty()) return false;
    if (text[0] == '%') {
        const auto part = register_of(text.substr(1), mode);
        if (!part) return false;
        made.is = kind::reg;
        made.reg = part->number;
        made.reg_bytes = part->bytes;
        made.reg_shift = part->shift;
        if (made.bytes == 0) made.bytes = part->bytes;
        return true;
    }
    const bool constant = text[0] == '$';
    const std::size_t open = text.find('(');
    const auto offset = sum_of(text.substr(constant ? 1 : 0, open - (constant ? 1 : 0)));
    if (!offset) return false;
    made.value = static_cast<std::int64_t>(offset->number);
    if (constant) {
        if (open != std::string_view::npos || text.size() == 1) return false;
        made.is = offset->symbol.empty() ? kind::constant : kind::address;
        return offset->symbol.empty() || relate(offset->symbol, mode, location, find, made);
    }
    made.is = kind::memory;
    if (open != std::string_view::npos) {
        if (!text.ends_with(')') ||
            !read_registers(text.substr(open + 1, text.size() - open - 2), mode, made)) {
            return false;
        }
    }
    const bool by_pointer = made.reg == pointer_of_64 && mode == program_mode::lp64;
    if (offset->symbol.empty()) {
        // A number there would be relative to an unknown instruction.
        return !by_pointer;
    }
    // The base of a symbol: nothing, the instruction pointer, or the table that it is relative to.
    const bool from_table = offset->symbol.ends_with("@GOTOFF");
    if (made.reg != usdt_argument::none && !by_pointer && !from_table) return false;
    return relate(offset->symbol, mode, location, find, made);
}

}  // namespace

usdt_argument parse_usdt_argument(std::string_view text, program_mode mode, std::uint64_t location,
                                  const find_symbol& find) {
    usdt_argument made;
    made.text = text;
    std::string_view operand = text;
    bool known = true;
    // A symbol may also contain an '@', but not after a size.
    if (const std::size_t at = text.find('@');
        at != std::string_view::npos && at != 0 && (is_digit(text[0]) || text[0] == '-') &&
        text.substr(0, at).find_first_of("($%+") == std::string_view::npos) {
        known = read_size(text.substr(0, at), made);
        operand.remove_prefix(at + 1);
    }
    if (!known || !read_operand(operand, mode, location, find, made)) {
        made = {};
        made.text = text;
        return made;
    }
    if (made.bytes == 0) made.bytes = mode == program_mode::lp64 ? 8 : 4;
    return made;
}

std::vector<usdt_argument> parse_usdt_arguments(std::string_view text, program_mode mode,
                                                std::uint64_t location, const find_symbol& find) {
    constexpr std::size_t most = 64;  // SystemTap's macros have 12
    std::vector<usdt_argument> made;
    std::size_t begin = 0;
    int depth = 0;
    for (std::size_t i = 0; i <= text.size() && made.size() < most; ++i) {
        if (i < text.size() && text[i] == '(') ++depth;
        if (i < text.size() && text[i] == ')') --depth;
        if (i < text.size() && (text[i] != ' ' || depth > 0)) continue;
        if (i != begin) {
            made.push_back(
                parse_usdt_argument(text.substr(begin, i - begin), mode, location, find));
        }
        begin = i + 1;
    }
    return made;
}

}  // namespace trace_clauses
