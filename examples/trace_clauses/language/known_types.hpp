// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The types of a clause's values in the form that code generation needs: widths, numbers, members.
/// @code
///   const known_types types(table);
///   code.load(types.integer_of(found->type));
/// @endcode

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include <trace_ring/point/expression.hpp>
#include <trace_ring/record/field.hpp>

#include "../types/type_table.hpp"
#include "type_names.hpp"
#include "typed_code.hpp"

namespace trace_clauses {

inline constexpr integer_type as_int{4, true};
inline constexpr integer_type as_long_long{8, true};
inline constexpr integer_type as_ulong_long{8, false};

[[noreturn]] inline void refuse(const point::expression& at, std::string what) {
    throw point::mistake{at.column, at.length, std::move(what)};
}

/// The types of one mode.
class known_types {
public:
    explicit known_types(type_table& all) : all_(all) {}

    [[nodiscard]] type_table& table() const noexcept { return all_; }
    [[nodiscard]] const type& operator[](type_id of) const { return all_[of]; }
    [[nodiscard]] const type& of(const operand& of) const { return all_[of.type]; }
    [[nodiscard]] std::uint8_t address_bytes() const noexcept {
        return all_.mode() == program_mode::lp64 ? 8 : 4;
    }
    [[nodiscard]] integer_type integer_of(type_id of) const {
        const type& is = all_[of];
        if (is.is == type::kind::pointer) return {address_bytes(), false};
        return {static_cast<std::uint8_t>(is.size.bytes), is.is_signed};
    }
    /// The type of a number in arithmetic, before promotion: bits that fit in an int count as an
    /// int.
    [[nodiscard]] integer_type arithmetic_of(const operand& of) const {
        return of.bits.width != 0 && of.bits.width < 32 ? as_int : integer_of(of.type);
    }
    /// The type of an integer constant: the first of int, long and long long that can hold it, and
    /// also of the unsigned types unless the constant is decimal (C 6.4.4.1).
    [[nodiscard]] integer_type constant_of(std::uint64_t value, std::string_view written) const {
        const bool decimal = written[0] != '0';
        const std::string_view suffix = written.substr(written.find_last_not_of("uUlL") + 1);
        const bool is_unsigned = suffix.find_first_of("uU") != suffix.npos;
        const auto longs = std::count_if(suffix.begin(), suffix.end(),
                                         [](char c) { return c == 'l' || c == 'L'; });
        const std::uint8_t sizes[] = {4, address_bytes(), 8};
        for (std::size_t i = static_cast<std::size_t>(longs); i < std::size(sizes); ++i) {
            const std::uint64_t most = UINT64_MAX >> (64 - 8 * sizes[i]);
            if (!is_unsigned && value <= most / 2) return {sizes[i], true};
            if ((is_unsigned || !decimal) && value <= most) return {sizes[i], false};
        }
        return as_ulong_long;
    }
    [[nodiscard]] type_id type_for(integer_type of) {
        using point::c_type;
        switch (of.bytes) {
            case 1:
                return all_.of(c_type::character, of.is_signed);
            case 2:
                return all_.of(c_type::short_integer, of.is_signed);
            case 4:
                return all_.of(c_type::integer, of.is_signed);
            default:
                return all_.of(c_type::long_long_integer, of.is_signed);
        }
    }
    [[nodiscard]] operand number(integer_type of) {
        return {operand::kind::number, type_for(of), {}};
    }
    [[nodiscard]] std::string shown(type_id of) const { return shown_type(all_, of); }
    /// `offset` is increased by the member's offset. Members of unnamed structures are members,
    /// too.
    [[nodiscard]] const member* find_member(const type& in, std::string_view name,
                                            std::uint64_t& offset) const {
        for (const auto& each : in.members) {
            if (each.name == name) {
                offset += each.bits.width != 0 ? each.bits.offset : each.offset;
                return &each;
            }
            if (!each.name.empty()) continue;
            std::uint64_t inside = offset + each.offset;
            if (const member* const found = find_member(all_[each.type], name, inside)) {
                offset = inside;
                return found;
            }
        }
        return nullptr;
    }
    /// The type with which an element of a captured array is stored.
    [[nodiscard]] static trace_ring::field_type stored_as(integer_type of) noexcept {
        using trace_ring::field_type;
        constexpr field_type unsigned_ones[] = {field_type::u8, field_type::u16, field_type::u32,
                                                field_type::u64};
        constexpr field_type signed_ones[] = {field_type::i8, field_type::i16, field_type::i32,
                                              field_type::i64};
        const auto at = static_cast<std::size_t>(std::countr_zero(unsigned{of.bytes}));
        return of.is_signed ? signed_ones[at] : unsigned_ones[at];
    }

private:
    type_table& all_;
};

}  // namespace trace_clauses
