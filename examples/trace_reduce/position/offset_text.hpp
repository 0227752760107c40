// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// FILE=SECONDS and EVENT.FIELD[,EVENT.FIELD], as the command line has them.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace trace_reduce::position {

/// The times of a file become later by so much.
struct given_offset {
    std::string file;     ///< as the command line has it, or its number, from 1 on
    std::int64_t ns = 0;  ///< may be negative
};

/// Records of two kinds that belong together where a field has the same value.
struct match_rule {
    std::string sent;  ///< an event's name
    std::string sent_field;
    std::string
        received;  ///< empty: `sent` is a span, begun by who sends and ended by who receives
    std::string received_field;
};

/// FILE=[+|-]SECONDS[.FRACTION], up to nine digits of it and a hundred years; nothing if it is
/// none.
[[nodiscard]] inline std::optional<given_offset> parse_offset(std::string_view text) {
    const std::size_t equals = text.rfind('=');
    if (equals == std::string_view::npos || equals == 0) return std::nullopt;
    given_offset out{std::string(text.substr(0, equals))};
    text.remove_prefix(equals + 1);
    const bool negative = text.starts_with('-');
    if (negative || text.starts_with('+')) text.remove_prefix(1);
    constexpr std::int64_t most = 3'200'000'000;
    std::int64_t seconds = 0;
    std::size_t at = 0;
    const auto digit = [&text](std::size_t i) {
        return i < text.size() && text[i] >= '0' && text[i] <= '9';
    };
    for (; digit(at); ++at) {
        seconds = seconds * 10 + (text[at] - '0');
        if (seconds > most) return std::nullopt;
    }
    if (at == 0) return std::nullopt;
    std::int64_t fraction = 0;
    if (at < text.size() && text[at] == '.') {
        ++at;
        if (!digit(at)) return std::nullopt;
        for (int i = 0; i < 9; ++i) fraction = fraction * 10 + (digit(at) ? text[at++] - '0' : 0);
    }
    if (at != text.size()) return std::nullopt;
    out.ns = seconds * 1'000'000'000 + fraction;
    if (negative) out.ns = -out.ns;
    return out;
}

/// Whether it is FILE=SECONDS, but of more than a hundred years.
[[nodiscard]] inline bool is_too_large(std::string_view text) {
    const std::size_t equals = text.rfind('=');
    if (equals == std::string_view::npos || parse_offset(text)) return false;
    std::size_t digits = equals + 1;
    if (digits < text.size() && (text[digits] == '-' || text[digits] == '+')) ++digits;
    std::size_t end = digits;
    while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
    // The same with one digit is well-formed.
    std::string small(text.substr(0, digits));
    small += '0';
    small += text.substr(end);
    return end != digits && parse_offset(small).has_value();
}

/// An event's name may have points in it: the field is what comes after the last. Nothing if it is
/// no rule.
[[nodiscard]] inline std::optional<match_rule> parse_match(std::string_view text) {
    const auto part = [](std::string_view one, std::string& event, std::string& field) {
        const std::size_t point = one.rfind('.');
        if (point == std::string_view::npos || point == 0 || point + 1 == one.size()) return false;
        event = one.substr(0, point);
        field = one.substr(point + 1);
        return true;
    };
    match_rule out;
    const std::size_t comma = text.find(',');
    if (!part(text.substr(0, comma), out.sent, out.sent_field)) return std::nullopt;
    if (comma == std::string_view::npos) {
        out.received_field = out.sent_field;
        return out;
    }
    if (!part(text.substr(comma + 1), out.received, out.received_field) ||
        text.find(',', comma + 1) != std::string_view::npos) {
        return std::nullopt;
    }
    return out;
}

}  // namespace trace_reduce::position
