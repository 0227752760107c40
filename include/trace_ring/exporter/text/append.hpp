// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Appends numbers and bytes to a buffer for exporters, without streams or locales, so that
/// millions of records a second can be shown.

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace trace_ring::inline v1::exporter {

/// Text that grows, and is written out and cleared now and then. Unlike std::string it has no
/// terminator, so adding a few characters is a comparison and a copy.
class text_buffer {
public:
    [[nodiscard]] std::string_view view() const noexcept { return {begin_.get(), size_}; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
    /// Removes the text and keeps the memory.
    void clear() noexcept { size_ = 0; }

    [[gnu::always_inline]] text_buffer& operator+=(char c) {
        *room(1) = c;
        ++size_;
        return *this;
    }
    [[gnu::always_inline]] text_buffer& operator+=(std::string_view text) {
        copy(text.data(), text.size(), room(text.size()));
        size_ += text.size();
        return *this;
    }
    /// A place for at least `bytes` characters; `add` then says how many were written.
    [[nodiscard, gnu::always_inline]] char* room(std::size_t bytes) {
        if (capacity_ - size_ < bytes) [[unlikely]]
            grow(bytes);
        return begin_.get() + size_;
    }
    void add(std::size_t bytes) noexcept { size_ += bytes; }
    /// Adds the characters that were written from `room` up to `end`.
    void end_at(const char* end) noexcept { size_ = static_cast<std::size_t>(end - begin_.get()); }
    /// A place in the text, to overwrite it; good until the text grows.
    [[nodiscard]] char* at(std::size_t offset) noexcept { return begin_.get() + offset; }

private:
    /// Most words are too short for a call of memcpy: copies them as two overlapping parts.
    [[gnu::always_inline]] static void copy(const char* from, std::size_t bytes, char* to) {
        struct sixteen {
            std::uint64_t low, high;
        };
        if (bytes > 32) {
            std::memcpy(to, from, bytes);
        } else if (bytes > 16) {
            copy_both_ends<sixteen>(from, bytes, to);
        } else if (bytes >= 8) {
            copy_both_ends<std::uint64_t>(from, bytes, to);
        } else if (bytes >= 4) {
            copy_both_ends<std::uint32_t>(from, bytes, to);
        } else {
            for (std::size_t i = 0; i < bytes; ++i) to[i] = from[i];
        }
    }
    template <class Part>
    [[gnu::always_inline]] static void copy_both_ends(const char* from, std::size_t bytes,
                                                      char* to) {
        Part first, last;
        std::memcpy(&first, from, sizeof first);
        std::memcpy(&last, from + bytes - sizeof last, sizeof last);
        std::memcpy(to, &first, sizeof first);
        std::memcpy(to + bytes - sizeof last, &last, sizeof last);
    }

    [[gnu::noinline, gnu::cold]] void grow(std::size_t bytes) {
        const std::size_t capacity = (std::max)(2 * capacity_, size_ + bytes + 4096);
        std::unique_ptr<char[]> more(new char[capacity]);
        std::copy_n(begin_.get(), size_, more.get());
        begin_ = std::move(more);
        capacity_ = capacity;
    }

    std::unique_ptr<char[]> begin_{};
    std::size_t size_ = 0;
    std::size_t capacity_ = 0;
};

namespace impl {

/// A text that is written again and again. Most are short: `least` bytes of these are copied,
/// with two stores and no branch.
class piece {
public:
    piece() = default;
    explicit piece(std::string_view text) : size_(text.size()), all_(text) {
        all_.resize((std::max)(size_, least));
    }
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
    /// The number of bytes that `put` may write.
    [[nodiscard]] std::size_t room() const noexcept { return all_.size(); }
    /// Copies the text to `at`; returns its end.
    [[nodiscard, gnu::always_inline]] char* put(char* at) const noexcept {
        const char* const from = all_.data();
        std::memcpy(at, from, least);
        if (size_ > least) [[unlikely]]
            std::memcpy(at + least, from + least, size_ - least);
        return at + size_;
    }

private:
    static constexpr std::size_t least = 32;

    std::size_t size_ = 0;
    std::string all_ = std::string(least, '\0');
};

inline constexpr std::size_t number_room = 20;    ///< digits of 64 bits, with a sign
inline constexpr std::size_t floating_room = 64;  ///< for any double

/// Writes to `at`, with room for `number_room` bytes; returns the end.
template <class T>
[[nodiscard]] inline char* put_number(char* at, T value, int base = 10) noexcept {
    return std::to_chars(at, at + number_room, value, base).ptr;
}
template <class T>
inline void append_number(text_buffer& out, T value, int base = 10) {
    out.end_at(put_number(out.room(number_room), value, base));
}
/// Appends characters, texts, literals and integers, one after the other.
template <class... Parts>
inline void append(text_buffer& out, const Parts&... parts) {
    const auto one = [&out]<class Part>(const Part& part) __attribute__((always_inline)) {
        if constexpr (std::is_array_v<Part>) {
            out += std::string_view(part, sizeof part - 1);
        } else if constexpr (std::is_integral_v<Part> && !std::is_same_v<Part, char>) {
            append_number(out, part);
        } else {
            out += part;
        }
    };
    (one(parts), ...);
}
/// Writes the shortest decimal that reads back as the same number to `at`, with room for
/// `floating_room` bytes; returns the end.
template <class T>
[[nodiscard]] inline char* put_floating(char* at, T value) noexcept {
    // Numbers with up to three decimal places are frequent and need no search: no two decimals with
    // at most 15 digits are the same double, so the first found is the shortest. From 100000 on the
    // shortest may have an exponent; -0 has a sign.
    if constexpr (std::is_same_v<T, double>) {
        const double size = value < 0 ? -value : value;
        if (size > 0 && size < 100'000) {
            // A quarter is added: the product may lie just below the whole number that is meant.
            const auto thousandths = static_cast<std::uint32_t>(size * 1000 + 0.25);
            if (static_cast<double>(thousandths) / 1000 == size) {
                if (value < 0) *at++ = '-';
                at = std::to_chars(at, at + 8, thousandths / 1000).ptr;
                std::uint32_t rest = thousandths % 1000;
                if (rest != 0) *at++ = '.';
                for (std::uint32_t unit = 100; rest != 0; rest %= unit, unit /= 10) {
                    *at++ = static_cast<char>('0' + rest / unit);
                }
                return at;
            }
        }
    }
    return std::to_chars(at, at + floating_room, value).ptr;
}
template <class T>
inline void append_floating(text_buffer& out, T value) {
    out.end_at(put_floating(out.room(floating_room), value));
}
/// 00 to 99.
inline constexpr auto digit_pairs = [] {
    std::array<char, 200> all{};
    for (std::size_t i = 0; i < 100; ++i) {
        all[2 * i] = static_cast<char>('0' + i / 10);
        all[2 * i + 1] = static_cast<char>('0' + i % 10);
    }
    return all;
}();
/// Writes the last `Width` digits of `value`, with zeros in front, to `at`.
template <std::size_t Width>
inline void put_padded(char* at, std::uint64_t value) noexcept {
    static_assert(Width <= 9, "trace_ring: digits of a number of 32 bits");
    auto rest = static_cast<std::uint32_t>(value);
    std::size_t i = Width;
    for (; i > 1; i -= 2, rest /= 100) {
        std::memcpy(at + i - 2, &digit_pairs[2 * std::size_t{rest % 100}], 2);
    }
    if (i == 1) at[0] = static_cast<char>('0' + rest % 10);
}
template <std::size_t Width>
inline void append_padded(text_buffer& out, std::uint64_t value) {
    put_padded<Width>(out.room(Width), value);
    out.add(Width);
}
/// Writes nanoseconds as seconds, 1.000000042, to `at`, with room for 30 bytes.
[[nodiscard]] inline char* put_seconds(char* at, std::uint64_t ns) noexcept {
    at = put_number(at, ns / 1'000'000'000);
    *at++ = '.';
    put_padded<9>(at, ns % 1'000'000'000);
    return at + 9;
}
inline void append_seconds(text_buffer& out, std::uint64_t ns) {
    out.end_at(put_seconds(out.room(number_room + 10), ns));
}
inline void append_hex_byte(text_buffer& out, unsigned byte) {
    constexpr char digits[] = "0123456789abcdef";
    out += digits[byte >> 4 & 15U];
    out += digits[byte & 15U];
}
inline void append_hex(text_buffer& out, std::span<const std::byte> bytes) {
    for (const auto byte : bytes) append_hex_byte(out, std::to_integer<unsigned>(byte));
}

/// The length in bytes of the valid UTF-8 sequence that `text` begins with; 0 if there is none.
/// Overlong forms, surrogates and code points beyond U+10FFFF are not valid. `text` is not empty.
[[nodiscard]] inline std::size_t utf8_length(std::string_view text) noexcept {
    const auto at = [text](std::size_t i) -> unsigned {
        return static_cast<unsigned char>(text[i]);
    };
    const unsigned first = at(0);
    if (first < 0x80) return 1;
    const std::size_t length = first < 0xC2 || first > 0xF4 ? 0
                               : first < 0xE0               ? 2
                               : first < 0xF0               ? 3
                                                            : 4;
    if (length == 0 || length > text.size()) return 0;
    const unsigned low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    const unsigned high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    if (at(1) < low || at(1) > high) return 0;
    for (std::size_t i = 2; i < length; ++i) {
        if ((at(i) & 0xC0U) != 0x80U) return 0;
    }
    return length;
}

/// The code point of a sequence that utf8_length found valid.
[[nodiscard]] inline std::uint32_t code_point(std::string_view sequence) noexcept {
    const auto first = static_cast<unsigned char>(sequence[0]);
    if (sequence.size() == 1) return first;
    std::uint32_t code = first & (0x7FU >> sequence.size());
    for (const char each : sequence.substr(1))
        code = code << 6 | (static_cast<unsigned char>(each) & 0x3FU);
    return code;
}

/// Whether a character commands what shows it, and so is escaped in every format: the controls
/// (C0, DEL, C1), and those that turn the direction of the text around them or break its lines
/// (Unicode's Bidi_Control, U+2028, U+2029).
[[nodiscard]] constexpr bool is_command(std::uint32_t code) noexcept {
    return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x61C || code == 0x200E ||
           code == 0x200F || (code >= 0x2028 && code <= 0x202E) ||
           (code >= 0x2066 && code <= 0x2069);
}

/// Appends text with bytes that are not UTF-8, commands, and `quote` (if it is not 0) escaped.
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
        if (length > 1 && !is_command(code_point(text.substr(i, length)))) {
            i += length;
            continue;
        }
        flush();
        const std::size_t bytes = length > 1 ? length : 1;
        for (const char byte : text.substr(i, bytes)) {
            constexpr std::string_view special = "\n\t\r";
            const std::size_t which = special.find(byte);
            out += '\\';
            if (byte == '\\' || (byte == quote && quote != 0)) {
                out += byte;
            } else if (which != special.npos) {
                out += "ntr"[which];
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
