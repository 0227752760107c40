// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Writes strings, numbers and the values of fields as JSON (RFC 8259), valid whatever the trace
/// holds. Text that is not UTF-8 is an object with its bytes, {"hex":"ff00"}. NaN and the
/// infinities, which JSON lacks, are the strings "NaN", "Infinity", "-Infinity". Addresses are
/// strings, "0x7f00", and so are the names of an enumeration's values, if they have one.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <trace_ring/exporter/text/append.hpp>
#include <trace_ring/reduce/item/record_view.hpp>

namespace trace_ring::inline v1::exporter {

/// How integers beyond 2^53, which a double cannot hold, are written.
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
/// terminal or turn the direction of text (is_command) become \u009b.
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
    struct words {
        std::string name;
        std::vector<std::string> fields;  ///< with a colon: "name":
    };
    /// `number`: of the type, where several traces are read together.
    [[nodiscard]] const words& of(const reduce::event_type& type, std::size_t number) {
        if (number >= all_.size()) all_.resize(number + 1);
        words& made = all_[number];
        if (made.name.empty()) {
            text_buffer text;
            append_json_string(text, type.name);
            made.name = text.view();
            for (const auto& field : type.fields) {
                text.clear();
                append_json_string(text, field.name);
                text += ':';
                made.fields.emplace_back(text.view());
            }
        }
        return made;
    }

private:
    std::vector<words> all_;  // by number of the type
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
    switch (value.type()) {
        case field_type::boolean:
            out += value.boolean() ? "true" : "false";
            return;
        case field_type::character: {
            const char c = static_cast<char>(value.u64());
            return append_json_text(out, {&c, 1});
        }
        case field_type::address:
            out += "\"0x";
            append_number(out, value.u64(), 16);
            out += '"';
            return;
        default:
            value.visit([&](auto of) {
                if constexpr (std::is_floating_point_v<decltype(of)>) {
                    append_json_floating(out, of);
                } else {
                    append_json_integer(out, reduce::widest<decltype(of)>{of}, wide);
                }
            });
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

}  // namespace trace_ring::inline v1::exporter
