// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// One record, and its fields. Properties that records of one kind share (their event, whether
/// their fields can be read) are computed once for many; those of a single record (its time, its
/// values) on each call.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include <trace_ring/reduce/tables/dictionary.hpp>

namespace trace_ring::inline v1::reduce {

/// The value of one field: elements of one type in a row, one for a scalar. A value that does not
/// exist (no such field, or a faulty record) is false and has no elements.
class field_value {
public:
    field_value() = default;
    /// `elements` elements, the first at `data`.
    field_value(const field_info& field, const std::byte* data, std::size_t elements,
                bool cut = false) noexcept
        : data_(data),
          names_(field.values.get()),
          unit_(field.unit.get()),
          size_(static_cast<std::uint32_t>(elements)),
          type_(field.type),
          form_(field.form),
          cut_(cut) {}

    /// False for a field that the record does not have.
    [[nodiscard]] explicit operator bool() const noexcept { return data_ != nullptr; }
    [[nodiscard]] field_type type() const noexcept { return type_; }  ///< the type of its elements
    /// One value, an array, or a text.
    [[nodiscard]] field_form form() const noexcept { return form_; }
    /// Number of elements.
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    /// True if the value was cut, as the record had no room for all of it.
    [[nodiscard]] bool cut() const noexcept { return cut_; }
    /// True for strings and arrays of characters.
    [[nodiscard]] bool is_text() const noexcept {
        return type_ == field_type::character && form_ != field_form::scalar;
    }

    /// The name of the first element, a value of an enumeration: any bytes. Empty if it has no
    /// name. Logarithmic in the enumeration's values.
    [[nodiscard]] std::string_view name() const noexcept {
        return names_ == nullptr || size_ == 0 ? std::string_view() : names_->find(u64());
    }
    /// Whether some values of its type have names.
    [[nodiscard]] bool may_have_name() const noexcept { return names_ != nullptr; }
    /// The unit of its elements, if they are durations; null: they have none.
    [[nodiscard]] const duration_unit* unit() const noexcept { return unit_; }
    /// The same value without names: a number.
    [[nodiscard]] field_value unnamed() const noexcept {
        field_value same = *this;
        same.names_ = nullptr;
        return same;
    }

    /// Element `i` as a scalar; false if there is none.
    [[nodiscard]] field_value at(std::size_t i) const noexcept {
        field_value one;
        if (i >= size_) return one;
        one.data_ = data_ + i * size_of(type_);
        one.names_ = names_;
        one.unit_ = unit_;
        one.size_ = 1;
        one.type_ = type_;
        return one;
    }

    /// Calls `visit` with the first element, which must exist, as in `visit_type`.
    template <class Visit>
    auto visit(Visit&& visit) const {
        return visit_type(type_, [&](auto zero) {
            const auto value = get<decltype(zero)>();
            return visit(type_ == field_type::boolean ? decltype(zero)(value != 0) : value);
        });
    }
    /// The first element as a number of another type, converted as a cast does, but a
    /// floating-point number out of range becomes the nearest in range, NaN 0; 0 if it is empty.
    [[nodiscard, gnu::always_inline]] std::uint64_t u64() const noexcept {
        if (type_ == field_type::u64 && size_ != 0) [[likely]]
            return get<std::uint64_t>();
        return converted(data_, size_, type_);
    }
    /// The value as a signed integer.
    [[nodiscard]] std::int64_t i64() const noexcept { return as<std::int64_t>(); }
    [[nodiscard]] double f64() const noexcept { return as<double>(); }  ///< the value as a double
    /// The value of a field of type f32.
    [[nodiscard]] float f32() const noexcept {
        return type_ == field_type::f32 && size_ != 0 ? get<float>() : static_cast<float>(f64());
    }
    /// The value of a field of type boolean.
    [[nodiscard]] bool boolean() const noexcept {
        return size_ != 0 && visit([](auto value) { return value != 0; });
    }
    /// The bytes of all elements, as the record has them.
    [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
        return {data_, size_ * size_of(type_)};
    }
    /// Characters: the unchanged bytes, without zeros that fill a fixed array. Other types: empty.
    [[nodiscard]] std::string_view text() const noexcept {
        if (type_ != field_type::character) return {};
        std::string_view all{reinterpret_cast<const char*>(data_), size_};
        if (form_ == field_form::array) {
            while (!all.empty() && all.back() == '\0') all.remove_suffix(1);
        }
        return all;
    }

private:
    // Not a member, and not inlined: so the value can stay in registers in a caller's loop.
    [[nodiscard, gnu::noinline]] static std::uint64_t converted(const std::byte* data,
                                                                std::uint32_t size,
                                                                field_type type) noexcept {
        field_value of;
        of.data_ = data;
        of.size_ = size;
        of.type_ = type;
        return of.as<std::uint64_t>();
    }
    template <class T>
    [[nodiscard]] T as() const noexcept {
        if (size_ == 0) return 0;
        return visit([](auto value) {
            if constexpr (std::is_integral_v<T> && std::is_floating_point_v<decltype(value)>) {
                using limits = std::numeric_limits<T>;
                constexpr auto end =
                    static_cast<decltype(value)>(std::is_signed_v<T> ? 0x1p63 : 0x1p64);
                if (value >= end) return (limits::max)();
                if (value <= (std::is_signed_v<T> ? -end : 0)) return (limits::min)();
                return value == value ? static_cast<T>(value) : T{0};
            } else {
                return static_cast<T>(value);
            }
        });
    }
    template <class T>
    [[nodiscard]] T get() const noexcept {
        T value;
        std::memcpy(&value, data_, sizeof(T));
        return value;
    }

    const std::byte* data_ = nullptr;
    const value_names* names_ = nullptr;
    const duration_unit* unit_ = nullptr;
    std::uint32_t size_ = 0;
    field_type type_ = field_type::u8;
    field_form form_ = field_form::scalar;
    bool cut_ = false;
};

/// A record, by its lane's number and its position there: for example where a span began.
struct span_place {
    std::uint32_t lane = 0;  ///< number of the lane
    position at = 0;         ///< position of the record in the lane, from 0
    friend constexpr bool operator==(const span_place&, const span_place&) noexcept = default;
};

/// One record.
class record_view {
public:
    /// The properties that records of one kind in one sub-buffer share.
    struct kind {
        const lane_info* lane = nullptr;   ///< the lane of the records
        const event_type* type = nullptr;  ///< null if the dictionary lacks it
        std::uint64_t high = 0;            ///< the clock's upper half, in its place
        std::uint64_t latest = 0;          ///< the lane's next reading of the clock, if `interval`
        std::uint64_t offset = 0;          ///< of `words` in the file; without them, of the record
        const std::uint64_t* words = nullptr;  ///< null: it was unpacked from one at `offset`
    };

    record_view() = default;
    /// The record at `words`, whose header and length have been checked.
    record_view(const kind& shared, const std::uint64_t* words, position at) noexcept
        : words_(words), at_(at), shared_(shared), fault_(fault_in(words)) {
        if (shared_.type != nullptr && fault_.empty() && !bare_end()) {
            fields_ = shared_.type->fields.data();
            field_count_ = shared_.type->fields.size();
        }
    }

    /// Ticks of the trace's clock; `trace_file::time()` converts them.
    [[nodiscard, gnu::always_inline]] std::uint64_t time() const noexcept {
        return shared_.high | (*words_ & 0xFFFFFFFFU);
    }
    /// Its position in the lane, from 0. An unpacked record has the position of the packed record.
    [[nodiscard]] trace_ring::position position() const noexcept { return at_; }
    /// The lane that it is in.
    [[nodiscard]] const lane_info& lane() const noexcept { return *shared_.lane; }
    /// Its offset in the file when it was read. An unpacked record has the packed one's.
    [[nodiscard]] std::uint64_t offset() const noexcept {
        if (shared_.words == nullptr) return shared_.offset;
        return shared_.offset + static_cast<std::uint64_t>(words_ - shared_.words) * 8;
    }

    /// The event's id in its program.
    [[nodiscard]] std::uint16_t id() const noexcept { return record_word::id(word()); }
    /// True if the dictionary has its type.
    [[nodiscard]] bool known() const noexcept { return shared_.type != nullptr; }
    /// Its type; a type without name and fields if it is not known. A span's ends with results have
    /// another than its begins: `type().whole()` is one for both.
    [[nodiscard]] const event_type& type() const noexcept {
        static const event_type unknown;
        return shared_.type != nullptr ? *shared_.type : unknown;
    }
    /// The event's name; empty if it is not known.
    [[nodiscard]] std::string_view name() const noexcept { return type().name; }

    /// A span begins, or ends, here. span/pairs.hpp says which belong together.
    [[nodiscard]] bool begins() const noexcept {
        return flag(record_word::begin) && !flag(record_word::end);
    }
    /// Whether a span ends here.
    [[nodiscard]] bool ends() const noexcept { return flag(record_word::end); }
    /// For an end that says where its span began: that place. Nothing for other records.
    [[nodiscard]] std::optional<span_place> began() const noexcept {
        if (!told_end() || !fault_.empty()) return std::nullopt;
        return span_place{static_cast<std::uint32_t>(words_[2]), words_[1] - 1};
    }
    /// Whether some field was cut.
    [[nodiscard]] bool cut() const noexcept { return flag(record_word::cut); }
    /// Whether the time is a lower bound: the clock was not read for this record (clock::sampled).
    [[nodiscard]] bool interval() const noexcept { return flag(record_word::interval); }
    /// The upper bound of the time, which is the next reading of the clock in the lane; nothing if
    /// there was none yet. The time itself if it is no interval.
    [[nodiscard]] std::optional<std::uint64_t> latest() const noexcept {
        if (!interval()) return time();
        if (shared_.latest == ~std::uint64_t{0}) return std::nullopt;
        return (std::max)(shared_.latest, time());
    }

    /// Its length in bytes, with the header.
    [[nodiscard]] std::size_t bytes() const noexcept { return record_word::bytes(word()); }
    /// The bytes behind the header.
    [[nodiscard]] std::span<const std::byte> payload() const noexcept {
        return {data(), bytes() - record_header_bytes};
    }

    /// Why its fields cannot be read; empty if they can. `payload` has the bytes in either case.
    [[nodiscard]] std::string_view fault() const noexcept {
        return known() ? fault_ : "a record of an event that the dictionary lacks";
    }

    /// False if it is faulty, or the end of a span without fields.
    [[nodiscard]] bool has_fields() const noexcept { return fault().empty() && !bare_end(); }
    /// The end of a span that has results in its type, but ended without any.
    [[nodiscard]] bool lacks_results() const noexcept {
        return bare_end() && fault().empty() && type().results != nullptr;
    }
    /// Field `i`, in the order declared. Constant time, except for variable fields, which lie one
    /// behind the other.
    [[nodiscard, gnu::always_inline]] field_value field(std::size_t i) const noexcept {
        if (i >= field_count_) [[unlikely]]
            return {};
        const field_info& wanted = fields_[i];
        if (wanted.form != field_form::scalar) [[unlikely]] {
            return elements(shared_.type, words_, i);
        }
        return {wanted, data() + wanted.offset, 1};
    }
    /// The field of that name. Linear in the fields; `type().find` once, then by number, is faster.
    [[nodiscard]] field_value field(std::string_view name) const noexcept {
        return field(type().find(name));
    }
    /// Calls `visit(const field_info&, field_value)` for every field, in one pass.
    template <class Visit>
    void for_each_field(Visit&& visit) const {
        if (field_count_ == 0) return;
        std::size_t at = shared_.type->fixed_bytes;
        for (const auto& field : shared_.type->fields) {
            visit(field,
                  field.variable() ? next_variable(field, words_, at) : fixed(field, words_));
        }
    }

    /// How many of `count` records of this kind, `stride` words apart and beginning with this one,
    /// have the same fault or none. Constant time if no field is variable.
    [[nodiscard]] std::size_t alike(std::size_t count, std::ptrdiff_t stride) const noexcept {
        if (shared_.type == nullptr || !shared_.type->variable) return count;
        std::size_t same = 1;
        for (auto words = words_ + stride; same < count && fault_in(words).data() == fault_.data();
             words += stride) {
            ++same;
        }
        return same;
    }

private:
    friend class record_run;
    friend class cursor;

    [[nodiscard]] std::uint32_t word() const noexcept {
        return static_cast<std::uint32_t>(*words_ >> 32);
    }
    [[nodiscard]] bool flag(record_word::flag which) const noexcept {
        return (record_word::flags(word()) & which) != 0;
    }
    [[nodiscard]] const std::byte* data() const noexcept {
        return reinterpret_cast<const std::byte*>(words_ + 1);
    }
    [[nodiscard]] static std::uint16_t length_word(const std::uint64_t* words,
                                                   const field_info& field) noexcept {
        std::uint16_t value;
        std::memcpy(&value, reinterpret_cast<const std::byte*>(words + 1) + field.offset, 2);
        return value;
    }
    [[nodiscard]] static field_value fixed(const field_info& field,
                                           const std::uint64_t* words) noexcept {
        const auto* const data = reinterpret_cast<const std::byte*>(words + 1);
        return {field, data + field.offset, field.count};
    }
    // Not a member, and not inlined, for the reason above.
    [[nodiscard, gnu::noinline]] static field_value elements(const event_type* type,
                                                             const std::uint64_t* words,
                                                             std::size_t i) noexcept {
        const field_info& wanted = type->fields[i];
        if (!wanted.variable()) return fixed(wanted, words);
        std::size_t at = type->fixed_bytes;
        for (std::size_t before = 0; before < i; ++before) {
            const field_info& other = type->fields[before];
            if (other.variable()) (void)next_variable(other, words, at);
        }
        return next_variable(wanted, words, at);
    }
    // Lengths were checked when the view was made. `at`: the end of the variable data so far.
    [[nodiscard]] static field_value next_variable(const field_info& field,
                                                   const std::uint64_t* words,
                                                   std::size_t& at) noexcept {
        const std::uint16_t word = length_word(words, field);
        const std::size_t length = word & variable_length_mask;
        const std::size_t from = (at + 7) / 8 * 8;
        at = from + length;
        const auto* const data = reinterpret_cast<const std::byte*>(words + 1);
        return {field, data + (length == 0 ? 0 : from), length / size_of(field.type),
                (word & variable_cut_bit) != 0};
    }

    [[nodiscard]] bool bare_end() const noexcept {
        return ends() && (bytes() == record_header_bytes || flag(record_word::begin)) &&
               (shared_.type == nullptr || shared_.type->span == nullptr);
    }
    [[nodiscard]] bool told_end() const noexcept { return ends() && flag(record_word::begin); }
    /// The fault of the record at `words`, which is of this kind.
    [[nodiscard]] std::string_view fault_in(const std::uint64_t* words) const noexcept {
        if (shared_.type == nullptr) return {};
        if (bare_end()) {
            const bool whole = !told_end() || bytes() == layout::span_end_record::bytes;
            return whole ? std::string_view() : "an end that does not say what it ends";
        }
        const event_type& type = *shared_.type;
        const std::size_t there = payload().size();
        if (type.fixed_bytes > there) return "a record shorter than its event's fields";
        if (!type.variable) return {};
        std::size_t at = type.fixed_bytes;
        for (const auto& field : type.fields) {
            if (!field.variable()) continue;
            const std::size_t length = length_word(words, field) & variable_length_mask;
            if (length % size_of(field.type) != 0) return "a field that ends inside an element";
            const std::size_t from = (at + 7) / 8 * 8;
            at = from + length;
            if (length != 0 && at > there) return "a field longer than its record";
        }
        return {};
    }
    /// Becomes the next record of the same kind.
    [[gnu::always_inline]] void step(std::ptrdiff_t stride, std::ptrdiff_t positions) noexcept {
        words_ += stride;
        at_ += static_cast<std::uint64_t>(std::int64_t{positions});
    }

    const std::uint64_t* words_ = nullptr;
    trace_ring::position at_ = 0;
    const field_info* fields_ = nullptr;  // all fields of the type,
    std::size_t field_count_ = 0;         // or 0: they cannot be read
    kind shared_{};
    std::string_view fault_{};
};

}  // namespace trace_ring::inline v1::reduce
