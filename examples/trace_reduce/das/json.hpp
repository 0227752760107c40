// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A DAS trace table as JSON lines: one object for the table, then one for each part of it.
/// @code
///   {"kind":"table","header":4096,"current":8192,"first":8192,"last":8320,"entries":4,"next":8224,
///    "word_84":2147487744,"gate":"open","notes":[],"inconsistent":[]}
///   {"kind":"zeros","address":8224,"offset":8224,"entries":3,"current":false}
///   {"kind":"missing","address":8224,"offset":8224,"entries":3,"current":false,
///    "cause":"beyond the end of the file"}
///   {"kind":"entry","address":8192,"offset":8192,"current":true,"data":"00000001...",
///    "ebcdic":"..."}
/// @endcode
/// - `address` is in guest storage, `offset` in the file.
/// - `next` is null if the next trace meets a specification exception.
/// - `gate` is null if word 84 is not in the file, or designates another header; `word_84` is null
///   in the first case.
/// - `file` is the second member if a name was given to the writer.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <trace_ring/exporter/json.hpp>
#include <trace_ring/exporter/text/append.hpp>

#include "../cptrap/ebcdic.hpp"
#include "table.hpp"

namespace trace_reduce::das_storage {

class json_writer {
public:
    explicit json_writer(std::string file) : file_(std::move(file)) {}

    void append(exporter::text_buffer& out, const table& of) const {
        const auto& words = of.words();
        begin(out, "table");
        number(out, R"(,"header":)", of.header());
        number(out, R"(,"current":)", words.current);
        number(out, R"(,"first":)", words.first);
        number(out, R"(,"last":)", words.last);
        number(out, R"(,"entries":)", of.count());
        number(out, R"(,"next":)", of.next_entry());
        number(out, R"(,"word_84":)", of.word_84());
        out += R"(,"gate":)";
        out += !of.is_designated()                           ? "null"
               : das::designation{*of.word_84()}.gate_open() ? R"("open")"
                                                             : R"("closed")";
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
        number(out, R"(,"address":)", one.address);
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
            std::string text;
            for (const auto byte : one.bytes.payload) text += ebcdic_character(byte);
            exporter::impl::append_json_string(out, text);
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
    static void number(exporter::text_buffer& out, std::string_view name,
                       const std::optional<std::uint32_t>& value) {
        if (value) return number(out, name, std::uint64_t{*value});
        out += name;
        out += "null";
    }

    std::string file_;
};

}  // namespace trace_reduce::das_storage
