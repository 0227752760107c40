// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A DAS trace table as CSV (RFC 4180): a row for its header, one for each note and inconsistency,
/// and one for each part of the table. Addresses and control words have 0x before them, so that no
/// reader of CSV takes 002E00 for a decimal number.
/// @code
///   file,kind,address,offset,entries,current,data,ebcdic,current_control,first_control,
///       last_control,next,word_84,gate,text                       (one line)
///   "a.storage",table,0x001000,4096,4,,,,0x00002000,0x00002000,0x00002080,0x002020,0x80001000,open,
///   "a.storage",note,,,,,,,,,,,,,"the last entry runs 16 bytes over last"
///   "a.storage",inconsistent,,4096,,,,,,,,,,,"the current-entry control, ..."
///   "a.storage",zeros,0x002020,8224,3,false,,,,,,,,,
///   "a.storage",missing,0x002020,8224,3,false,,,,,,,,,"beyond the end of the file"
///   "a.storage",entry,0x002000,8192,1,true,"00000001B218C100...","......A...",,,,,,,
/// @endcode
/// - `address` is in guest storage, of the header or of the first entry; `offset` in the file.
/// - `current` of an entry: current designates it.
/// - A cell is empty where there is no such value. Of the table, `next` is empty if the next trace
///   meets a specification exception, `word_84` if that word is not in the file, and `gate` then or
///   if the word designates another header.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <trace_ring/exporter/text/append.hpp>

#include "../cptrap/ebcdic.hpp"
#include "../cptrap/notation.hpp"
#include "../exporting/csv.hpp"
#include "table.hpp"

namespace trace_reduce::das_storage {

class csv_writer {
public:
    static constexpr std::string_view columns =
        "file,kind,address,offset,entries,current,data,ebcdic,current_control,first_control,"
        "last_control,next,word_84,gate,text\n";

    explicit csv_writer(const std::string& file) {
        exporter::text_buffer cell;
        exporting::impl::append_csv_text(cell, file);
        file_ = cell.view();
    }

    void append(exporter::text_buffer& out, const table& of) const {
        const auto& words = of.words();
        begin(out, "table", of.header(), of.offset(), of.count());
        out += ",,,";  // current, data, ebcdic
        digits(out, words.current, 8);
        digits(out, words.first, 8);
        digits(out, words.last, 8);
        digits(out, of.next_entry(), 6);
        digits(out, of.word_84(), 8);
        out += ',';
        out += of.gate();
        out += ",\n";
        for (const auto& each : of.notes()) {
            begin(out, "note", {}, {}, {});
            end(out, each);
        }
        for (const auto& each : of.faults()) {
            begin(out, "inconsistent", {}, each.offset, {});
            end(out, each.what);
        }
    }
    /// Linear in the entry's bytes.
    void append(exporter::text_buffer& out, const guest_image& image, const item& one) const {
        using kind = item::kind;
        begin(out,
              one.what == kind::entry   ? "entry"
              : one.what == kind::zeros ? "zeros"
                                        : "missing",
              one.address, one.offset, one.entries);
        out += one.current ? ",true" : ",false";
        if (one.what != kind::entry) {
            out += ",,,,,,,,,";  // data to gate, and text
            if (one.what == kind::missing) exporting::impl::append_csv_text(out, image.absence());
            out += '\n';
            return;
        }
        out += ",\"";
        for (const auto byte : one.bytes.payload) {
            append_hexadecimal(out, std::to_integer<unsigned>(byte), 2);
        }
        out += "\",";
        exporting::impl::append_csv_text(out, ebcdic_text(one.bytes.payload));
        out += ",,,,,,,\n";
    }

private:
    void begin(exporter::text_buffer& out, std::string_view kind,
               std::optional<std::uint32_t> address, std::optional<std::uint64_t> offset,
               std::optional<std::uint32_t> entries) const {
        out += file_;
        out += ',';
        out += kind;
        digits(out, address, 6);
        out += ',';
        if (offset) exporter::impl::append_number(out, *offset);
        out += ',';
        if (entries) exporter::impl::append_number(out, *entries);
    }
    /// The rest of a row that has nothing more but `text`.
    static void end(exporter::text_buffer& out, std::string_view text) {
        out += ",,,,,,,,,,";
        exporting::impl::append_csv_text(out, text);
        out += '\n';
    }
    static void digits(exporter::text_buffer& out, std::optional<std::uint32_t> value,
                       std::size_t width) {
        out += ',';
        if (!value) return;
        out += "0x";
        append_hexadecimal(out, *value, width);
    }

    std::string file_{};
};

}  // namespace trace_reduce::das_storage
