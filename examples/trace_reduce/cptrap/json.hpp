// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The items of a CPTRAP file as JSON lines: one valid object for each, also in a damaged file.
/// @code
///   {"kind":"record","offset":0,"page":0,"index":0,"type":"3F","name":"interface","code":"0003",
///    "length":12,"data":"c1c2c3c4","ebcdic":"ABCD"}
///   {"kind":"record","offset":12,"page":0,"index":1,"type":"C5","name":"table_entry","code":"4B",
///    "length":24,"event":"start_io","attached":true,"data":"4b00...","ebcdic":"...."}
///   {"kind":"loss","offset":36,"page":0,"index":2,"cause":"refused","count":17}
///   {"kind":"unreadable","offset":52,"page":0,"index":3,"bytes":4044,"cause":"a record ...",
///    "data":"3e01..."}
///   {"kind":"torn","offset":4096,"page":1,"index":0,"bytes":100,"cause":"torn: ...","data":"3f00..."}
/// @endcode
/// - `page` is the spool record of 4 KiB and `index` the record in it, both from 0. `type` and
///   `code` are texts, in the notation of the options (notation.hpp).
/// - `length` is the record's, with its header; `data`, in hexadecimal, what follows that. A type
///   that has no header has no `code`, and its data are all but the first byte.
/// - `reserved` is there if the reserved bytes of the header are not zero.
/// - `name` and `event` are null where the type or the code is not known.
/// - `file` is there if several files are read.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <trace_ring/cptrap/record.hpp>
#include <trace_ring/cptrap/spool_reader.hpp>
#include <trace_ring/exporter/json.hpp>
#include <trace_ring/exporter/text/append.hpp>
#include <trace_ring/loss.hpp>

#include "ebcdic.hpp"
#include "names.hpp"
#include "notation.hpp"

namespace trace_reduce {

namespace reduce = trace_ring::reduce;
namespace exporter = trace_ring::exporter;
using exporter::text_buffer;

class cptrap_json_writer {
public:
    /// One line, with `file` if it is not empty. Linear in the item's bytes.
    void append(text_buffer& out, std::string_view file, const reduce::spool_item& item) const {
        using kind = reduce::spool_item::kind;
        if (item.what == kind::end) return;
        const auto lost = item.record.lost();
        out += R"({"kind":")";
        out += item.what == kind::unreadable ? "unreadable"
               : item.what == kind::torn     ? "torn"
               : lost                        ? "loss"
                                             : "record";
        out += '"';
        if (!file.empty()) {
            out += R"(,"file":)";
            exporter::impl::append_json_string(out, file);
        }
        number(out, R"(,"offset":)", item.offset);
        number(out, R"(,"page":)", item.number);
        number(out, R"(,"index":)", item.index);
        if (item.what != kind::record) {
            number(out, R"(,"bytes":)", item.bytes.size());
            out += R"(,"cause":)";
            exporter::impl::append_json_string(out, item.cause());
            out += R"(,"data":")";
            exporter::impl::append_hex(out, item.bytes);
            out += '"';
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
        out += R"(,"type":")";
        append_type(out, one.type);
        out += '"';
        name(out, R"(,"name":)", name_of(one.type));
        if (one.headed) {
            out += R"(,"code":")";
            append_code(out, one.type, one.code);
            out += '"';
        }
        if (const auto reserved = reserved_of(one); reserved != std::array<std::byte, 3>{}) {
            out += R"(,"reserved":")";
            exporter::impl::append_hex(out, reserved);
            out += '"';
        }
        number(out, R"(,"length":)", item.bytes.size());
        if (const auto entry = one.entry()) {
            name(out, R"(,"event":)", name_of(entry->event()));
            out += entry->attached() ? R"(,"attached":true)" : R"(,"attached":false)";
        }
        const auto data = data_of(item);
        out += R"(,"data":")";
        exporter::impl::append_hex(out, data);
        out += R"(","ebcdic":)";
        exporter::impl::append_json_string(out, ebcdic_text(data));
    }
};

}  // namespace trace_reduce
