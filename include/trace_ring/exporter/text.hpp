// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Writes items as lines of text:
/// @code
///   2024-05-01 12:34:56.123456789 [1234 worker] order.sent id=42 price=3.14
///   2024-05-01 12:34:56.123456901 [1234 worker] request:begin url="GET /"
///   2024-05-01 12:34:56.123457388 [1234 worker+1] event#7 raw=0102030405060708
///   2024-05-01 12:34:56.123458012 [1234 worker] request:end (began at 42 of lane 5) status=200
///   2024-05-01 12:34:56.123459377 [1234 worker] query:end (duration 1.25ms)
///   -- 1234 records lost: overwritten (lane 3, from position 0)
///   -- 5 records lost in no listed lane, at an unknown time: refused
/// @endcode
/// An end says where its span began only if that is not the open span that began last in its lane,
/// and `(no results)` if the span has results in its type and ended without them. The length
/// of a span follows if it is given, with `~` before it if it is not exact. Durations have their
/// unit: `latency=12ms`.
/// `+1`: recorded inside a record that was open on the same thread. Strings are quoted; control
/// characters and bytes that are not UTF-8 appear as `\xNN`, so that no file can send commands to a
/// terminal. `"abc"...` was cut, `~` before the thread marks a time that is a lower bound,
/// addresses are hexadecimal (and, where address_names are given, have the names of their places:
/// `0x401136 <main+0x16>`), arrays are in brackets, values of enumerations are their names,
/// which are quoted if they contain a space or a quotation mark. A record without an entry in the
/// dictionary, or that contradicts it, is shown as bytes.

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <trace_ring/exporter/text/append.hpp>
#include <trace_ring/exporter/text/span_length.hpp>
#include <trace_ring/exporter/text/time_text.hpp>
#include <trace_ring/reduce/item.hpp>
#include <trace_ring/reduce/tables/timeline.hpp>

namespace trace_ring::inline v1::exporter {

/// Names for places in code, which text shows behind their addresses. Not part of a trace: who has
/// symbol tables derives from it.
class address_names {
public:
    address_names() = default;
    address_names(const address_names&) = delete;
    virtual ~address_names() = default;

    /// The name of the place at this address, in the process of the record; empty if it has
    /// none. Good until the next call.
    [[nodiscard]] virtual std::string_view name_of(const reduce::record_view& record,
                                                   std::uint64_t address) = 0;
};

/// How records are shown.
struct text_options {
    time_format time = time_format::local;  ///< how times are shown
    bool colour = false;                    ///< ANSI colours
    bool processes = false;                 ///< process ids too: `[1200/1234 worker]`
    bool entries = false;  ///< and, if ids are not unique, process numbers: `[1#0/1 worker]`
    std::string file{};    ///< if not empty, each line begins with it and a colon
    /// If not null, addresses are shown as `0x401136 <main+0x16>`; it must outlive the writer.
    address_names* names = nullptr;
};

/// Appends items as lines. It caches parts of event types: use one writer for a whole trace.
/// `text_writer lines(trace.time());` once, then `lines.append(out, *item);` for each item.
class text_writer {
public:
    /// `time` must outlive it, and may be refreshed in between.
    explicit text_writer(const reduce::timeline& time, text_options options = {})
        : time_(time, options.time), options_(std::move(options)) {
        if (options_.file.empty()) return;
        impl::append_escaped(own_, options_.file, 0);
        own_ += ": ";
        file_ = impl::piece(own_.view());
    }

    /// Appends one item and a line end. Linear in its size; the memory of the writer is reused.
    void append(std::string& out, const reduce::item& what) {
        own_.clear();
        append(own_, what);
        out += own_.view();
    }
    /// `took`: of the span that the record ends.
    void append(text_buffer& out, const reduce::item& what, const span_length* took = nullptr) {
        if (!file_.empty()) out.end_at(file_.put(out.room(file_.room())));
        std::visit([&](const auto& one) { append_item(out, one, took); }, what);
        out += '\n';
    }

    /// Appends a time alone, as the lines show it.
    void append_time(text_buffer& out, std::uint64_t ticks) {
        out.end_at(time_.put(out.room(time_.room), ticks));
    }

    /// Appends, after a lower bound of a time, how much later the record may have been written.
    void append_bound(text_buffer& out, std::uint64_t time, std::optional<std::uint64_t> latest) {
        out += latest ? " ~+" : " ~";
        if (!latest) return;
        const reduce::timeline& line = time_.line();
        if (options_.time == time_format::raw || !line.known()) {
            return impl::append_number(out, *latest - time);
        }
        const std::int64_t ns = line.relative_ns(*latest) - line.relative_ns(time);
        impl::append_seconds(out, static_cast<std::uint64_t>(std::max<std::int64_t>(ns, 0)));
    }

    /// Appends the event of a record, without its fields.
    void append_event(text_buffer& out, const reduce::record_view& record) {
        if (record.known()) {
            const impl::piece& name = prepare(record.type()).name;
            out.end_at(name.put(out.room(name.room())));
        } else {
            impl::append(out, "event#", record.id());
        }
        if (record.begins()) out += ":begin";
        if (record.ends()) out += ":end";
        if (const auto place = record.began()) {
            impl::append(out, " (began at ", place->at, " of lane ", place->lane, ')');
        }
        if (record.lacks_results()) [[unlikely]]
            out += " (no results)";
    }
    /// Appends the fields alone, each after a space; the bytes of a faulty record.
    void append_fields(text_buffer& out, const reduce::record_view& record) {
        if (!record.fault().empty()) {
            out += " raw=";
            return impl::append_hex(out, record.payload());
        }
        const impl::piece* name = prepare(record.type()).fields.data();
        record.for_each_field([&](const reduce::field_info&, const reduce::field_value& value) {
            char* at = out.room(name->room() + scalar_room);
            at = name++->put(at);
            const bool plain = value.form() == field_form::scalar &&
                               value.type() != field_type::character && !value.may_have_name() &&
                               value.unit() == nullptr;
            if (plain) at = put_scalar(at, value);
            out.end_at(at);
            if (!plain) {
                append_value(out, value, [&](const reduce::field_value& one) {
                    append_place_name(out, one, record);
                });
            }
            if (plain && options_.names != nullptr) [[unlikely]]
                append_place_name(out, value, record);
        });
    }

    /// Appends a value as the lines show it.
    static void append_value(text_buffer& out, const reduce::field_value& value) {
        append_value(out, value, [](const reduce::field_value&) {});
    }

private:
    // The parts that all records of an event share, escaped once.
    struct prepared {
        bool done = false;
        impl::piece name{};
        std::vector<impl::piece> fields{};  // " name="
    };
    static constexpr std::size_t scalar_room = impl::floating_room;

    // A live lane's entry changes in place: all that is shown of it is compared.
    struct shown_thread {
        const reduce::lane_info* of = nullptr;
        reduce::lane_info then{};
        impl::piece text{};

        [[nodiscard]] bool is(const reduce::lane_info& lane) const noexcept {
            return of == &lane && then.thread == lane.thread && then.pid == lane.pid &&
                   then.process == lane.process && then.depth == lane.depth &&
                   then.listed == lane.listed && then.name == lane.name;
        }
    };

    void append_item(text_buffer& out, const reduce::record_view& record, const span_length* took) {
        const impl::piece& thread = text_of(record.lane());
        colour(out, "\x1b[2m");
        // Asks for room once, for the parts that each record has: the pointer stays in a register.
        char* at = time_.put(out.room(time_.room + thread.room() + 2), record.time());
        if (record.interval()) [[unlikely]] {
            out.end_at(at);
            append_bound(out, record.time(), record.latest());
            at = out.room(thread.room() + 2);
        }
        *at++ = ' ';
        at = thread.put(at);
        if (options_.colour) {
            out.end_at(at);
            out += "\x1b[0m ";
            out += record.fault().empty() ? "\x1b[36m" : "\x1b[31m";
        } else {
            *at++ = ' ';
            out.end_at(at);
        }
        append_event(out, record);
        colour(out, "\x1b[0m");
        if (took != nullptr) [[unlikely]]
            append_length(out, *took);
        append_fields(out, record);
    }
    void append_length(text_buffer& out, const span_length& took) const {
        out += took.interval ? " (duration ~" : " (duration ";
        const reduce::timeline& line = time_.line();
        if (options_.time == time_format::raw || !line.known()) {
            impl::append(out, took.ticks, " ticks)");
        } else {
            impl::append_length(out, took.ns(line));
            out += ')';
        }
    }

    void append_place_name(text_buffer& out, const reduce::field_value& value,
                           const reduce::record_view& record) const {
        if (options_.names == nullptr || value.type() != field_type::address) return;
        const std::string_view name = options_.names->name_of(record, value.u64());
        if (name.empty()) return;
        out += " <";
        impl::append_escaped(out, name, 0);
        out += '>';
    }
    /// `behind` adds to each element of an array.
    template <class Behind>
    static void append_value(text_buffer& out, const reduce::field_value& value, Behind&& behind) {
        if (value.is_text()) {
            append_quoted(out, value.text());
            if (value.cut()) out += "...";
            return;
        }
        if (value.form() == field_form::scalar) return append_scalar(out, value);
        out += '[';
        for (std::size_t i = 0; i < value.size(); ++i) {
            if (i != 0) out += ' ';
            append_scalar(out, value.at(i));
            behind(value.at(i));
        }
        if (value.cut()) out += value.size() == 0 ? "..." : " ...";
        out += ']';
    }

    static void append_scalar(text_buffer& out, const reduce::field_value& value) {
        if (value.type() == field_type::character) {
            const char c = static_cast<char>(value.u64());
            out += '\'';
            impl::append_escaped(out, {&c, 1}, '\'');
            out += '\'';
            return;
        }
        if (const std::string_view name = value.name(); !name.empty()) {
            // A name that could be read as several values, or as a text, is quoted like one.
            if (name.find_first_of(" \"") != name.npos) return append_quoted(out, name);
            return impl::append_escaped(out, name, '=');
        }
        out.end_at(put_scalar(out.room(scalar_room), value));
        if (value.unit() != nullptr) out += value.unit()->suffix;
    }
    static void append_quoted(text_buffer& out, std::string_view text) {
        out += '"';
        impl::append_escaped(out, text, '"');
        out += '"';
    }
    // Puts a value other than a character to `at`, with room for `scalar_room`; returns its end.
    [[nodiscard]] static char* put_scalar(char* at, const reduce::field_value& value) noexcept {
        if (value.type() <= field_type::u64) return impl::put_number(at, value.u64());
        if (value.type() <= field_type::i64) return impl::put_number(at, value.i64());
        switch (value.type()) {
            case field_type::f32:
                return impl::put_floating(at, value.f32());
            case field_type::f64:
                return impl::put_floating(at, value.f64());
            case field_type::boolean:
                return std::copy_n(value.boolean() ? "true" : "false", value.boolean() ? 4 : 5, at);
            default:  // an address
                *at++ = '0';
                *at++ = 'x';
                return impl::put_number(at, value.u64(), 16);
        }
    }

    void append_item(text_buffer& out, const reduce::loss_item& loss, const span_length*) const {
        const bool damaged = loss.cause == loss_cause::damaged;
        colour(out, "\x1b[31m");
        out += "-- ";
        if (!damaged || loss.count != 0) {
            impl::append(out, loss.count, loss.count == 1 ? " record lost" : " records lost");
            if (loss.lane == nullptr && !damaged) out += " in no listed lane, at an unknown time";
            out += ": ";
        }
        out += to_string(loss.cause);
        if (damaged) impl::append(out, " at offset ", loss.offset);
        if (!loss.what.empty()) impl::append(out, ": ", loss.what);
        if (loss.lane != nullptr) append_place(out, *loss.lane, ", from position ", loss.at);
        colour(out, "\x1b[0m");
    }
    void append_item(text_buffer& out, const reduce::clock_jump& jump, const span_length*) {
        colour(out, "\x1b[31m");
        if (jump.lane == nullptr) {
            out += jump.anew ? "-- the clock began anew" : "-- the clock jumps";
            if (jump.step != 0) {
                out += ", and dates";
                append_by(out, static_cast<double>(jump.step) / 1e9);
            }
            out += ": between ";
            append_time(out, jump.from);
            out += " and ";
            append_time(out, jump.time);
        } else {
            out += "-- time goes back";
            const auto ticks = static_cast<double>(jump.from - jump.time);
            if (time_.line().known()) append_by(out, time_.line().ns(ticks) / 1e9);
            append_place(out, *jump.lane, ", at position ", jump.at);
        }
        colour(out, "\x1b[0m");
    }
    static void append_place(text_buffer& out, const reduce::lane_info& lane, std::string_view how,
                             position at) {
        impl::append(out, " (lane ", lane.number, how, at, ')');
    }
    static void append_by(text_buffer& out, double seconds) {
        char digits[400];
        const char* const end =
            std::to_chars(digits, digits + sizeof digits, seconds, std::chars_format::fixed, 9).ptr;
        impl::append(out, " by ", std::string_view(digits, end), " s");
    }

    /// The thread that recorded, in brackets; cached for lanes seen lately.
    [[nodiscard]] const impl::piece& text_of(const reduce::lane_info& lane) {
        shown_thread& shown = threads_[lane.number % threads_.size()];
        if (!shown.is(lane)) {
            shown.of = &lane;
            shown.then = lane;
            text_buffer text{};
            make_thread(text, lane);
            shown.text = impl::piece(text.view());
        }
        return shown.text;
    }
    void make_thread(text_buffer& out, const reduce::lane_info& lane) const {
        out += '[';
        if (!lane.listed) {
            impl::append(out, "lane ", lane.number);
        } else {
            if (options_.processes) {
                impl::append(out, lane.pid);
                if (options_.entries && lane.process) impl::append(out, '#', *lane.process);
                out += '/';
            }
            impl::append(out, lane.thread);
            if (!lane.name.empty()) {
                out += ' ';
                impl::append_escaped(out, lane.name, 0);
            }
            if (lane.depth != 0) impl::append(out, '+', lane.depth);
        }
        out += ']';
    }

    [[nodiscard, gnu::always_inline]] const prepared& prepare(const reduce::event_type& type) {
        if (type.number < prepared_.size() && prepared_[type.number].done) [[likely]] {
            return prepared_[type.number];
        }
        return prepare_anew(type);
    }
    [[nodiscard, gnu::noinline]] const prepared& prepare_anew(const reduce::event_type& type) {
        if (type.number >= prepared_.size()) prepared_.resize(type.number + 1);
        prepared& words = prepared_[type.number];
        text_buffer text;
        impl::append_escaped(text, type.name, 0);
        words.name = impl::piece(text.view());
        for (const auto& field : type.fields) {
            text.clear();
            text += ' ';
            impl::append_escaped(text, field.name, '=');
            text += '=';
            words.fields.emplace_back(text.view());
        }
        words.done = true;
        return words;
    }

    void colour(text_buffer& out, const char* code) const {
        if (options_.colour) out += code;
    }

    impl::time_text time_;
    text_options options_;
    std::vector<prepared> prepared_{};
    std::array<shown_thread, 64> threads_{};
    impl::piece file_{};
    text_buffer own_{};
};

}  // namespace trace_ring::inline v1::exporter
