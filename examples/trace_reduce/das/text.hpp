// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A DAS trace table to be read by people: its header, and a line for each entry with its address,
/// its 32 bytes in hexadecimal and in EBCDIC. What an entry holds is the machine's or the
/// emulator's: it is not interpreted.
/// @code
///   DAS trace table: header 001000, current 00002000, first 00002000, last 00002080, 4 entries
///   word 84: 80001000, the gate is open
///   next entry: 002020
///   002020  -- 3 entries of zeros: never used, or filled with zeros
///   002000  00000001 B218C100 00000001 00000000 ... 00000000  *......A...*  current
/// @endcode

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <trace_ring/exporter/text/append.hpp>

#include "../cptrap/ebcdic.hpp"
#include "../cptrap/notation.hpp"
#include "table.hpp"

namespace trace_reduce::das_storage {

namespace exporter = trace_ring::exporter;
using exporter::text_buffer;

class text_writer {
public:
    /// `file` begins each line, if it is not empty.
    explicit text_writer(std::string file, bool colour) : file_(std::move(file)), colour_(colour) {}

    void append(text_buffer& out, const table& of) const {
        const auto& words = of.words();
        begin(out);
        out += "DAS trace table: header ";
        append_hexadecimal(out, of.header(), 6);
        out += ", current ";
        append_hexadecimal(out, words.current, 8);
        out += ", first ";
        append_hexadecimal(out, words.first, 8);
        out += ", last ";
        append_hexadecimal(out, words.last, 8);
        out += ", ";
        exporter::impl::append_number(out, of.count());
        out += of.count() == 1 ? " entry\n" : " entries\n";
        begin(out);
        out += "word 84: ";
        if (const auto& word = of.word_84()) {
            append_hexadecimal(out, *word, 8);
            out += of.is_designated() ? ", the gate is " : ", which designates another header";
            out += of.gate();
        } else {
            out += "not in the file";
        }
        out += '\n';
        begin(out);
        if (const auto next = of.next_entry()) {
            out += "next entry: ";
            append_hexadecimal(out, *next, 6);
        } else {
            out += "next entry: a specification exception";
        }
        out += '\n';
        for (const auto& each : of.notes()) line(out, "note: ", each);
        for (const auto& each : of.faults()) line(out, "inconsistent: ", each.what);
    }
    /// Linear in the entry's bytes.
    void append(text_buffer& out, const guest_image& image, const item& one) const {
        begin(out);
        if (colour_) out += "\x1b[2m";
        append_hexadecimal(out, one.address, 6);
        if (colour_) out += "\x1b[0m";
        out += "  ";
        if (one.what == item::kind::entry) {
            dump(out, one.bytes);
        } else {
            out += "-- ";
            exporter::impl::append_number(out, one.entries);
            out += one.entries == 1 ? " entry " : " entries ";
            if (one.what == item::kind::zeros) {
                out += "of zeros: never used, or filled with zeros";
            } else {
                out += image.absence();
            }
        }
        if (one.current) out += "  current";
        out += '\n';
    }

private:
    void begin(text_buffer& out) const {
        if (file_.empty()) return;
        exporter::impl::append_escaped(out, file_, 0);
        out += ": ";
    }
    void line(text_buffer& out, const char* what, const std::string& text) const {
        begin(out);
        out += what;
        out += text;
        out += '\n';
    }
    static void dump(text_buffer& out, const trace_ring::record::das_entry& entry) {
        std::size_t i = 0;
        for (const auto byte : entry.payload) {
            if (i != 0 && i % 4 == 0) out += ' ';
            append_hexadecimal(out, std::to_integer<unsigned>(byte), 2);
            ++i;
        }
        out += "  *";
        out += ebcdic_text(entry.payload);
        out += '*';
    }
    std::string file_;
    bool colour_;
};

}  // namespace trace_reduce::das_storage
