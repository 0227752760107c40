// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What is in a CPTRAP file, to be read by people: a line for each record, with its offset in the
/// file, its type, its code and the length of its data; below it the data, 16 bytes a line, in
/// hexadecimal, EBCDIC and ASCII. A record has no time.
/// @code
///   0x00000000  3F interface    code 0003     4 bytes
///       0000  C1C2C3C4                             *ABCD*              |....|
///   0x0000000C  C5 table_entry  code 4B      16 bytes  start_io, attached processor
///       0000  4B000000 00000000 00000000 00000000  *................*  |K...............|
///   0x00000024  -- 17 records lost: refused
///   0x00000034  -- 4044 bytes unreadable: a record of a type whose length is not known (3E)
///       0000  3E010203 00000000 00000000 00000000  *................*  |>...............|
///       ...
/// @endcode

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <trace_ring/cptrap/record.hpp>
#include <trace_ring/cptrap/spool_reader.hpp>
#include <trace_ring/cptrap/spool_record.hpp>
#include <trace_ring/exporter/text/append.hpp>
#include <trace_ring/loss.hpp>

#include "../../counted.hpp"
#include "ebcdic.hpp"
#include "names.hpp"
#include "notation.hpp"

namespace trace_reduce {

namespace reduce = trace_ring::reduce;
namespace exporter = trace_ring::exporter;
namespace record = trace_ring::record;
using exporter::text_buffer;

class cptrap_text_writer {
public:
    explicit cptrap_text_writer(bool colour = false) : colour_(colour) {}

    /// The first line begins with `file`, if it is not empty. Linear in the item's bytes.
    void append(text_buffer& out, std::string_view file, const reduce::spool_item& item) const {
        using kind = reduce::spool_item::kind;
        if (item.what == kind::end) return;
        if (!file.empty()) {
            exporter::impl::append_escaped(out, file, 0);
            out += ": ";
        }
        faint(out, true);
        append_offset(out, item.offset);
        faint(out, false);
        out += "  ";
        if (item.what == kind::record) {
            if (const auto lost = item.record.lost()) {
                out += "-- ";
                out += counted(lost->count, "record lost", "records lost") + ": ";
                out += to_string(lost->cause);
                out += '\n';
            } else {
                append_record(out, item);
            }
            return;
        }
        out += "-- ";
        if (item.what == kind::torn) {
            out += item.cause();
            if (!item.bytes.empty()) {
                out += "; ";
                out += counted(item.bytes.size(), "byte of a record is there",
                               "bytes of a record are there");
            }
        } else {
            out += counted(item.bytes.size(), "byte unreadable", "bytes unreadable") + ": ";
            out += item.cause();
            if (item.why == record::spool_end::unknown_type && !item.bytes.empty()) {
                out += " (";
                append_hexadecimal(out, std::to_integer<unsigned>(item.bytes[0]), 2);
                out += ')';
            }
        }
        out += '\n';
        dump_lines(out, item.bytes.first((std::min)(item.bytes.size(), unreadable_shown)));
        if (item.bytes.size() > unreadable_shown) out += "    ...\n";
    }

private:
    void append_record(text_buffer& out, const reduce::spool_item& item) const {
        const auto& one = item.record;
        const auto entry = one.entry();
        append_type(out, one.type);
        out += ' ';
        const auto name = name_of(one.type);
        if (colour_ && !name.empty()) out += "\x1b[36m";
        out += name.empty() ? "unknown" : name;
        if (colour_ && !name.empty()) out += "\x1b[0m";
        constexpr std::size_t width = 13;
        pad(out, name.empty() ? 7 : name.size(), width);
        const auto data = data_of(item);
        if (one.headed) {
            out += "code ";
            append_code(out, one.type, one.code);
            pad(out, code_width(one.type), 4);
        } else {  // a type whose length was given
            out += "no header";
        }
        out += ' ';
        decimal(out, data.size(), 5);
        out += data.size() == 1 ? " byte" : " bytes";
        if (entry) {
            out += data.size() == 1 ? "   " : "  ";
            const auto event = name_of(entry->event());
            out += event.empty() ? "unknown event" : event;
            if (entry->attached()) out += ", attached processor";
        }
        append_reserved(out, one);
        out += '\n';
        dump_lines(out, data);
    }
    /// The reserved bytes of the header, if they are not zero.
    static void append_reserved(text_buffer& out, const record::cptrap_view& one) {
        const auto reserved = reserved_of(one);
        if (reserved == std::array<std::byte, 3>{}) return;
        out += "  reserved";
        for (const auto byte : reserved) {
            out += ' ';
            append_hexadecimal(out, std::to_integer<unsigned>(byte), 2);
        }
    }
    static void dump_lines(text_buffer& out, std::span<const std::byte> data) {
        for (std::size_t at = 0; at < data.size(); at += a_line) {
            out += "    ";
            append_hexadecimal(out, at, 4);
            out += "  ";
            dump(out, data.subspan(at, (std::min)(a_line, data.size() - at)));
        }
    }

    static constexpr std::size_t a_line = 16;
    static constexpr std::size_t unreadable_shown = 4 * a_line;

    static void dump(text_buffer& out, std::span<const std::byte> bytes) {
        std::size_t written = 0;
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            if (i != 0 && i % 4 == 0) {
                out += ' ';
                ++written;
            }
            append_hexadecimal(out, std::to_integer<unsigned>(bytes[i]), 2);
            written += 2;
        }
        pad(out, written, 2 * a_line + a_line / 4 - 1);
        out += "  *";
        out += ebcdic_text(bytes);
        out += '*';
        pad(out, bytes.size(), a_line);
        out += "  |";
        for (const auto byte : bytes) out += ascii_character(byte);
        out += "|\n";
    }

    void faint(text_buffer& out, bool on) const {
        if (colour_) out += on ? "\x1b[2m" : "\x1b[0m";
    }
    static void pad(text_buffer& out, std::size_t written, std::size_t width) {
        for (; written < width; ++written) out += ' ';
    }
    static void decimal(text_buffer& out, std::uint64_t value, std::size_t width) {
        std::size_t digits = 1;
        for (auto rest = value; rest >= 10; rest /= 10) ++digits;
        pad(out, digits, width);
        exporter::impl::append_number(out, value);
    }
    bool colour_;
};

}  // namespace trace_reduce
