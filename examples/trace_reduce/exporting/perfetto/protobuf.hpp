// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Writes Protocol Buffers, and has the numbers of Perfetto's. A field is a key (its number and the
/// kind of its value), then the value: a varint of 7 bits a byte, 8 bytes, or a length and as
/// many bytes (for example a message).

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include <trace_ring/atomic.hpp>
#include <trace_ring/exporter/text/append.hpp>

#include "../names.hpp"

namespace trace_reduce::exporting::impl {

struct proto {
    enum wire : unsigned { as_varint = 0, as_fixed64 = 1, as_bytes = 2 };

    [[nodiscard]] static constexpr std::size_t varint_bytes(std::uint64_t value) noexcept {
        return (as_size(std::bit_width(value | 1)) + 6) / 7;
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
};

// The numbers of the fields and values of Perfetto's messages that the exporter writes. They are
// part of its public format, in which numbers never change their meaning.
// test/examples/trace_reduce/exporting/perfetto.proto has the same as a schema for protoc.
struct perfetto {
    using number = std::uint32_t;
    struct trace {
        static constexpr number packet = 1;
    };
    struct packet {
        static constexpr number clock_snapshot = 6, time = 8, sequence = 10, track_event = 11;
        static constexpr number interned = 12, sequence_flags = 13, previous_dropped = 42;
        static constexpr number defaults = 59, track_descriptor = 60, first_on_sequence = 87;
        static constexpr number default_event = 11, default_clock = 58;  // of `defaults`
        static constexpr number state_cleared = 1, needs_state = 2;      // of `sequence_flags`
    };
    struct clock_snapshot {
        static constexpr number clocks = 1, primary = 2;
        static constexpr number clock_id = 1, clock_time = 2;  // of `clocks`
        static constexpr number realtime = 1, monotonic = 3;   // clocks
    };
    struct interned_data {
        static constexpr number categories = 1, names = 2, annotations = 3;
        static constexpr number iid = 1, name = 2;  // of each of them
    };
    struct track_descriptor {
        static constexpr number uuid = 1, name = 2, process = 3, thread = 4, parent = 5,
                                counter = 8;
        static constexpr number process_pid = 1, process_name = 6;                // of `process`
        static constexpr number thread_pid = 1, thread_tid = 2, thread_name = 5;  // of `thread`
    };
    struct track_event {
        static constexpr number category_iid = 3, annotations = 4, type = 9, name_iid = 10;
        static constexpr number track = 11, name = 23, counter = 30, double_counter = 44, flow = 47;
        static constexpr number begins = 1, ends = 2, instant = 3, counts = 4;  // of `type`
    };
    struct debug_annotation {
        static constexpr number name_iid = 1, boolean = 2, u64 = 3, i64 = 4, floating = 5;
        static constexpr number string = 6, pointer = 7, name = 10, entries = 11, elements = 12;
    };
};

}  // namespace trace_reduce::exporting::impl
