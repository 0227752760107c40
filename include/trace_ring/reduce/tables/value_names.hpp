// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The types of fields' values in C++, and the names of an enumeration's values, by which a reader
/// can show and find them.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <trace_ring/atomic.hpp>
#include <trace_ring/record/event/names_shape.hpp>
#include <trace_ring/record/field.hpp>

namespace trace_ring::inline v1::reduce {

/// Calls `visit` with a zero of the C++ type of such elements: booleans and characters are
/// std::uint8_t, addresses std::uint64_t.
template <class Visit>
constexpr auto visit_type(field_type type, Visit&& visit) {
    switch (type) {
        case field_type::u16:
            return visit(std::uint16_t{});
        case field_type::u32:
            return visit(std::uint32_t{});
        case field_type::u64:
        case field_type::address:
            return visit(std::uint64_t{});
        case field_type::i8:
            return visit(std::int8_t{});
        case field_type::i16:
            return visit(std::int16_t{});
        case field_type::i32:
            return visit(std::int32_t{});
        case field_type::i64:
            return visit(std::int64_t{});
        case field_type::f32:
            return visit(float{});
        case field_type::f64:
            return visit(double{});
        default:
            return visit(std::uint8_t{});
    }
}
/// The type of 64 bits that holds all values of `T`.
template <class T>
using widest =
    std::conditional_t<std::is_floating_point_v<T>, double,
                       std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>;

class value_names {
public:
    struct entry {
        std::uint64_t value = 0;  ///< cast to this type
        std::string name;         ///< as in the file: any bytes, at least one
    };

    /// If a value has two names the first counts.
    explicit value_names(std::vector<entry> all) : all_(std::move(all)) {
        std::stable_sort(all_.begin(), all_.end(),
                         [](const entry& a, const entry& b) { return a.value < b.value; });
        const auto same = [](const entry& a, const entry& b) { return a.value == b.value; };
        all_.erase(std::unique(all_.begin(), all_.end(), same), all_.end());
    }

    /// The values with names; ascending, as unsigned numbers.
    [[nodiscard]] std::span<const entry> all() const noexcept { return all_; }
    /// The name of a value; empty if it has none. Logarithmic.
    [[nodiscard]] std::string_view find(std::uint64_t value) const noexcept {
        const auto at =
            std::lower_bound(all_.begin(), all_.end(), value,
                             [](const entry& a, std::uint64_t b) { return a.value < b; });
        return at != all_.end() && at->value == value ? at->name : std::string_view();
    }
    /// Whether some value has this name. Linear.
    [[nodiscard]] bool has(std::string_view name) const noexcept {
        return std::any_of(all_.begin(), all_.end(),
                           [name](const entry& each) { return each.name == name; });
    }

private:
    std::vector<entry> all_;
};

namespace impl {

/// Whether a field of this type, an integer's, can have this value.
[[nodiscard]] constexpr bool holds(field_type type, std::uint64_t value) noexcept {
    return visit_type(type, [value](auto zero) {
        const auto as = static_cast<decltype(zero)>(value);
        return static_cast<std::uint64_t>(widest<decltype(zero)>(as)) == value;
    });
}

/// Reads the names behind the texts of a dictionary entry, and calls `put(field, names)`. False if
/// they make no sense: the names put before are right. Memory is linear in the words.
template <class Fields, class Put>
[[nodiscard]] bool read_value_names(std::span<const std::uint64_t> words, const Fields& fields,
                                    Put&& put) {
    names_shape shape;
    shape.fields = static_cast<std::uint16_t>(words[0] >> 32);
    shape.values = static_cast<std::uint16_t>(words[0] >> 48);
    if (shape.text_at() > words.size()) return false;
    const auto* const lengths =
        reinterpret_cast<const std::byte*>(words.data() + shape.lengths_at());
    std::string_view text{reinterpret_cast<const char*>(words.data() + shape.text_at()),
                          (words.size() - shape.text_at()) * 8};
    struct list {
        std::shared_ptr<const value_names> names{};
        field_type type{};
    };
    std::map<std::uint64_t, list> lists;  // by the word that fields have for them
    std::size_t next = 0;                 // the first value that is in no list yet
    for (std::size_t i = 0; i < shape.fields; ++i) {
        const std::uint64_t word = words[1 + i];
        const std::size_t which = word & 0xFFFFU;
        if (which >= fields.size() || fields[which].type > field_type::i64) return false;
        const field_type type = fields[which].type;
        list& of = lists[word >> 16];
        if (of.names == nullptr) {
            const auto count = as_size(word >> 32);
            if ((word >> 16 & 0xFFFFU) != next || count > shape.values - next) return false;
            std::vector<value_names::entry> all;
            for (const std::size_t end = next + count; next < end; ++next) {
                std::uint16_t length;
                std::memcpy(&length, lengths + 2 * next, 2);
                const std::uint64_t value = words[shape.values_at() + next];
                if (length == 0 || length > text.size() || !holds(type, value)) return false;
                all.push_back({value, std::string(text.substr(0, length))});
                text.remove_prefix(length);
            }
            of = {std::make_shared<const value_names>(std::move(all)), type};
        }
        if (of.type != type) return false;
        if (!of.names->all().empty()) put(which, of.names);
    }
    return true;
}

}  // namespace impl

}  // namespace trace_ring::inline v1::reduce
