// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What bytes of a System/370 look like: as EBCDIC characters, which its programs write, and as
/// ASCII, which a host's may. Of EBCDIC those characters are shown that its two usual code pages,
/// 037 and 1047, have in the same place and that are ASCII, too.

#include <array>
#include <cstddef>
#include <span>
#include <string>

namespace trace_reduce {

namespace impl {

[[nodiscard]] consteval std::array<char, 256> make_ebcdic() {
    std::array<char, 256> out{};
    for (auto& each : out) each = '.';
    const auto row = [&out](std::size_t first, const char* text) {
        for (; *text != 0; ++text, ++first) out[first] = *text;
    };
    row(0x40, " ");
    row(0x4B, ".<(+|&");
    row(0x5A, "!$*);");
    row(0x60, "-/");
    row(0x6B, ",%_>?");
    row(0x79, "`:#@'=\"");
    row(0x81, "abcdefghi");
    row(0x91, "jklmnopqr");
    row(0xA1, "~stuvwxyz");
    row(0xC0, "{ABCDEFGHI");
    row(0xD0, "}JKLMNOPQR");
    row(0xE0, "\\");
    row(0xE2, "STUVWXYZ");
    row(0xF0, "0123456789");
    return out;
}
inline constexpr std::array<char, 256> ebcdic_characters = make_ebcdic();

}  // namespace impl

/// A printable ASCII character for a byte of EBCDIC; '.' if it is none.
[[nodiscard]] constexpr char ebcdic_character(std::byte byte) noexcept {
    return impl::ebcdic_characters[std::to_integer<std::size_t>(byte)];
}
/// Such a character for each byte.
[[nodiscard]] inline std::string ebcdic_text(std::span<const std::byte> bytes) {
    std::string out;
    out.reserve(bytes.size());
    for (const auto byte : bytes) out += ebcdic_character(byte);
    return out;
}
/// The byte itself if it is printable ASCII; '.' if not.
[[nodiscard]] constexpr char ascii_character(std::byte byte) noexcept {
    const auto value = std::to_integer<unsigned char>(byte);
    return value >= 0x20 && value < 0x7F ? static_cast<char>(value) : '.';
}

}  // namespace trace_reduce
