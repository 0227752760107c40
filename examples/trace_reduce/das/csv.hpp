// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A DAS trace table as CSV: a row for the table's header, whose data are its three words, and a
/// row for each part of the table. Addresses and data are hexadecimal.
/// @code
///   file,kind,address,entries,current,data,ebcdic
///   "a.storage",table,001000,4,,000020000000200000002080,
///   "a.storage",zeros,002020,3,no,,
///   "a.storage",entry,002000,1,yes,00000001b218c100...,"......A..."
/// @endcode

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <trace_ring/exporter/text/append.hpp>
#include <trace_ring/record/data_model.hpp>

#include "../cptrap/ebcdic.hpp"
#include "table.hpp"

namespace trace_reduce::das_storage {

class csv_writer {
public:
    static constexpr std::string_view columns = "file,kind,address,entries,current,data,ebcdic\n";

    explicit csv_writer(const std::string& file) : file_(quoted_field(file)) {}

    void append(exporter::text_buffer& out, const table& of) const {
        begin(out, "table", of.header(), of.count());
        out += ',';
        const auto& words = of.words();
        for (const auto word : {words.current, words.first, words.last}) {
            std::array<std::byte, 4> bytes{};
            trace_ring::record::store_big(bytes, 0, word);
            exporter::impl::append_hex(out, bytes);
        }
        out += ",\n";
    }
    /// Linear in the entry's bytes.
    void append(exporter::text_buffer& out, const guest_image&, const item& one) const {
        using kind = item::kind;
        begin(out,
              one.what == kind::entry   ? "entry"
              : one.what == kind::zeros ? "zeros"
                                        : "missing",
              one.address, one.entries);
        out += one.current ? "yes," : "no,";
        if (one.what == kind::entry) {
            exporter::impl::append_hex(out, one.bytes.payload);
            out += ',';
            std::string text;
            for (const auto byte : one.bytes.payload) text += ebcdic_character(byte);
            out += quoted_field(text);
        } else {
            out += ',';
        }
        out += '\n';
    }

private:
    void begin(exporter::text_buffer& out, std::string_view kind, std::uint32_t address,
               std::uint32_t entries) const {
        out += file_;
        out += ',';
        out += kind;
        out += ',';
        for (int shift = 20; shift >= 0; shift -= 4)
            out += "0123456789abcdef"[address >> shift & 15U];
        out += ',';
        exporter::impl::append_number(out, entries);
        out += ',';
    }
    [[nodiscard]] static std::string quoted_field(std::string_view text) {
        std::string out = "\"";
        for (const char c : text) {
            if (c == '"') out += '"';
            out += c;
        }
        return out += '"';
    }

    std::string file_;
};

}  // namespace trace_reduce::das_storage
