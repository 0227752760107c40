// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// One column of a block in ClickHouse's Native format, which stores a block column by column:
/// https://clickhouse.com/docs/interfaces/formats/Native.
/// - Numbers are little-endian, in a row.
/// - A text has its length before it (LEB128).
/// - A Nullable column has a byte for each row first, 1 for null, then the values; those of nulls
///   are 0.
/// - An Array column has the end of each row's elements first (64 bits, counted from the block's
///   first element), then the elements of all rows.
/// Rows that are left out have the type's default: 0, the empty text, null, no elements.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <protobuf.hpp>
#include <trace_ring/exporter/text/append.hpp>

namespace clickhouse {

using trace_ring::exporter::text_buffer;

/// A type of columns.
struct column_type {
    enum class form : std::uint8_t { plain, nullable, array };

    std::string name{};     ///< of the values or elements: UInt32, String
    std::size_t width = 0;  ///< of one in bytes; 0: a text
    form is = form::plain;

    /// As ClickHouse writes it: Nullable(UInt32).
    [[nodiscard]] std::string text() const {
        return is == form::plain      ? name
               : is == form::nullable ? "Nullable(" + name + ")"
                                      : "Array(" + name + ")";
    }
    friend bool operator==(const column_type&, const column_type&) = default;
};

inline void append_text(text_buffer& out, std::string_view text) {
    protobuf::encoding::varint(out, text.size());
    out += text;
}

/// The values of one column. Rows are numbered from 0 and are set in ascending order, each at most
/// once, by one of the functions that take a row.
class column {
public:
    column(std::string name, column_type type) : name_(std::move(name)), type_(std::move(type)) {}

    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    void rename(std::string name) { name_ = std::move(name); }
    [[nodiscard]] const column_type& type() const noexcept { return type_; }
    /// No row was set.
    [[nodiscard]] bool is_default() const noexcept { return rows_ == 0; }
    [[nodiscard]] std::size_t bytes() const noexcept {
        return values_.size() + nulls_.size() + ends_.size();
    }

    /// A number of the type's width.
    template <class T>
    requires(!std::convertible_to<T, std::string_view>) void set(std::size_t row, T value) {
        static_assert(std::is_trivially_copyable_v<T>);
        start(row);
        std::memcpy(values_.room(sizeof value), &value, sizeof value);
        values_.add(sizeof value);
        if (type_.is == column_type::form::nullable) nulls_ += '\0';
        ++rows_;
    }
    template <std::size_t Width>
    void set_bytes(std::size_t row, const void* value) {
        struct bytes {
            unsigned char all[Width];
        } copy;
        std::memcpy(&copy, value, Width);
        set(row, copy);
    }
    void set(std::size_t row, std::string_view text) {
        start(row);
        append_text(values_, text);
        if (type_.is == column_type::form::nullable) nulls_ += '\0';
        ++rows_;
    }
    /// Of an array: `add_element` calls come next.
    void start_array(std::size_t row) {
        start(row);
        append_end();
        ++rows_;
    }
    template <class T>
    requires(!std::convertible_to<T, std::string_view>) void add_element(T value) {
        static_assert(std::is_trivially_copyable_v<T>);
        std::memcpy(values_.room(sizeof value), &value, sizeof value);
        values_.add(sizeof value);
        raise_end();
    }
    void add_element(std::string_view text) {
        append_text(values_, text);
        raise_end();
    }
    /// Elements in a row, as numbers of the type's width.
    void add_elements(const void* first, std::size_t count) {
        if (count == 0) return;
        values_ += {static_cast<const char*>(first), count * type_.width};
        elements_ += count - 1;
        raise_end();
    }

    /// Writes the column of a block of `rows` rows.
    void write(text_buffer& out, std::size_t rows) {
        start(rows);
        append_text(out, name_);
        append_text(out, type_.text());
        out += ends_.view();
        out += nulls_.view();
        out += values_.view();
    }
    void clear() noexcept {
        values_.clear();
        nulls_.clear();
        ends_.clear();
        rows_ = 0;
        elements_ = 0;
    }

private:
    /// Fills the rows up to this one with defaults.
    [[gnu::always_inline]] void start(std::size_t row) {
        if (rows_ != row) [[unlikely]]
            fill(row);
    }
    [[gnu::noinline]] void fill(std::size_t row) {
        const std::size_t count = row - rows_;
        rows_ = row;
        if (type_.is == column_type::form::array) {
            for (std::size_t i = 0; i < count; ++i) append_end();
            return;
        }
        const std::size_t bytes = count * (type_.width != 0 ? type_.width : 1);
        std::memset(values_.room(bytes), 0, bytes);
        values_.add(bytes);
        if (type_.is == column_type::form::plain) return;
        std::memset(nulls_.room(count), 1, count);
        nulls_.add(count);
    }
    void append_end() {
        std::memcpy(ends_.room(sizeof elements_), &elements_, sizeof elements_);
        ends_.add(sizeof elements_);
    }
    void raise_end() {
        ++elements_;
        std::memcpy(ends_.at(ends_.size() - sizeof elements_), &elements_, sizeof elements_);
    }

    std::string name_;
    column_type type_;
    text_buffer values_;
    text_buffer nulls_;
    text_buffer ends_;
    std::size_t rows_ = 0;
    std::uint64_t elements_ = 0;
};

}  // namespace clickhouse
