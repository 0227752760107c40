// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Writes items as comma-separated values (RFC 4180: lines end with CR LF), one row for each item,
/// under one header row:
/// @code
///   kind,time_ns,ticks,interval,latest_ns,latest_ticks,lane,position,pid,process,tid,thread,depth,
///   event,id,span,began_lane,began_position,duration_ns,duration_ticks,duration_interval,cause,
///   count,offset,from_ticks,step_ns,fault,raw,cut,"order.sent.id","order.sent.price",more
/// @endcode
/// - `kind` is record, loss or clock_jump. The other columns are as in exporter/json.hpp, and empty
///   where they do not apply. With several files, `file` is the second column.
/// - Each field of each event type has a column, EVENT.FIELD, for all processes and files. (A
///   second field of the same name in an event: EVENT.FIELD#2; another event and field whose names
///   make the same: @2.) So filtering by `event` gives a table without holes. The columns are for
///   the types that are known when the header is written and not filtered out. The fields of types
///   that a live trace adds later are in `more`, as a JSON object.
/// - Integers are exact, floating-point numbers the shortest that read back as the same (nan, inf,
///   -inf), addresses 0x7f00, booleans true and false, arrays JSON in quotes: "[1,2]". A value of
///   an enumeration is its name, as text; a value without a name is a number.
/// - Text is always in quotes, so that "" is an empty text and an empty cell is none. No
///   spreadsheet takes it for a formula: text that begins with = + - @ ' (or their wide forms),
///   tab, CR or LF, or with hex:, has a ' in front. Bytes that are not UTF-8, or hold control
///   characters other than tab, CR and LF, or marks of direction, are hex:00ff. So, to get the text
///   back, take one ' from the front, or else decode hex:.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <trace_ring/exporter/json.hpp>
#include <trace_ring/exporter/text/span_length.hpp>
#include <trace_ring/reduce/filter.hpp>
#include <trace_ring/reduce/tables.hpp>

#include "names.hpp"

namespace trace_reduce::exporting {

struct csv_options {
    bool files = false;                 ///< adds a column with the file
    std::vector<std::string> events{};  ///< globs: only these have columns; none: all
};

namespace impl {

/// Appends text as a cell that no spreadsheet takes for a formula, and no terminal for a command.
inline void append_csv_text(text_buffer& out, std::string_view text) {
    bool plain = true;
    for (std::size_t i = 0; i < text.size() && plain;) {
        const auto c = static_cast<unsigned char>(text[i]);
        if (c >= 0x20 && c < 0x7F) {
            ++i;
            continue;
        }
        const std::size_t length = utf8_length(text.substr(i));
        plain = c == '\t' || c == '\n' || c == '\r' ||
                (length != 0 && !is_command(code_point(text.substr(i, length))));
        i += length;
    }
    if (!plain) {
        out += "hex:";
        return append_hex(out, std::as_bytes(std::span(text.data(), text.size())));
    }
    out += '"';
    constexpr std::string_view first = "=+-@'\t\r\n";
    constexpr std::string_view longer[] = {"hex:", "\xEF\xBC\x9D", "\xEF\xBC\x8B", "\xEF\xBC\x8D",
                                           "\xEF\xBC\xA0"};
    if (!text.empty() && (first.find(text[0]) != first.npos ||
                          std::any_of(std::begin(longer), std::end(longer),
                                      [text](auto each) { return text.starts_with(each); }))) {
        out += '\'';
    }
    for (std::size_t quote = 0; (quote = text.find('"')) != text.npos;) {
        out += text.substr(0, quote + 1);
        out += '"';
        text.remove_prefix(quote + 1);
    }
    out += text;
    out += '"';
}

}  // namespace impl

class csv_writer {
public:
    explicit csv_writer(csv_options options = {}) {
        wanted_.events = std::move(options.events);
        files_ = options.files;
    }

    /// Adds another trace to the output; all of them before `begin`. `in` must outlive this.
    std::size_t add(const reduce::tables& in, std::string_view name) {
        source made;
        made.in = &in;
        text_buffer text;
        impl::append_csv_text(text, name);
        made.name = text.view();
        sources_.push_back(std::move(made));
        return sources_.size() - 1;
    }
    /// The header row.
    void begin(text_buffer& out) {
        out += files_ ? "kind,file" : "kind";
        for (const std::string_view name : fixed) {
            impl::append(out, ',', name);
        }
        for (source& each : sources_) {
            for (const auto& type : each.in->events().types()) {
                if (wanted_.wants_event(type.name)) enter(out, each, type);
            }
        }
        out += ",more\r\n";
    }
    /// `took`: of the span that the record ends.
    void append(text_buffer& out, std::size_t from, const reduce::item& what,
                const span_length* took = nullptr) {
        source& its = sources_[from];
        std::visit([&](const auto& one) { append_item(out, its, one, took); }, what);
        out += "\r\n";
    }
    static void end(text_buffer&) {}

private:
    static constexpr std::string_view fixed[] = {"time_ns",
                                                 "ticks",
                                                 "interval",
                                                 "latest_ns",
                                                 "latest_ticks",
                                                 "lane",
                                                 "position",
                                                 "pid",
                                                 "process",
                                                 "tid",
                                                 "thread",
                                                 "depth",
                                                 "event",
                                                 "id",
                                                 "span",
                                                 "began_lane",
                                                 "began_position",
                                                 "duration_ns",
                                                 "duration_ticks",
                                                 "duration_interval",
                                                 "cause",
                                                 "count",
                                                 "offset",
                                                 "from_ticks",
                                                 "step_ns",
                                                 "fault",
                                                 "raw",
                                                 "cut"};

    /// The number of a fixed column; no other name compiles.
    [[nodiscard]] static consteval std::size_t cell(std::string_view name) {
        const auto* const at = std::find(std::begin(fixed), std::end(fixed), name);
        return at != std::end(fixed) ? static_cast<std::size_t>(at - fixed) : throw name;
    }

    /// The columns of an event type's fields.
    struct layout {
        bool known = false;
        std::vector<std::pair<std::size_t, std::size_t>> cells{};  // column and field, by column
    };
    struct source {
        const reduce::tables* in = nullptr;
        std::string name{};             // as a cell
        std::vector<layout> layouts{};  // by number of the type
    };

    void enter(text_buffer& out, source& its, const reduce::event_type& type) {
        if (type.number >= its.layouts.size()) its.layouts.resize(type.number + 1);
        layout& made = its.layouts[type.number];
        made.known = true;
        std::map<std::string_view, unsigned> met;
        for (std::size_t i = 0; i < type.fields.size(); ++i) {
            const std::string& field = type.fields[i].shown_name();
            const unsigned which = ++met[field];
            const auto [at, is_new] =
                columns_.emplace(std::tuple(type.name, field, which), columns_.size());
            if (is_new) {
                std::string name = type.name + '.' + field;
                if (which > 1) name += '#' + std::to_string(which);
                unsigned& taken = names_[name];
                if (++taken > 1) name += '@' + std::to_string(taken);
                out += ',';
                impl::append_csv_text(out, name);
            }
            made.cells.emplace_back(at->second, i);
        }
        std::sort(made.cells.begin(), made.cells.end());
    }

    // Cells are written from left to right, the fixed ones first; `column_` counts them.
    void row(text_buffer& out, const source& its, std::string_view kind) {
        out += kind;
        if (files_) impl::append(out, ',', its.name);
        column_ = 0;
    }
    void skip(text_buffer& out, std::size_t cells) {
        std::fill_n(out.room(cells), cells, ',');
        out.add(cells);
        column_ += cells;
    }
    /// Goes to a cell further right.
    void to(text_buffer& out, std::size_t where) { skip(out, where + 1 - column_); }
    template <class T>
    void number(text_buffer& out, std::size_t where, T value) {
        to(out, where);
        impl::append_number(out, value);
    }
    void text(text_buffer& out, std::size_t where, std::string_view value) {
        to(out, where);
        impl::append_csv_text(out, value);
    }
    void to_fields(text_buffer& out) { skip(out, std::size(fixed) - column_); }
    void to_end(text_buffer& out) { skip(out, std::size(fixed) + columns_.size() + 1 - column_); }
    void time(text_buffer& out, const source& its, std::uint64_t ticks) {
        if (its.in->time().known()) number(out, cell("time_ns"), its.in->time().realtime_ns(ticks));
        number(out, cell("ticks"), ticks);
    }

    void append_item(text_buffer& out, source& its, const reduce::record_view& record,
                     const span_length* took) {
        row(out, its, "record");
        time(out, its, record.time());
        if (record.interval()) {
            to(out, cell("interval"));
            out += "true";
            if (const auto latest = record.latest()) {
                const auto& clock = its.in->time();
                if (clock.known()) number(out, cell("latest_ns"), clock.realtime_ns(*latest));
                number(out, cell("latest_ticks"), *latest);
            }
        }
        const auto& lane = record.lane();
        number(out, cell("lane"), lane.number);
        number(out, cell("position"), record.position());
        if (lane.listed) {
            number(out, cell("pid"), lane.pid);
            if (lane.process) number(out, cell("process"), *lane.process);
            number(out, cell("tid"), lane.thread);
            text(out, cell("thread"), lane.name);
            number(out, cell("depth"), lane.depth);
        }
        if (record.known()) text(out, cell("event"), record.name());
        if (!record.fault().empty()) number(out, cell("id"), record.id());
        if (record.begins() || record.ends()) {
            to(out, cell("span"));
            out += record.begins() ? "begin" : "end";
        }
        if (const auto place = record.began()) {
            number(out, cell("began_lane"), place->lane);
            number(out, cell("began_position"), place->at);
        }
        if (took != nullptr) {
            const auto& clock = its.in->time();
            if (clock.known()) number(out, cell("duration_ns"), took->ns(clock));
            number(out, cell("duration_ticks"), took->ticks);
            if (took->interval) {
                to(out, cell("duration_interval"));
                out += "true";
            }
        }
        if (!record.fault().empty()) {
            text(out, cell("fault"), record.fault());
            to(out, cell("raw"));
            impl::append_hex(out, record.payload());
            return to_end(out);
        }
        values_.clear();
        record.for_each_field([this](const reduce::field_info&, const reduce::field_value& value) {
            values_.push_back(value);
        });
        append_cut(out, record.type());
        to_fields(out);
        const auto& type = record.type();
        const bool listed = type.number < its.layouts.size() && its.layouts[type.number].known;
        if (values_.empty()) return to_end(out);
        if (!listed) {
            to_end(out);
            return append_more(out, type);
        }
        for (const auto& [column, field] : its.layouts[type.number].cells) {
            skip(out, std::size(fixed) + column + 1 - column_);
            append_value(out, values_[field]);
        }
        to_end(out);
    }

    void append_cut(text_buffer& out, const reduce::event_type& type) {
        cell_.clear();
        for (std::size_t i = 0; i < values_.size(); ++i) {
            if (!values_[i].cut()) continue;
            cell_ += cell_.empty() ? '[' : ',';
            impl::append_json_string(cell_, type.fields[i].name);
        }
        if (cell_.empty()) return;
        cell_ += ']';
        to(out, cell("cut"));
        impl::append_csv_text(out, cell_.view());
    }
    void append_more(text_buffer& out, const reduce::event_type& type) {
        cell_.clear();
        cell_ += '{';
        for (std::size_t i = 0; i < values_.size(); ++i) {
            if (i != 0) cell_ += ',';
            impl::append_json_string(cell_, type.fields[i].shown_name());
            cell_ += ':';
            impl::append_json_value(cell_, values_[i]);
        }
        cell_ += '}';
        impl::append_csv_text(out, cell_.view());
    }
    void append_value(text_buffer& out, const reduce::field_value& value) {
        if (value.is_text()) return impl::append_csv_text(out, value.text());
        const bool alone = value.form() == field_form::scalar;
        if (const std::string_view name = value.name(); alone && !name.empty()) {
            return impl::append_csv_text(out, name);
        }
        if (!alone) {
            cell_.clear();
            impl::append_json_value(cell_, value);
            return impl::append_csv_text(out, cell_.view());
        }
        switch (value.type()) {
            case field_type::f32:
                return impl::append_floating(out, value.f32());
            case field_type::f64:
                return impl::append_floating(out, value.f64());
            case field_type::address:
                out += "0x";
                return impl::append_number(out, value.u64(), 16);
            case field_type::character: {
                const char c = static_cast<char>(value.u64());
                return impl::append_csv_text(out, {&c, 1});
            }
            default:  // as in JSON
                return impl::append_json_scalar(out, value, wide_integers::numbers);
        }
    }

    void append_item(text_buffer& out, const source& its, const reduce::loss_item& loss,
                     const span_length*) {
        row(out, its, "loss");
        if (loss.lane != nullptr) {
            time(out, its, loss.time);
            number(out, cell("lane"), loss.lane->number);
            number(out, cell("position"), loss.at);
        }
        text(out, cell("cause"), to_string(loss.cause));
        number(out, cell("count"), loss.count);
        if (loss.cause == loss_cause::damaged) {
            number(out, cell("offset"), loss.offset);
            text(out, cell("fault"), loss.what);
        }
        to_end(out);
    }
    void append_item(text_buffer& out, const source& its, const reduce::clock_jump& jump,
                     const span_length*) {
        row(out, its, "clock_jump");
        time(out, its, jump.time);
        if (jump.lane != nullptr) {
            number(out, cell("lane"), jump.lane->number);
            number(out, cell("position"), jump.at);
        }
        number(out, cell("from_ticks"), jump.from);
        if (jump.lane == nullptr) number(out, cell("step_ns"), jump.step);
        to_end(out);
    }

    reduce::filter wanted_{};
    bool files_ = false;
    std::vector<source> sources_{};
    std::map<std::tuple<std::string, std::string, unsigned>, std::size_t> columns_{};
    std::map<std::string, unsigned> names_{};  // names of columns, and how often each came
    std::size_t column_ = 0;                   // cells of the row that were written or left empty
    std::vector<reduce::field_value> values_{};
    text_buffer cell_{};
};

}  // namespace trace_reduce::exporting
