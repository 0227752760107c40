// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Attributes of a message: names with values.
///
/// - An integer is an integer. One above 2^63 - 1, which the format lacks, is a string of digits.
/// - A floating-point number is a double, also NaN and the infinities; a boolean is a boolean.
/// - An address is a string, 0x7f00, as in text and JSON.
/// - Text and characters are strings; if they are not UTF-8 they are bytes.
/// - The value of an enumeration is its name; bytes in it that are not UTF-8 become U+FFFD. If it
///   has no name it is its number.
/// - An array is an array.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <trace_ring/exporter/json.hpp>
#include <trace_ring/reduce/item/record_view.hpp>

#include "../protobuf.hpp"
#include "numbers.hpp"

namespace otlp {

namespace reduce = trace_ring::reduce;
using trace_ring::exporter::text_buffer;
using proto = protobuf::encoding;

/// Appends values, which are messages of type AnyValue, without their keys.
struct any_value {
    static void append(text_buffer& out, bool value) {
        proto::number(out, is::boolean, value ? 1 : 0);
    }
    static void append(text_buffer& out, std::int64_t value) {
        proto::number(out, is::integer, static_cast<std::uint64_t>(value));
    }
    static void append(text_buffer& out, std::uint64_t value) {
        if (value >> 63 == 0) return proto::number(out, is::integer, value);
        proto::message(out, is::string,
                       [&] { trace_ring::exporter::impl::append_number(out, value); });
    }
    static void append(text_buffer& out, std::string_view text) {
        const bool is_text = trace_ring::exporter::impl::is_utf8(text);
        proto::bytes(out, is_text ? is::string : is::bytes, text);
    }
    static void append(text_buffer& out, std::span<const std::byte> bytes) {
        proto::bytes(out, is::bytes, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    }
    static void append(text_buffer& out, const reduce::field_value& value) {
        if (value.is_text()) return append(out, value.text());
        if (value.form() == trace_ring::field_form::scalar) return append_scalar(out, value);
        append_array(out, value.size(), [&](std::size_t i) { append_scalar(out, value.at(i)); });
    }
    /// `element(i)` appends each value.
    template <class Element>
    static void append_array(text_buffer& out, std::size_t size, Element&& element) {
        proto::message(out, is::array, [&] {
            for (std::size_t i = 0; i < size; ++i) {
                proto::message(out, is::elements, [&] { element(i); });
            }
        });
    }

private:
    using is = numbers::any_value;
    using type = trace_ring::field_type;

    static void append_scalar(text_buffer& out, const reduce::field_value& value) {
        if (const std::string_view name = value.name(); !name.empty()) {
            return proto::text(out, is::string, name);
        }
        if (value.type() <= type::u64) return append(out, value.u64());
        if (value.type() <= type::i64) return append(out, value.i64());
        switch (value.type()) {
            case type::boolean:
                return append(out, value.boolean());
            case type::character: {
                const char c = static_cast<char>(value.u64());
                return append(out, std::string_view(&c, 1));
            }
            case type::address:
                return proto::message(out, is::string, [&] {
                    out += "0x";
                    trace_ring::exporter::impl::append_number(out, value.u64(), 16);
                });
            default:
                return proto::real(out, is::real, value.f64());
        }
    }
};

/// Appends attributes to a message in which they have the field number `in`.
class attributes {
public:
    attributes(text_buffer& out, numbers::number in) noexcept : out_(out), in_(in) {}

    /// `key`: UTF-8, and in no other attribute of the message.
    template <class Value>
    void add(std::string_view key, const Value& value) {
        add_with(key, [&] { any_value::append(out_, value); });
    }
    /// `body()` appends the value.
    template <class Body>
    void add_with(std::string_view key, Body&& body) {
        proto::message(out_, in_, [&] {
            proto::bytes(out_, numbers::key_value::key, key);
            proto::message(out_, numbers::key_value::value, body);
        });
    }
    [[nodiscard]] text_buffer& out() noexcept { return out_; }

private:
    text_buffer& out_;
    numbers::number in_;
};

}  // namespace otlp
