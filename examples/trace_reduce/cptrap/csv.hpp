// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The items of a CPTRAP file as CSV (RFC 4180): one row a record, a loss or a place that cannot be
/// read, under one header line. Types and codes have 0x before them, so that no reader of CSV takes
/// 0010 for a decimal number.
/// @code
///   kind,offset,page,index,type,name,code,length,event,attached,data,ebcdic,cause,count
///   record,0,0,0,0x3F,"interface",0x0003,12,,,"C1C2C3C4","ABCD",,
///   loss,36,0,2,,,,,,,,,"refused",17
///   unreadable,52,0,3,,,,,,,"3E0102...",,"a record of a type whose length is not known",4044
/// @endcode
/// - A cell is empty where there is no such value. `count` is of records that were lost, and of
///   bytes that cannot be read, or that are there of a torn record.
/// - `file` is the first column if several files are read.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <trace_ring/cptrap/record.hpp>
#include <trace_ring/cptrap/spool_reader.hpp>
#include <trace_ring/exporter/text/append.hpp>
#include <trace_ring/loss.hpp>

#include "../exporting/csv.hpp"
#include "ebcdic.hpp"
#include "names.hpp"
#include "notation.hpp"

namespace trace_reduce {

namespace reduce = trace_ring::reduce;
namespace exporter = trace_ring::exporter;
using exporter::text_buffer;

class cptrap_csv_writer {
public:
    /// `several`: with a column `file`.
    explicit cptrap_csv_writer(bool several) : several_(several) {}

    void begin(text_buffer& out) const {
        if (several_) out += "file,";
        out +=
            "kind,offset,page,index,type,name,code,length,event,attached,data,ebcdic,cause,"
            "count\n";
    }
    /// One row. Linear in the item's bytes.
    void append(text_buffer& out, std::string_view file, const reduce::spool_item& item) const {
        using kind = reduce::spool_item::kind;
        if (item.what == kind::end) return;
        const auto lost = item.record.lost();
        if (several_) {
            exporting::impl::append_csv_text(out, file);
            out += ',';
        }
        out += item.what == kind::unreadable ? "unreadable,"
               : item.what == kind::torn     ? "torn,"
               : lost                        ? "loss,"
                                             : "record,";
        exporter::impl::append_number(out, item.offset);
        number(out, item.number);
        number(out, item.index);
        if (item.what == kind::record && !lost) {
            append_record(out, item);
            out += ",,\n";
            return;
        }
        out += ",,,,,,,";
        if (!lost) data_cell(out, item.bytes);
        out += ",,";
        exporting::impl::append_csv_text(out, lost ? to_string(lost->cause) : item.cause());
        number(out, lost ? lost->count : item.bytes.size());
        out += '\n';
    }

private:
    static void number(text_buffer& out, std::uint64_t value) {
        out += ',';
        exporter::impl::append_number(out, value);
    }
    static void text(text_buffer& out, std::string_view value) {
        out += ',';
        if (!value.empty()) exporting::impl::append_csv_text(out, value);
    }
    static void data_cell(text_buffer& out, std::span<const std::byte> data) {
        out += '"';
        for (const auto byte : data) append_hexadecimal(out, std::to_integer<unsigned>(byte), 2);
        out += '"';
    }
    static void append_record(text_buffer& out, const reduce::spool_item& item) {
        const auto& one = item.record;
        out += ",0x";
        append_type(out, one.type);
        text(out, name_of(one.type));
        out += one.headed ? ",0x" : ",";
        if (one.headed) append_code(out, one.type, one.code);
        number(out, item.bytes.size());
        const auto entry = one.entry();
        text(out, entry ? name_of(entry->event()) : std::string_view());
        out += !entry ? "," : entry->attached() ? ",true" : ",false";
        const auto data = data_of(item);
        out += ',';
        data_cell(out, data);
        out += ',';
        exporting::impl::append_csv_text(out, ebcdic_text(data));
    }

    bool several_;
};

}  // namespace trace_reduce
