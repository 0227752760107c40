// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A DAS trace table as JSON lines: one object for the table, then one for each part of it.
/// @code
///   {"kind":"table","header":"001000","offset":4096,"current":"00002000","first":"00002000",
///    "last":"00002080","entries":4,"next":"002020","word_84":"80001000","gate":"open",
///    "notes":[],"inconsistent":[]}
///   {"kind":"zeros","address":"002020","offset":8224,"entries":3,"current":false}
///   {"kind":"missing","address":"002020","offset":8224,"entries":3,"current":false,
///    "cause":"beyond the end of the file"}
///   {"kind":"entry","address":"002000","offset":8192,"current":true,"data":"00000001...",
///    "ebcdic":"..."}
/// @endcode
/// - `address` is in guest storage, `offset` in the file. Addresses and control words are texts of
///   hexadecimal digits, as --das takes and text shows them; other numbers are decimal.
/// - `next` is null if the next trace meets a specification exception.
/// - `gate` is null if word 84 is not in the file, or designates another header; `word_84` is null
///   in the first case.
/// - `file` is the second member if a name was given to the writer.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <trace_ring/exporter/json.hpp>
#include <trace_ring/exporter/text/append.hpp>

#include "../cptrap/ebcdic.hpp"
#include "../cptrap/notation.hpp"
#include "table.hpp"

namespace trace_reduce::das_storage {

class json_writer {
public:
    explicit json_writer(std::string file) : file_(std::move(file)) {}

    void append(exporter::text_buffer& out, const table& of) const {
        const auto& words = of.words();
        begin(out, "table");
        digits(out, R"(,"header":)", of.header(), 6);
        number(out, R"(,"offset":)", of.offset());
        digits(out, R"(,"current":)", words.current, 8);
        digits(out, R"(,"first":)", words.first, 8);
        digits(out, R"(,"last":)", words.last, 8);
        number(out, R"(,"entries":)", of.count());
        digits(out, R"(,"next":)", of.next_entry(), 6);
        digits(out, R"(,"word_84":)", of.word_84(), 8);
        out += R"(,"gate":)";
        if (of.is_designated()) {
            exporter::impl::append_json_string(out, of.gate());
        } else {
            out += "null";
        }
        out += R"(,"notes":[)";
        const char* separator = "";
        for (const auto& each : of.notes()) {
            out += std::exchange(separator, ",");
            exporter::impl::append_json_string(out, each);
        }
        out += R"(],"inconsistent":[)";
        separator = "";
        for (const auto& each : of.faults()) {
            out += std::exchange(separator, ",");
            exporter::impl::append_json_string(out, each.what);
        }
        out += "]}\n";
    }
    /// Linear in the entry's bytes.
    void append(exporter::text_buffer& out, const guest_image& image, const item& one) const {
        using kind = item::kind;
        begin(out, one.what == kind::entry   ? "entry"
                   : one.what == kind::zeros ? "zeros"
                                             : "missing");
        digits(out, R"(,"address":)", one.address, 6);
        number(out, R"(,"offset":)", one.offset);
        if (one.what != kind::entry) number(out, R"(,"entries":)", one.entries);
        out += one.current ? R"(,"current":true)" : R"(,"current":false)";
        if (one.what == kind::missing) {
            out += R"(,"cause":)";
            exporter::impl::append_json_string(out, image.absence());
        }
        if (one.what == kind::entry) {
            out += R"(,"data":")";
            exporter::impl::append_hex(out, one.bytes.payload);
            out += R"(","ebcdic":)";
            exporter::impl::append_json_string(out, ebcdic_text(one.bytes.payload));
        }
        out += "}\n";
    }

private:
    void begin(exporter::text_buffer& out, std::string_view kind) const {
        out += R"({"kind":")";
        out += kind;
        out += '"';
        if (file_.empty()) return;
        out += R"(,"file":)";
        exporter::impl::append_json_string(out, file_);
    }
    static void number(exporter::text_buffer& out, std::string_view name, std::uint64_t value) {
        out += name;
        exporter::impl::append_number(out, value);
    }
    /// Hexadecimal, or null.
    static void digits(exporter::text_buffer& out, std::string_view name,
                       const std::optional<std::uint32_t>& value, std::size_t width) {
        out += name;
        if (!value) {
            out += "null";
            return;
        }
        out += '"';
        append_hexadecimal(out, *value, width);
        out += '"';
    }

    std::string file_;
};

}  // namespace trace_reduce::das_storage
