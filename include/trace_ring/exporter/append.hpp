// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// How exporters write numbers and bytes: appended to a string, without streams or locales, so that
/// millions of records a second can be shown.

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

namespace trace_ring::inline v1::exporter {

/// Text that grows, and is written out and forgotten now and then. Unlike std::string it keeps no
/// terminator, so that adding a few characters is a comparison and a copy.
class text_buffer {
public:
    [[nodiscard]] std::string_view view() const noexcept { return {begin_.get(), size_}; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
    /// Forgets the text and keeps the memory.
    void clear() noexcept { size_ = 0; }

    text_buffer& operator+=(char c) {
        *room(1) = c;
        ++size_;
        return *this;
    }
    text_buffer& operator+=(std::string_view text) {
        std::copy_n(text.data(), text.size(), room(text.size()));
        size_ += text.size();
        return *this;
    }
    /// Where at least `bytes` characters can be written; `add` then tells how many were.
    [[nodiscard]] char* room(std::size_t bytes) {
        if (capacity_ - size_ < bytes) grow(bytes);
        return begin_.get() + size_;
    }
    void add(std::size_t bytes) noexcept { size_ += bytes; }

private:
    void grow(std::size_t bytes) {
        const std::size_t capacity = std::max(2 * capacity_, size_ + bytes + 4096);
        std::unique_ptr<char[]> more(new char[capacity]);
        std::copy_n(begin_.get(), size_, more.get());
        begin_ = std::move(more);
        capacity_ = capacity;
    }

    std::unique_ptr<char[]> begin_;
    std::size_t size_ = 0;
    std::size_t capacity_ = 0;
};

namespace impl {

template <class T>
inline void append_number(text_buffer& out, T value, int base = 10) {
    constexpr std::size_t most = 20;  // digits of 64 bits, a sign among them
    char* const at = out.room(most);
    out.add(static_cast<std::size_t>(std::to_chars(at, at + most, value, base).ptr - at));
}
/// The shortest decimal that reads back as the same number.
template <class T>
inline void append_floating(text_buffer& out, T value) {
    constexpr std::size_t most = 64;
    char* const at = out.room(most);
    out.add(static_cast<std::size_t>(std::to_chars(at, at + most, value).ptr - at));
}
inline void append_padded(text_buffer& out, std::uint64_t value, std::size_t width) {
    char* const at = out.room(width);
    for (std::size_t i = width; i > 0; --i) {
        at[i - 1] = static_cast<char>('0' + value % 10);
        value /= 10;
    }
    out.add(width);
}
/// Nanoseconds as seconds: 1.000000042.
inline void append_seconds(text_buffer& out, std::uint64_t ns) {
    append_number(out, ns / 1'000'000'000);
    out += '.';
    append_padded(out, ns % 1'000'000'000, 9);
}
inline void append_hex_byte(text_buffer& out, unsigned byte) {
    constexpr char digits[] = "0123456789abcdef";
    out += digits[byte >> 4 & 15U];
    out += digits[byte & 15U];
}
inline void append_hex(text_buffer& out, std::span<const std::byte> bytes) {
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
inline void append_escaped(text_buffer& out, std::string_view text, char quote) {
    std::size_t done = 0;
    std::size_t i = 0;
    const auto flush = [&] { out += text.substr(done, i - done); };
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
