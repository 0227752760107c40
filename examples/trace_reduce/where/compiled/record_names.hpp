// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Resolves the names of an expression for the records of one event: the places of their fields,
/// and the other values.
/// @code
///   const record_names names({tables, &type, true});
///   if (const auto word = names.word_of(expression::of_name("price"))) use(word->at);
/// @endcode

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <trace_ring/reduce/tables.hpp>

#include "../names.hpp"
#include "ranges.hpp"
#include "record_batch.hpp"

namespace trace_reduce::where {

/// The records for which an expression is compiled.
struct setting {
    const tables& in;
    const event_type* type = nullptr;  ///< null: an event that the dictionary lacks
    bool has_fields = false;           ///< false: fields cannot be read, or the record has none
};

/// A whole word of a record, or a double, that each record has.
struct raw_word {
    field_type type = field_type::u64;
    std::size_t at = 0;     ///< of a field: byte of the payload
    bool is_ticks = false;  ///< it is the record's time
    bool by_time = false;   ///< it is compared as such, in ns
};

/// A comparison with a constant.
struct bound {
    comparison sign;
    number with;
    std::optional<number> up_to{};
};

class record_names {
public:
    explicit record_names(const setting& where) noexcept : where_(where) {}

    /// Nothing: records have no such text.
    [[nodiscard]] std::optional<record_value> text_of(const expression& of) const {
        record_value made;
        if (of.what == form::text) {
            made.constant = &of.word;
            return made;
        }
        made.name = meaning(of);
        if (made.name == named::event) {
            if (where_.type == nullptr) return std::nullopt;
            made.constant = &where_.type->name;
            return made;
        }
        return made.name == named::field ? field_of(of) : made;
    }

    /// Nothing: it is no such word, or not of all of these records.
    [[nodiscard]] std::optional<raw_word> word_of(const expression& of) const {
        if (const field_info* const field = info_of(of)) {
            const auto found = field_of(of);
            if (!found || field->form == field_form::variable ||
                field->type == field_type::character) {
                return std::nullopt;
            }
            // Of a duration the word is in another unit than what it is compared with.
            if (unit_of(of) != nullptr) return std::nullopt;
            return raw_word{field->type, field->offset + found->element * size_of(field->type)};
        }
        const named what = meaning(of);
        if (what == named::ticks) return raw_word{.is_ticks = true};
        if (what == named::time && ascends(where_.in.time())) {
            return raw_word{.is_ticks = true, .by_time = true};
        }
        return std::nullopt;
    }

    [[nodiscard]] std::optional<record_value> field_of(const expression& of) const {
        const field_info* const field = info_of(of);
        if (field == nullptr) return std::nullopt;
        record_value made;
        made.field = static_cast<std::size_t>(field - where_.type->fields.data());
        if (of.what == form::element) {
            if (of.value > number::of(std::uint64_t{0xFFFF})) return std::nullopt;  // than records
            made.element = static_cast<std::size_t>(of.value.real());
            if (field->form == field_form::array && made.element >= field->count) {
                return std::nullopt;
            }
        }
        return made;
    }
    /// Null: records have no such field.
    [[nodiscard]] const field_info* info_of(const expression& of) const {
        const bool field = of.what == form::field || of.what == form::element ||
                           (of.what == form::name && meaning(of) == named::field);
        if (!field || where_.type == nullptr || !where_.has_fields) return nullptr;
        const std::size_t at = where_.type->find_named(of.word);
        return at == event_type::npos ? nullptr : &where_.type->fields[at];
    }

    /// The unit of a field whose counts are not nanoseconds; null: they are, or have no unit.
    [[nodiscard]] const duration_unit* unit_of(const expression& of) const {
        const field_info* const field = info_of(of);
        if (field == nullptr || field->unit == nullptr) return nullptr;
        return field->unit->times == 1 && field->unit->over == 1 ? nullptr : field->unit.get();
    }
    [[nodiscard]] const value_names* value_names_of(const expression& of) const {
        const field_info* const field = info_of(of);
        return field == nullptr ? nullptr : field->values.get();
    }
    /// The values of an enumeration that have this name, if it is a field of one.
    [[nodiscard]] std::vector<bound> values_called(const expression& what,
                                                   std::string_view name) const {
        std::vector<bound> found;
        const value_names* const names = value_names_of(what);
        if (names == nullptr) return found;
        const bool negative = info_of(what)->type >= field_type::i8;
        for (const auto& each : names->all()) {
            if (each.name != name) continue;
            found.push_back(
                {comparison::equal, negative ? number::of(static_cast<std::int64_t>(each.value))
                                             : number::of(each.value)});
        }
        return found;
    }

private:
    setting where_;
};

}  // namespace trace_reduce::where
