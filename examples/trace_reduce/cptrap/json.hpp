// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What is in a CPTRAP file as JSON lines: one object an item, each valid by itself whatever the
/// file holds.
/// @code
///   {"kind":"record","offset":0,"spool_record":0,"type":63,"name":"interface","code":3,"length":12,
///    "data":"c1c2c3c4","ebcdic":"ABCD"}
///   {"kind":"record","offset":12,"spool_record":0,"type":197,"name":"table_entry","code":75,
///    "length":24,"event":"start_io","attached":true,"data":"4b00...","ebcdic":"...."}
///   {"kind":"loss","offset":36,"spool_record":0,"cause":"refused","count":17}
///   {"kind":"unreadable","offset":52,"spool_record":0,"bytes":4044,"cause":"a record of a type ..."}
///   {"kind":"torn","offset":4096,"spool_record":1,"bytes":100,"cause":"torn: the file ends ..."}
/// @endcode
/// - `length` is the record's, with its header; `data`, in hexadecimal, what follows that. A type
///   that has no header has no `code`, and its data are all but the first byte.
/// - `name` and `event` are null where the type or the code is not known.
/// - `file` stands first where a name was given to the writer.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <trace_ring/cptrap/record.hpp>
#include <trace_ring/cptrap/spool_reader.hpp>
#include <trace_ring/exporter/json.hpp>
#include <trace_ring/exporter/text/append.hpp>
#include <trace_ring/loss.hpp>

#include "ebcdic.hpp"
#include "names.hpp"

namespace trace_reduce {

namespace reduce = trace_ring::reduce;
namespace exporter = trace_ring::exporter;
using exporter::text_buffer;

class cptrap_json_writer {
public:
    explicit cptrap_json_writer(std::string file = {}) : file_(std::move(file)) {}

    /// One line. Linear in the item's bytes.
    void append(text_buffer& out, const reduce::spool_item& item) const {
        using kind = reduce::spool_item::kind;
        if (item.what == kind::end) return;
        const auto lost = item.record.lost();
        out += R"({"kind":")";
        out += item.what == kind::unreadable ? "unreadable"
               : item.what == kind::torn     ? "torn"
               : lost                        ? "loss"
                                             : "record";
        out += '"';
        if (!file_.empty()) {
            out += R"(,"file":)";
            exporter::impl::append_json_string(out, file_);
        }
        number(out, R"(,"offset":)", item.offset);
        number(out, R"(,"spool_record":)", item.number);
        if (item.what != kind::record) {
            number(out, R"(,"bytes":)", item.bytes.size());
            out += R"(,"cause":)";
            exporter::impl::append_json_string(out, item.cause());
        } else if (lost) {
            out += R"(,"cause":)";
            exporter::impl::append_json_string(out, to_string(lost->cause));
            number(out, R"(,"count":)", lost->count);
        } else {
            append_record(out, item);
        }
        out += "}\n";
    }

private:
    static void number(text_buffer& out, std::string_view name, std::uint64_t value) {
        out += name;
        exporter::impl::append_number(out, value);
    }
    static void name(text_buffer& out, std::string_view member, std::string_view value) {
        out += member;
        value.empty() ? out += "null" : (exporter::impl::append_json_string(out, value), out);
    }
    static void append_record(text_buffer& out, const reduce::spool_item& item) {
        const auto& one = item.record;
        number(out, R"(,"type":)", static_cast<std::uint64_t>(one.type));
        name(out, R"(,"name":)", name_of(one.type));
        if (one.headed) number(out, R"(,"code":)", one.code);
        number(out, R"(,"length":)", item.bytes.size());
        if (const auto entry = one.entry()) {
            name(out, R"(,"event":)", name_of(entry->event()));
            out += entry->attached() ? R"(,"attached":true)" : R"(,"attached":false)";
        }
        const auto data = one.headed ? one.data() : item.bytes.subspan(1);
        out += R"(,"data":")";
        exporter::impl::append_hex(out, data);
        out += R"(","ebcdic":)";
        std::string text;
        text.reserve(data.size());
        for (const auto byte : data) text += ebcdic_character(byte);
        exporter::impl::append_json_string(out, text);
    }

    std::string file_;
};

}  // namespace trace_reduce
