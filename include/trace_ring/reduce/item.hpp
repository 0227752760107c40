// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What reading a trace yields: records, and what stands in the place of those that are not there.
/// Items are views: they are good until the cursor that gave them is asked for the next.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

#include <trace_ring/loss.hpp>
#include <trace_ring/position.hpp>
#include <trace_ring/record/field.hpp>
#include <trace_ring/reduce/tables/dictionary.hpp>
#include <trace_ring/reduce/tables/writers.hpp>
#include <trace_ring/ring/sub_buffer.hpp>

namespace trace_ring::inline v1::reduce {

/// The value of one field: elements of one type in a row, one if it is a scalar. A value that is
/// not there (no such field, or the record is faulty) is false and has no elements.
class field_value {
public:
    field_value() = default;
    field_value(const field_info& field, std::span<const std::byte> data, bool cut) noexcept
        : data_(data.data()),
          size_(static_cast<std::uint32_t>(data.size() / size_of(field.type))),
          type_(field.type),
          form_(field.form),
          cut_(cut) {}

    [[nodiscard]] explicit operator bool() const noexcept { return data_ != nullptr; }
    [[nodiscard]] field_type type() const noexcept { return type_; }
    [[nodiscard]] field_form form() const noexcept { return form_; }
    /// Number of elements.
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    /// True if it was longer than the record had room for.
    [[nodiscard]] bool cut() const noexcept { return cut_; }
    /// True for strings and arrays of characters.
    [[nodiscard]] bool is_text() const noexcept {
        return type_ == field_type::character && form_ != field_form::scalar;
    }

    /// Element `i` as a scalar; false if there is none.
    [[nodiscard]] field_value at(std::size_t i) const noexcept {
        field_value one;
        if (i >= size_) return one;
        one.data_ = data_ + i * size_of(type_);
        one.size_ = 1;
        one.type_ = type_;
        return one;
    }

    /// The first element as a number of another type, converted as a cast does (a floating-point
    /// number that does not fit: the nearest that does; NaN: 0); 0 if there is none.
    [[nodiscard]] std::uint64_t u64() const noexcept {
        if (floating()) {
            const double value = f64();
            return value > 0 ? (value < 0x1p64 ? static_cast<std::uint64_t>(value) : ~0ULL) : 0;
        }
        return static_cast<std::uint64_t>(i64());
    }
    [[nodiscard]] std::int64_t i64() const noexcept {
        if (size_ == 0) return 0;
        switch (type_) {
            case field_type::u8:
                return get<std::uint8_t>();
            case field_type::u16:
                return get<std::uint16_t>();
            case field_type::u32:
                return get<std::uint32_t>();
            case field_type::u64:
            case field_type::address:
                return static_cast<std::int64_t>(get<std::uint64_t>());
            case field_type::i8:
                return get<std::int8_t>();
            case field_type::i16:
                return get<std::int16_t>();
            case field_type::i32:
                return get<std::int32_t>();
            case field_type::i64:
                return get<std::int64_t>();
            case field_type::boolean:
                return get<std::uint8_t>() != 0;
            case field_type::character:
                return get<std::uint8_t>();
            case field_type::f32:
            case field_type::f64:
                break;
        }
        const double value = f64();
        if (value >= 0x1p63) return INT64_MAX;
        if (value <= -0x1p63) return INT64_MIN;
        return value == value ? static_cast<std::int64_t>(value) : 0;
    }
    [[nodiscard]] double f64() const noexcept {
        if (size_ == 0) return 0;
        if (type_ == field_type::f32) return static_cast<double>(get<float>());
        if (type_ == field_type::f64) return get<double>();
        if (type_ == field_type::u64 || type_ == field_type::address) {
            return static_cast<double>(get<std::uint64_t>());
        }
        return static_cast<double>(i64());
    }
    [[nodiscard]] float f32() const noexcept {
        return type_ == field_type::f32 && size_ != 0 ? get<float>() : static_cast<float>(f64());
    }
    [[nodiscard]] bool boolean() const noexcept { return floating() ? f64() != 0 : i64() != 0; }
    /// Characters: the bytes as they are, but for the zeros that fill a fixed array up. Empty for
    /// other types.
    [[nodiscard]] std::string_view text() const noexcept {
        if (type_ != field_type::character) return {};
        std::string_view all{reinterpret_cast<const char*>(data_), size_};
        if (form_ == field_form::array) {
            while (!all.empty() && all.back() == '\0') all.remove_suffix(1);
        }
        return all;
    }

private:
    [[nodiscard]] bool floating() const noexcept {
        return type_ == field_type::f32 || type_ == field_type::f64;
    }
    template <class T>
    [[nodiscard]] T get() const noexcept {
        T value;
        std::memcpy(&value, data_, sizeof(T));
        return value;
    }

    const std::byte* data_ = nullptr;
    std::uint32_t size_ = 0;
    field_type type_ = field_type::u8;
    field_form form_ = field_form::scalar;
    bool cut_ = false;
};

/// One record.
class record_view {
public:
    /// `words` is the record with its header; `type` null if the dictionary has none for it.
    record_view(std::span<const std::uint64_t> words, std::uint64_t time, position at,
                const lane_info& lane, const event_type* type, std::uint64_t offset,
                std::uint64_t latest) noexcept
        : words_(words),
          time_(time),
          latest_(latest),
          at_(at),
          lane_(&lane),
          type_(type),
          offset_(offset) {
        if (type_ != nullptr) fault_ = check();
    }

    /// Ticks of the trace's clock; `trace_file::time()` tells what they are worth.
    [[nodiscard]] std::uint64_t time() const noexcept { return time_; }
    /// Its position in the lane, from 0.
    [[nodiscard]] trace_ring::position position() const noexcept { return at_; }
    [[nodiscard]] const lane_info& lane() const noexcept { return *lane_; }
    /// The offset in the file at which it lay when it was read.
    [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }

    [[nodiscard]] std::uint16_t id() const noexcept { return record_word::id(word()); }
    /// True if the dictionary has its type.
    [[nodiscard]] bool known() const noexcept { return type_ != nullptr; }
    /// Its type; one without a name and fields if it is not known.
    [[nodiscard]] const event_type& type() const noexcept {
        static const event_type unknown;
        return type_ != nullptr ? *type_ : unknown;
    }
    [[nodiscard]] std::string_view name() const noexcept { return type().name; }

    [[nodiscard]] bool begins() const noexcept { return flag(record_word::begin); }
    [[nodiscard]] bool ends() const noexcept { return flag(record_word::end); }
    /// Some field was cut.
    [[nodiscard]] bool cut() const noexcept { return flag(record_word::cut); }
    /// The time is a lower bound: the clock was not read for this record (clock::sampled).
    [[nodiscard]] bool interval() const noexcept { return flag(record_word::interval); }
    /// The upper bound then, which is the next reading of the clock in the lane; nothing if there
    /// was none yet. Of other records, their time.
    [[nodiscard]] std::optional<std::uint64_t> latest() const noexcept {
        if (latest_ == ~std::uint64_t{0}) return std::nullopt;
        return latest_;
    }

    /// Bytes with the header.
    [[nodiscard]] std::size_t bytes() const noexcept { return words_.size() * 8; }
    [[nodiscard]] std::span<const std::byte> payload() const noexcept {
        return std::as_bytes(words_.subspan(1));
    }

    /// Why its fields cannot be told; empty if they can. `payload` is what there is then.
    [[nodiscard]] std::string_view fault() const noexcept {
        return type_ == nullptr ? "a record of an event that the dictionary lacks" : fault_;
    }

    /// False if it is faulty, or the end of a span, which bears the fields only if they were given.
    [[nodiscard]] bool has_fields() const noexcept { return fault().empty() && !bare_end(); }
    /// Field `i`, in the order declared. Constant time, but for variable fields, which lie behind
    /// each other.
    [[nodiscard]] field_value field(std::size_t i) const noexcept {
        if (!has_fields() || i >= type_->fields.size()) return {};
        const auto& wanted = type_->fields[i];
        if (!wanted.variable()) return fixed(wanted);
        std::size_t at = type_->fixed_bytes;
        for (std::size_t before = 0; before < i; ++before) {
            if (type_->fields[before].variable()) (void)next_variable(type_->fields[before], at);
        }
        return next_variable(wanted, at);
    }
    /// The field of that name. Linear in the fields: `type().find` once, then by number, is faster.
    [[nodiscard]] field_value field(std::string_view name) const noexcept {
        return field(type().find(name));
    }
    /// Calls `visit(const field_info&, field_value)` for every field, in one pass.
    template <class Visit>
    void for_each_field(Visit&& visit) const {
        if (!has_fields()) return;
        std::size_t at = type_->fixed_bytes;
        for (const auto& field : type_->fields) {
            visit(field, field.variable() ? next_variable(field, at) : fixed(field));
        }
    }

private:
    [[nodiscard]] std::uint32_t word() const noexcept {
        return static_cast<std::uint32_t>(words_[0] >> 32);
    }
    [[nodiscard]] bool flag(record_word::flag which) const noexcept {
        return (record_word::flags(word()) & which) != 0;
    }
    [[nodiscard]] std::uint16_t length_word(const field_info& field) const noexcept {
        std::uint16_t value;
        std::memcpy(&value, payload().data() + field.offset, 2);
        return value;
    }
    [[nodiscard]] field_value fixed(const field_info& field) const noexcept {
        return {field, payload().subspan(field.offset, size_of(field.type) * field.count), false};
    }
    // Checked when the record was made: `at` is where the variable data so far ended.
    [[nodiscard]] field_value next_variable(const field_info& field,
                                            std::size_t& at) const noexcept {
        const std::uint16_t word = length_word(field);
        const std::size_t length = word & variable_length_mask;
        const std::size_t from = (at + 7) / 8 * 8;
        at = from + length;
        if (length == 0) return {field, payload().first(0), (word & variable_cut_bit) != 0};
        return {field, payload().subspan(from, length), (word & variable_cut_bit) != 0};
    }

    [[nodiscard]] bool bare_end() const noexcept { return ends() && words_.size() == 1; }
    [[nodiscard]] std::string_view check() const noexcept {
        if (bare_end()) return {};
        const std::size_t there = payload().size();
        if (type_->fixed_bytes > there) return "a record shorter than its event's fields";
        if (!type_->variable) return {};
        std::size_t at = type_->fixed_bytes;
        for (const auto& field : type_->fields) {
            if (!field.variable()) continue;
            const std::size_t length = length_word(field) & variable_length_mask;
            if (length % size_of(field.type) != 0) return "a field that ends inside an element";
            const std::size_t from = (at + 7) / 8 * 8;
            at = from + length;
            if (length != 0 && at > there) return "a field longer than its record";
        }
        return {};
    }

    std::span<const std::uint64_t> words_;
    std::uint64_t time_ = 0;
    std::uint64_t latest_ = 0;
    trace_ring::position at_ = 0;
    const lane_info* lane_ = nullptr;
    const event_type* type_ = nullptr;
    std::uint64_t offset_ = 0;
    std::string_view fault_;
};

/// Records that are not there, in the place where they would be.
struct loss_item {
    loss_cause cause = loss_cause::overwritten;
    std::uint64_t count = 0;  ///< 0: damaged, and not known how many
    position at = 0;          ///< in the lane, of the first that is lost, or of the next record
    const lane_info* lane = nullptr;  ///< null: lost before they had a lane, or with it
    std::uint64_t time = 0;           ///< where it stands among the others: not before this
    std::uint64_t offset = 0;         ///< damaged: where in the file
    std::string_view what;            ///< damaged: what is wrong there
};

/// A lane's time goes back: the clock was set back or stopped, or the file is damaged. The records
/// stay in the order in which they were written.
struct clock_jump {
    const lane_info* lane = nullptr;
    position at = 0;         ///< of the record that is earlier than the one before it
    std::uint64_t from = 0;  ///< the time of the one before
    std::uint64_t time = 0;  ///< its own
    std::uint64_t offset = 0;
};

using item = std::variant<record_view, loss_item, clock_jump>;

[[nodiscard]] inline std::uint64_t time_of(const item& what) noexcept {
    if (const auto* record = std::get_if<record_view>(&what)) return record->time();
    if (const auto* loss = std::get_if<loss_item>(&what)) return loss->time;
    return std::get<clock_jump>(what).time;
}

}  // namespace trace_ring::inline v1::reduce
