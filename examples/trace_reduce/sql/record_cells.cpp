// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "record_cells.hpp"

#include <time.h>

#include <cmath>
#include <cstdio>
#include <string>

#include <trace_ring/exporter/json.hpp>

namespace trace_reduce::sql {

namespace {

using trace_ring::field_form;
using trace_ring::field_type;

void result_real(sqlite3_context* to, double value) {
    sqlite3_result_double(to, value);  // of NaN it makes null
}

void result_scalar(sqlite3_context* to, const reduce::field_value& value) {
    switch (value.type()) {
        case field_type::f32:
            return result_real(to, static_cast<double>(value.f32()));
        case field_type::f64:
            return result_real(to, value.f64());
        case field_type::i8:
        case field_type::i16:
        case field_type::i32:
        case field_type::i64:
            return sqlite3_result_int64(to, value.i64());
        case field_type::boolean:
            return sqlite3_result_int(to, value.boolean() ? 1 : 0);
        case field_type::character: {
            const char c = static_cast<char>(value.u64());
            return result_bytes_or_text(to, {&c, 1});
        }
        default:
            return result_unsigned(to, value.u64());
    }
}

}  // namespace

void result_bytes_or_text(sqlite3_context* to, std::string_view text) {
    if (text.find('\0') == text.npos && trace_ring::exporter::impl::is_utf8(text)) {
        return result_text(to, text);
    }
    result_blob(to, text.data(), text.size());
}

void result_value(sqlite3_context* to, const reduce::field_value& value) {
    if (!value) return sqlite3_result_null(to);
    if (value.form() == field_form::scalar) {
        if (value.may_have_name()) {
            if (const auto name = value.name(); !name.empty()) {
                return result_bytes_or_text(to, name);
            }
        }
        return result_scalar(to, value);
    }
    if (value.is_text()) return result_bytes_or_text(to, value.text());
    trace_ring::exporter::text_buffer text;
    trace_ring::exporter::impl::append_json_value(text, value);
    result_text(to, text.view());
}

void record_cells::time(sqlite3_context* to, const traced_file& in, std::uint64_t ticks) {
    if (!in.time().known()) return sqlite3_result_null(to);
    sqlite3_result_int64(to, in.time().realtime_ns(ticks, near_));
}

void record_cells::time_text(sqlite3_context* to, const traced_file& in, std::uint64_t ticks) {
    if (!in.time().known()) return sqlite3_result_null(to);
    constexpr std::int64_t second = 1'000'000'000;
    const std::int64_t ns = in.time().realtime_ns(ticks, near_);
    const std::int64_t part = (ns % second + second) % second;
    const auto seconds = static_cast<time_t>((ns - part) / second);
    tm utc{};
    if (::gmtime_r(&seconds, &utc) == nullptr) return sqlite3_result_null(to);
    char text[64];
    const std::size_t date = ::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
    const int rest =
        std::snprintf(text + date, sizeof text - date, ".%09lldZ", static_cast<long long>(part));
    result_text(to, {text, date + static_cast<std::size_t>(rest)});
}

void record_cells::fields(sqlite3_context* to, const reduce::record_view& record) {
    namespace json = trace_ring::exporter::impl;
    if (!record.has_fields()) return sqlite3_result_null(to);
    text_.clear();
    text_ += '{';
    bool first = true;
    record.for_each_field([&](const reduce::field_info& field, const reduce::field_value& value) {
        if (!first) text_ += ',';
        first = false;
        json::append_json_string(text_, field.name);
        text_ += ':';
        json::append_json_value(text_, value);
    });
    text_ += '}';
    result_text(to, text_.view());
}

void record_cells::put(sqlite3_context* to, cell what, const traced_file& in,
                       const reduce::record_view& record) {
    const auto& lane = record.lane();
    const auto unsigned_of = [to](std::uint64_t value) { result_unsigned(to, value); };
    switch (what) {
        case cell::time:
            return time(to, in, record.time());
        case cell::time_text:
            return time_text(to, in, record.time());
        case cell::since:
            if (in.time().known()) {
                sqlite3_result_int64(to, in.time().relative_ns(record.time(), near_));
            }
            return;
        case cell::ticks:
            if (in.trace().about().clock() != 0) unsigned_of(record.time());
            return;
        case cell::latest:
            if (const auto latest = record.latest()) time(to, in, *latest);
            return;
        case cell::lane:
            return unsigned_of(lane.number);
        case cell::position:
            return unsigned_of(record.position());
        case cell::thread:
            if (lane.listed || lane.thread != 0) result_bytes_or_text(to, lane.name);
            return;
        case cell::tid:
            if (lane.listed || lane.thread != 0) unsigned_of(lane.thread);
            return;
        case cell::pid:
            if (lane.pid != 0) unsigned_of(lane.pid);
            return;
        case cell::process:
            if (lane.process) unsigned_of(*lane.process);
            return;
        case cell::program:
            if (lane.process && *lane.process < in.trace().processes().size()) {
                result_bytes_or_text(to, in.trace().processes()[*lane.process].name);
            }
            return;
        case cell::depth:
            if (lane.listed || lane.thread != 0) unsigned_of(lane.depth);
            return;
        case cell::cpu:
            if (lane.cpu) unsigned_of(*lane.cpu);
            return;
        case cell::event:
            if (record.known()) result_bytes_or_text(to, record.name());
            return;
        case cell::id:
            return unsigned_of(record.id());
        case cell::span:
            if (record.begins() || record.ends()) {
                result_text(to, record.begins() ? "begin" : "end");
            }
            return;
        case cell::began_lane:
            if (const auto place = record.began()) unsigned_of(place->lane);
            return;
        case cell::began_position:
            if (const auto place = record.began()) unsigned_of(place->at);
            return;
        case cell::cut: {
            if (!record.has_fields()) return;
            text_.clear();
            record.for_each_field(
                [&](const reduce::field_info& field, const reduce::field_value& value) {
                    if (!value.cut()) return;
                    text_ += text_.view().empty() ? '[' : ',';
                    trace_ring::exporter::impl::append_json_string(text_, field.name);
                });
            if (text_.view().empty()) return;
            text_ += ']';
            return result_text(to, text_.view());
        }
        case cell::fault:
            if (!record.fault().empty()) result_text(to, record.fault());
            return;
        case cell::raw:
            if (!record.fault().empty()) {
                result_blob(to, record.payload().data(), record.payload().size());
            }
            return;
        case cell::fields:
            return fields(to, record);
        case cell::bytes:
            return unsigned_of(record.bytes());
        case cell::offset:
            return unsigned_of(record.offset());
        case cell::file:
            return result_bytes_or_text(to, in.path());
        default:
            return;
    }
}

}  // namespace trace_reduce::sql
