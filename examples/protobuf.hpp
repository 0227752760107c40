// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Writes Protocol Buffers. A field is a key (its number and the kind of its value), then the
/// value: a varint of 7 bits a byte, 4 or 8 bytes, or a length and as many bytes (for example a
/// message).

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include <trace_ring/exporter/json.hpp>
#include <trace_ring/exporter/text/append.hpp>

namespace protobuf {

struct encoding {
    using text_buffer = trace_ring::exporter::text_buffer;
    enum wire : unsigned { as_varint = 0, as_fixed64 = 1, as_bytes = 2, as_fixed32 = 5 };

    [[nodiscard]] static constexpr std::size_t varint_bytes(std::uint64_t value) noexcept {
        return (static_cast<std::size_t>(std::bit_width(value | 1)) + 6) / 7;
    }
    /// Writes `varint_bytes(value)` bytes.
    static void put_varint(char* at, std::uint64_t value) noexcept {
        for (; value >= 0x80; value >>= 7) *at++ = static_cast<char>(value | 0x80);
        *at = static_cast<char>(value);
    }
    static void varint(text_buffer& out, std::uint64_t value) {
        const std::size_t bytes = varint_bytes(value);
        put_varint(out.room(bytes), value);
        out.add(bytes);
    }
    static void key(text_buffer& out, std::uint32_t field, wire how) {
        varint(out, std::uint64_t{field} << 3 | how);
    }

    /// A field of type uint32, uint64, int32, int64 (as two's complement of 64 bits), bool or enum.
    static void number(text_buffer& out, std::uint32_t field, std::uint64_t value) {
        key(out, field, as_varint);
        varint(out, value);
    }
    static void fixed64(text_buffer& out, std::uint32_t field, std::uint64_t value) {
        key(out, field, as_fixed64);
        char* const at = out.room(8);
        for (unsigned i = 0; i < 8; ++i) at[i] = static_cast<char>(value >> (i * 8));
        out.add(8);
    }
    static void fixed32(text_buffer& out, std::uint32_t field, std::uint32_t value) {
        key(out, field, as_fixed32);
        char* const at = out.room(4);
        for (unsigned i = 0; i < 4; ++i) at[i] = static_cast<char>(value >> (i * 8));
        out.add(4);
    }
    static void real(text_buffer& out, std::uint32_t field, double value) {
        fixed64(out, field, std::bit_cast<std::uint64_t>(value));
    }

    /// Appends a field that is a message, a string or bytes, which `body()` writes. If it is longer
    /// than 127 bytes it is moved when its length is known.
    template <class Body>
    static void message(text_buffer& out, std::uint32_t field, Body&& body) {
        key(out, field, as_bytes);
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
    static void bytes(text_buffer& out, std::uint32_t field, std::string_view value) {
        key(out, field, as_bytes);
        varint(out, value.size());
        out += value;
    }
    /// A field of type string, which must be UTF-8: other bytes become U+FFFD.
    static void text(text_buffer& out, std::uint32_t field, std::string_view value) {
        using namespace trace_ring::exporter::impl;
        if (is_utf8(value)) return bytes(out, field, value);
        message(out, field, [&] {
            while (!value.empty()) {
                const std::size_t length = utf8_length(value);
                out += length == 0 ? std::string_view("\xEF\xBF\xBD") : value.substr(0, length);
                value.remove_prefix(length == 0 ? 1 : length);
            }
        });
    }
};

}  // namespace protobuf
