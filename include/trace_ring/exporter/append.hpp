// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// How exporters write numbers and bytes: appended to a string, without streams or locales, so that
/// millions of records a second can be shown.

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace trace_ring::inline v1::exporter {

namespace impl {

template <class T>
inline void append_number(std::string& out, T value, int base = 10) {
    char digits[72];
    const auto end = std::to_chars(digits, digits + sizeof digits, value, base).ptr;
    out.append(digits, end);
}
/// The shortest decimal that reads back as the same number.
template <class T>
inline void append_floating(std::string& out, T value) {
    char digits[64];
    out.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}
inline void append_padded(std::string& out, std::uint64_t value, std::size_t width) {
    char digits[24];
    for (std::size_t i = width; i > 0; --i) {
        digits[i - 1] = static_cast<char>('0' + value % 10);
        value /= 10;
    }
    out.append(digits, width);
}
inline void append_hex_byte(std::string& out, unsigned byte) {
    constexpr char digits[] = "0123456789abcdef";
    out += digits[byte >> 4 & 15U];
    out += digits[byte & 15U];
}
inline void append_hex(std::string& out, std::span<const std::byte> bytes) {
    for (const auto byte : bytes) append_hex_byte(out, std::to_integer<unsigned>(byte));
}

/// Bytes of the valid UTF-8 sequence that `text` begins with; 0 if it is none (overlong forms,
/// surrogates and what lies beyond U+10FFFF are none). `text` is not empty.
[[nodiscard]] inline std::size_t utf8_length(std::string_view text) noexcept {
    const auto at = [text](std::size_t i) -> unsigned {
        return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
    };
    const auto more = [&](std::size_t i) { return (at(i) & 0xC0U) == 0x80U; };
    const unsigned first = at(0);
    if (first < 0x80) return 1;
    if (first >= 0xC2 && first <= 0xDF) return more(1) ? 2 : 0;
    if (first >= 0xE0 && first <= 0xEF) {
        if (!more(1) || !more(2)) return 0;
        if (first == 0xE0 && at(1) < 0xA0) return 0;
        return first == 0xED && at(1) > 0x9F ? 0 : 3;
    }
    if (first >= 0xF0 && first <= 0xF4) {
        if (!more(1) || !more(2) || !more(3)) return 0;
        if (first == 0xF0 && at(1) < 0x90) return 0;
        return first == 0xF4 && at(1) > 0x8F ? 0 : 4;
    }
    return 0;
}

/// `quote` is escaped too, if it is not 0.
inline void append_escaped(std::string& out, std::string_view text, char quote) {
    std::size_t done = 0;
    std::size_t i = 0;
    const auto flush = [&] { out.append(text.substr(done, i - done)); };
    while (i < text.size()) {
        const auto c = static_cast<unsigned char>(text[i]);
        if (c >= 0x20 && c < 0x7F && c != '\\' && text[i] != quote) {
            ++i;
            continue;
        }
        const std::size_t length = utf8_length(text.substr(i));
        const bool c1 = length == 2 && c == 0xC2 && static_cast<unsigned char>(text[i + 1]) < 0xA0;
        if (length > 1 && !c1) {
            i += length;
            continue;
        }
        flush();
        const std::size_t bytes = c1 ? 2 : 1;
        for (std::size_t k = 0; k < bytes; ++k) {
            const char byte = text[i + k];
            out += '\\';
            if (byte == '\\' || (byte == quote && quote != 0)) {
                out += byte;
            } else if (byte == '\n') {
                out += 'n';
            } else if (byte == '\t') {
                out += 't';
            } else if (byte == '\r') {
                out += 'r';
            } else {
                out += 'x';
                append_hex_byte(out, static_cast<unsigned char>(byte));
            }
        }
        i += bytes;
        done = i;
    }
    flush();
}

}  // namespace impl

}  // namespace trace_ring::inline v1::exporter
