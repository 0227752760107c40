// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The layout of items in a page: blocks of columns, which the page uses directly as arrays. It
/// decodes values when they are shown. A block is, in base64,
/// - six 32-bit numbers: items, and the bytes of each of the five columns that follow;
/// - of each item, as variable-length numbers: its time as a difference to the one before, who
///   recorded it, its class, how many bytes its values have; then all values.
/// A variable-length number has 7 bits a byte, the lowest first, the top bit set in all but the
/// last; one with a sign is 2n, or -2n-1 if it is negative.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include <trace_ring/exporter/text/append.hpp>
#include <trace_ring/record/field.hpp>
#include <trace_ring/reduce/item/record_view.hpp>

namespace trace_reduce::impl {

namespace reduce = trace_ring::reduce;
using trace_ring::field_form;
using trace_ring::field_type;
using trace_ring::exporter::text_buffer;

inline void append_varint(text_buffer& out, std::uint64_t value) {
    for (; value > 127; value >>= 7) out += static_cast<char>(value | 128);
    out += static_cast<char>(value);
}
[[nodiscard]] constexpr std::uint64_t zigzag(std::int64_t value) noexcept {
    const std::uint64_t doubled = static_cast<std::uint64_t>(value) << 1;
    return value < 0 ? ~doubled : doubled;
}
inline void append_sized(text_buffer& out, std::string_view bytes) {
    append_varint(out, bytes.size());
    out += bytes;
}

/// Goes on where the last piece ended, so that a text may come in pieces; `end` pads it.
class base64_text {
public:
    explicit base64_text(text_buffer& out) : out_(&out) {}
    void append(std::string_view bytes) {
        while (!bytes.empty() && pending_ != 0) take(bytes);
        char* at = out_->room(bytes.size() / 3 * 4);
        out_->add(bytes.size() / 3 * 4);
        for (; bytes.size() >= 3; bytes.remove_prefix(3), at += 4) {
            const auto byte = [&bytes](std::size_t i) {
                return std::uint32_t{static_cast<unsigned char>(bytes[i])};
            };
            const std::uint32_t bits = byte(0) << 16 | byte(1) << 8 | byte(2);
            for (unsigned i = 0; i < 4; ++i) at[i] = digits[bits >> (18 - 6 * i) & 63];
        }
        while (!bytes.empty()) take(bytes);
    }
    void end() {
        if (pending_ == 0) return;
        const unsigned digits_there = pending_ + 1;
        while (pending_ != 0) add(0);
        char* const last = out_->room(0) - (4 - digits_there);
        std::fill_n(last, 4 - digits_there, '=');
    }

private:
    static constexpr char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    void take(std::string_view& bytes) {
        add(static_cast<unsigned char>(bytes.front()));
        bytes.remove_prefix(1);
    }
    void add(std::uint32_t byte) {
        bits_ = bits_ << 8 | byte;
        if (++pending_ != 3) return;
        for (unsigned i = 0; i < 4; ++i) *out_ += digits[bits_ >> (18 - 6 * i) & 63];
        pending_ = 0;
        bits_ = 0;
    }

    text_buffer* out_;
    std::uint32_t bits_ = 0;
    unsigned pending_ = 0;
};

/// The block that is being filled.
class html_columns {
public:
    [[nodiscard]] bool empty() const noexcept { return items_ == 0; }
    [[nodiscard]] bool full() const noexcept {
        return items_ >= 65536 || values_.size() >= (std::size_t{1} << 20);
    }
    /// `later` than the item before. Its values are what has been added to `values` since.
    void add(std::int64_t later, std::uint32_t who, std::uint32_t what) {
        ++items_;
        append_varint(columns_[0], zigzag(later));
        append_varint(columns_[1], who);
        append_varint(columns_[2], what);
        append_varint(columns_[3], values_.size() - told_);
        told_ = values_.size();
    }
    [[nodiscard]] text_buffer& values() noexcept { return values_; }

    /// Appends the block, and begins the next one.
    void close(text_buffer& out) {
        std::array<std::uint32_t, 6> head{items_};
        for (std::size_t i = 0; i < columns_.size(); ++i) {
            head[i + 1] = static_cast<std::uint32_t>(columns_[i].size());
        }
        head[5] = static_cast<std::uint32_t>(values_.size());
        char bytes[sizeof head];
        std::memcpy(bytes, head.data(), sizeof head);
        base64_text text(out);
        text.append({bytes, sizeof bytes});
        for (auto& column : columns_) {
            text.append(column.view());
            column.clear();
        }
        text.append(values_.view());
        text.end();
        values_.clear();
        told_ = 0;
        items_ = 0;
    }

private:
    std::array<text_buffer, 4> columns_;
    text_buffer values_;
    std::size_t told_ = 0;
    std::uint32_t items_ = 0;
};

inline void append_html_scalar(text_buffer& out, const reduce::field_value& value) {
    switch (value.type()) {
        case field_type::u8:
        case field_type::u16:
        case field_type::u32:
        case field_type::u64:
        case field_type::boolean:
        case field_type::character:
        case field_type::address:
            return append_varint(out, value.u64());
        case field_type::i8:
        case field_type::i16:
        case field_type::i32:
        case field_type::i64:
            return append_varint(out, zigzag(value.i64()));
        case field_type::f32: {
            const float number = value.f32();
            std::memcpy(out.room(sizeof number), &number, sizeof number);
            return out.add(sizeof number);
        }
        case field_type::f64: {
            const double number = value.f64();
            std::memcpy(out.room(sizeof number), &number, sizeof number);
            return out.add(sizeof number);
        }
    }
}

/// A text is its bytes, other variable fields are their elements; the number of
/// either precedes them, doubled, and one more if it was cut. Fixed arrays that are no text have no
/// number.
inline void append_html_value(text_buffer& out, const reduce::field_value& value) {
    if (value.is_text()) {
        append_varint(out, value.text().size() * 2 + (value.cut() ? 1 : 0));
        out += value.text();
        return;
    }
    if (value.form() == field_form::variable) {
        append_varint(out, value.size() * 2 + (value.cut() ? 1 : 0));
    }
    for (std::size_t i = 0; i < value.size(); ++i) append_html_scalar(out, value.at(i));
}

}  // namespace trace_reduce::impl
