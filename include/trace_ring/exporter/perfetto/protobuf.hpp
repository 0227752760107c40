// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Writes Protocol Buffers: a field is a key (its number and the kind of its value), then the
/// value: a varint of 7 bits a byte, 8 bytes, or a length and that many bytes (perhaps a message).

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include <trace_ring/exporter/text/append.hpp>

namespace trace_ring::inline v1::exporter::impl::proto {

enum class wire : unsigned { varint = 0, fixed64 = 1, bytes = 2 };

[[nodiscard]] constexpr std::size_t varint_bytes(std::uint64_t value) noexcept {
    return (static_cast<std::size_t>(std::bit_width(value | 1)) + 6) / 7;
}
/// Writes `varint_bytes(value)` bytes.
inline void put_varint(char* at, std::uint64_t value) noexcept {
    for (; value >= 0x80; value >>= 7) *at++ = static_cast<char>(value | 0x80);
    *at = static_cast<char>(value);
}
inline void append_varint(text_buffer& out, std::uint64_t value) {
    const std::size_t bytes = varint_bytes(value);
    put_varint(out.room(bytes), value);
    out.add(bytes);
}
inline void append_key(text_buffer& out, std::uint32_t field, wire how) {
    append_varint(out, std::uint64_t{field} << 3 | static_cast<unsigned>(how));
}

/// A field of type uint32, uint64, int32, int64 (as two's complement of 64 bits), bool or enum.
inline void append_number(text_buffer& out, std::uint32_t field, std::uint64_t value) {
    append_key(out, field, wire::varint);
    append_varint(out, value);
}
inline void append_fixed64(text_buffer& out, std::uint32_t field, std::uint64_t value) {
    append_key(out, field, wire::fixed64);
    char* const at = out.room(8);
    for (unsigned i = 0; i < 8; ++i) at[i] = static_cast<char>(value >> (i * 8));
    out.add(8);
}
inline void append_double(text_buffer& out, std::uint32_t field, double value) {
    append_fixed64(out, field, std::bit_cast<std::uint64_t>(value));
}

/// Appends a field that is a message, a string or bytes, which `body()` writes. If it is longer
/// than 127 bytes it is moved when its length is known.
template <class Body>
inline void append_message(text_buffer& out, std::uint32_t field, Body&& body) {
    append_key(out, field, wire::bytes);
    const std::size_t at = out.size();
    out += '\0';
    body();
    const std::size_t length = out.size() - at - 1;
    const std::size_t bytes = varint_bytes(length);
    if (bytes > 1) {
        static_cast<void>(out.room(bytes - 1));
        std::memmove(out.at(at + bytes), out.at(at + 1), length);
        out.add(bytes - 1);
    }
    put_varint(out.at(at), length);
}
inline void append_bytes(text_buffer& out, std::uint32_t field, std::string_view value) {
    append_key(out, field, wire::bytes);
    append_varint(out, value.size());
    out += value;
}

}  // namespace trace_ring::inline v1::exporter::impl::proto
