// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Writes items as JSON lines: one object for each item, which is valid JSON even if the trace
/// is damaged.
/// @code
///   {"kind":"record","ticks":17,"time_ns":1714567296123456789,"lane":3,"position":42,
///    "pid":1200,"process":0,"tid":1234,"thread":"worker","depth":0,"event":"order.sent",
///    "fields":{"id":42,"price":3.14}}
///   {"kind":"loss","cause":"overwritten","count":1234,"lane":3,"position":0,"ticks":12,
///    "time_ns":...}
///   {"kind":"clock_jump","lane":3,"position":50,"from_ticks":90,"ticks":17}
///   {"kind":"clock_jump","lane":null,"from_ns":...,"step_ns":-3600000000000,"from_ticks":90,
///    "ticks":170,"time_ns":...}
/// @endcode
/// - `time_ns` is nanoseconds since 1970; it is left out if the clock is not known. `ticks` is the
///   trace's clock.
/// - `process` is the process's number in the trace's table: two may have the same pid.
/// - `span` is "begin" or "end"; `began` is the record that began the span, if the end says so;
///   `duration_ticks` and `duration_ns` are how long it took, if that is given, and
///   `duration_interval` is true if that is not exact.
/// - `cut` lists the fields that were cut.
/// - `interval` is true if the clock was not read for the record: it was written after `ticks` and,
///   if they are given, before `latest_ticks` and `latest_ns`.
/// - Integers are exact, to 64 bits: parsers that read every number as a double lose the last
///   digits beyond 2^53. Addresses are strings, "0x7f00".
/// - A value of an enumeration is its name, a string; a value without a name is a number.
/// - NaN and the infinities, which JSON lacks, are the strings "NaN", "Infinity", "-Infinity".
/// - Text that is not UTF-8 is an object with its bytes, {"hex":"ff00"}; in a name, bad bytes
///   become U+FFFD.
/// - A record whose fields cannot be read has `id`, `raw` (its payload in hex) and `fault` instead
///   of `fields`; its `event` is null if the dictionary lacks it.
/// - The lane of a loss is null if the loss concerns none; `advice` is there if more lanes or
///   sub-buffers would have prevented it, and says how many. A clock jump without a lane is one of
///   all dates: they were set some time after `from_ns`, and from `time_ns` on they are later by
///   `step_ns`; `"anew":true` if the trace's clock began anew.
/// @code
///   trace_ring::exporter::json_writer lines(trace.time());
///   std::string out;
///   for (auto cursor = trace.forward(); const auto* item = cursor.next();)
///       lines.append(out, *item);
/// @endcode

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <trace_ring/exporter/text/append.hpp>
#include <trace_ring/exporter/text/span_length.hpp>
#include <trace_ring/reduce/item.hpp>

namespace trace_ring::inline v1::exporter {

/// How whole numbers beyond 2^53 are written.
enum class wide_integers {
    numbers,  ///< exact; parsers that read every number as a double lose the last digits
    strings,  ///< exact everywhere: "9007199254740993"
};

namespace impl {

[[nodiscard]] inline bool is_utf8(std::string_view text) noexcept {
    while (!text.empty()) {
        const std::size_t length = utf8_length(text);
        if (length == 0) return false;
        text.remove_prefix(length);
    }
    return true;
}

/// Appends a JSON string. Bytes that are not UTF-8 become U+FFFD; characters that command a
/// terminal or turn the direction of text (is_command) become escapes like u009b.
inline void append_json_string(text_buffer& out, std::string_view text) {
    out += '"';
    std::size_t done = 0;
    std::size_t i = 0;
    while (i < text.size()) {
        const auto c = static_cast<unsigned char>(text[i]);
        const std::size_t length = c < 0x80 ? 1 : utf8_length(text.substr(i));
        const std::uint32_t code = length == 0 ? 0xFFFD : code_point(text.substr(i, length));
        if (length != 0 && !is_command(code) && c != '"' && c != '\\') {
            i += length;
            continue;
        }
        out += text.substr(done, i - done);
        out += '\\';
        if (c == '"' || c == '\\') {
            out += text[i];
        } else {  // all such characters are below 2^16
            out += 'u';
            append_hex_byte(out, code >> 8);
            append_hex_byte(out, code & 0xFFU);
        }
        i += length == 0 ? 1 : length;
        done = i;
    }
    out += text.substr(done);
    out += '"';
}

/// The names of events and of their fields as JSON strings, made once.
class json_names {
public:
    /// `units`: names of durations have their units, for formats that say it nowhere else.
    explicit json_names(bool units = false) noexcept : units_(units) {}
    struct words {
        std::string name{};
        std::vector<std::string> fields{};  ///< with a colon: "name":
    };
    /// `number`: of the type, where several traces are read together.
    [[nodiscard, gnu::always_inline]] const words& of(const reduce::event_type& type,
                                                      std::size_t number) {
        if (number < all_.size() && !all_[number].name.empty()) [[likely]]
            return all_[number];
        return make(type, number);
    }

private:
    [[nodiscard, gnu::noinline]] const words& make(const reduce::event_type& type,
                                                   std::size_t number) {
        if (number >= all_.size()) all_.resize(number + 1);
        words& made = all_[number];
        text_buffer text;
        append_json_string(text, type.name);
        made.name = text.view();
        for (const auto& field : type.fields) {
            text.clear();
            append_json_string(text, units_ ? field.shown_name() : field.name);
            text += ':';
            made.fields.emplace_back(text.view());
        }
        return made;
    }

    std::vector<words> all_{};  // by number of the type
    bool units_ = false;
};

template <class T>
inline void append_json_floating(text_buffer& out, T value) {
    if (std::isnan(value)) {
        out += "\"NaN\"";
    } else if (std::isinf(value)) {
        out += value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
    } else {
        append_floating(out, value);
    }
}

/// Appends a text; one that is not UTF-8 becomes {"hex":"ff00"}.
inline void append_json_text(text_buffer& out, std::string_view text) {
    if (is_utf8(text)) return append_json_string(out, text);
    out += R"({"hex":")";
    append_hex(out, std::as_bytes(std::span(text.data(), text.size())));
    out += R"("})";
}

/// Appends an integer of up to 64 bits, signed or not.
template <class T>
inline void append_json_integer(text_buffer& out, T value, wide_integers wide) {
    constexpr T most = T{1} << 53;
    bool within = value <= most;
    if constexpr (T(-1) < T(0)) within = within && value >= -most;
    const bool quoted = !within && wide == wide_integers::strings;
    if (quoted) out += '"';
    append_number(out, value);
    if (quoted) out += '"';
}

inline void append_json_scalar(text_buffer& out, const reduce::field_value& value,
                               wide_integers wide) {
    if (const std::string_view name = value.name(); !name.empty()) {
        return append_json_string(out, name);
    }
    if (value.type() <= field_type::u64) return append_json_integer(out, value.u64(), wide);
    if (value.type() <= field_type::i64) return append_json_integer(out, value.i64(), wide);
    switch (value.type()) {
        case field_type::f32:
            return append_json_floating(out, value.f32());
        case field_type::f64:
            return append_json_floating(out, value.f64());
        case field_type::boolean:
            out += value.boolean() ? "true" : "false";
            return;
        case field_type::character: {
            const char c = static_cast<char>(value.u64());
            return append_json_text(out, {&c, 1});
        }
        default:
            out += "\"0x";  // an address
            append_number(out, value.u64(), 16);
            out += '"';
    }
}

/// Appends a scalar, a string, or an array.
inline void append_json_value(text_buffer& out, const reduce::field_value& value,
                              wide_integers wide = wide_integers::numbers) {
    if (value.is_text()) return append_json_text(out, value.text());
    if (value.form() == field_form::scalar) return append_json_scalar(out, value, wide);
    out += '[';
    for (std::size_t i = 0; i < value.size(); ++i) {
        if (i != 0) out += ',';
        append_json_scalar(out, value.at(i), wide);
    }
    out += ']';
}

}  // namespace impl

/// Appends items as JSON lines. It caches parts of event types: use one writer for a whole trace.
class json_writer {
public:
    /// `time` must outlive it, and may be refreshed. `file`, if not empty, is "file" in every line.
    explicit json_writer(const reduce::timeline& time, std::string_view file = {}) : time_(&time) {
        if (file.empty()) return;
        text_buffer text;
        impl::append_json_string(text, file);
        file_ = ",\"file\":";
        file_ += text.view();
    }
    json_writer(json_writer&&) = default;
    json_writer& operator=(json_writer&&) = default;
    json_writer(const json_writer&) = delete;
    json_writer& operator=(const json_writer&) = delete;

    /// Appends one item and a line end. Linear in its size; the memory of the writer is reused.
    void append(std::string& out, const reduce::item& what) {
        own_.clear();
        append(own_, what);
        out += own_.view();
    }
    /// `took`: of the span that the record ends.
    void append(text_buffer& out, const reduce::item& what, const span_length* took = nullptr) {
        std::visit([&](const auto& one) { append_item(out, one, took); }, what);
        out += "}\n";
    }

private:
    void append_item(text_buffer& out, const reduce::record_view& record, const span_length* took) {
        impl::append(out, R"({"kind":"record")", file_);
        append_time(out, record.time());
        if (record.interval()) {
            out += R"(,"interval":true)";
            if (const auto latest = record.latest()) {
                impl::append(out, R"(,"latest_ticks":)", *latest);
                if (time_->known()) {
                    impl::append(out, R"(,"latest_ns":)", time_->realtime_ns(*latest));
                }
            }
        }
        const auto& lane = record.lane();
        impl::append(out, R"(,"lane":)", lane.number, R"(,"position":)", record.position());
        if (lane.listed) {
            impl::append(out, R"(,"pid":)", lane.pid);
            if (lane.process) impl::append(out, R"(,"process":)", *lane.process);
            impl::append(out, R"(,"tid":)", lane.thread, R"(,"thread":)");
            impl::append_json_string(out, lane.name);
            impl::append(out, R"(,"depth":)", lane.depth);
        }
        const impl::json_names::words* const words =
            record.known() ? &names_.of(record.type(), record.type().number) : nullptr;
        out += R"(,"event":)";
        out += words != nullptr ? std::string_view(words->name) : "null";
        if (record.begins()) out += R"(,"span":"begin")";
        if (record.ends()) out += R"(,"span":"end")";
        if (const auto place = record.began()) {
            impl::append(out, R"(,"began":{"lane":)", place->lane, R"(,"position":)", place->at,
                         '}');
        }
        if (took != nullptr) {
            impl::append(out, R"(,"duration_ticks":)", took->ticks);
            if (time_->known()) impl::append(out, R"(,"duration_ns":)", took->ns(*time_));
            if (took->interval) out += R"(,"duration_interval":true)";
        }
        if (record.lacks_results()) out += R"(,"results":false)";
        if (!record.fault().empty()) {
            impl::append(out, R"(,"id":)", record.id(), R"(,"raw":")");
            impl::append_hex(out, record.payload());
            out += R"(","fault":)";
            impl::append_json_string(out, record.fault());
            return;
        }
        cut_.clear();
        units_.clear();
        out += R"(,"fields":{)";
        std::size_t i = 0;
        record.for_each_field([&](const reduce::field_info&, const reduce::field_value& value) {
            const std::string_view name = words->fields[i];
            if (i++ != 0) out += ',';
            out += name;
            impl::append_json_value(out, value);
            if (value.unit() != nullptr) {
                units_ += units_.empty() ? '{' : ',';
                units_ += name;
                impl::append_json_string(units_, value.unit()->suffix);
            }
            if (!value.cut()) return;
            if (!cut_.empty()) cut_ += ',';
            cut_ += name.substr(0, name.size() - 1);
        });
        out += '}';
        if (!units_.empty()) impl::append(out, R"(,"units":)", units_.view(), '}');
        if (!cut_.empty()) impl::append(out, R"(,"cut":[)", cut_.view(), ']');
    }

    void append_item(text_buffer& out, const reduce::loss_item& loss, const span_length*) const {
        impl::append(out, R"({"kind":"loss")", file_, R"(,"cause":")", to_string(loss.cause),
                     R"(","count":)", loss.count);
        if (loss.lane != nullptr) {
            impl::append(out, R"(,"lane":)", loss.lane->number, R"(,"position":)", loss.at);
            append_time(out, loss.time);
        } else {
            out += R"(,"lane":null)";
        }
        if (loss.cause == loss_cause::damaged) {
            impl::append(out, R"(,"offset":)", loss.offset, R"(,"fault":)");
            impl::append_json_string(out, loss.what);
        } else if (!loss.what.empty()) {
            out += R"(,"advice":)";
            impl::append_json_string(out, loss.what);
        }
    }
    void append_item(text_buffer& out, const reduce::clock_jump& jump, const span_length*) const {
        impl::append(out, R"({"kind":"clock_jump")", file_);
        if (jump.lane != nullptr) {
            impl::append(out, R"(,"lane":)", jump.lane->number, R"(,"position":)", jump.at);
        } else {
            impl::append(out, R"(,"lane":null,"from_ns":)", time_->realtime_ns(jump.from),
                         R"(,"step_ns":)", jump.step);
            if (jump.anew) out += R"(,"anew":true)";
        }
        impl::append(out, R"(,"from_ticks":)", jump.from);
        append_time(out, jump.time);
    }
    void append_time(text_buffer& out, std::uint64_t ticks) const {
        impl::append(out, R"(,"ticks":)", ticks);
        if (time_->known()) impl::append(out, R"(,"time_ns":)", time_->realtime_ns(ticks));
    }

    const reduce::timeline* time_;
    std::string file_{};
    text_buffer cut_{};
    text_buffer units_{};
    text_buffer own_{};
    impl::json_names names_{};
};

}  // namespace trace_ring::inline v1::exporter
