// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// An event type as a reader knows it: its name, its fields, and where they lie in a record.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <trace_ring/reduce/tables/value_names.hpp>

namespace trace_ring::inline v1::reduce {

/// One field of an event, as record/field.hpp describes it.
struct field_info {
    std::string name{};  ///< as in the file: any bytes
    field_type type = field_type::u8;
    field_form form = field_form::scalar;
    std::uint16_t count = 1;   ///< elements of a fixed array, else 1
    std::uint16_t offset = 0;  ///< in the payload; of a variable field: of its length word
    bool flow = false;         ///< its elements, u64, are numbers of flows: record/event.hpp
    /// The names of its values, if it has integers; null: none.
    std::shared_ptr<const value_names> values{};

    [[nodiscard]] bool variable() const noexcept { return form == field_form::variable; }
};

/// One event type. The fixed parts of all fields lie within `fixed_bytes`.
struct event_type {
    static constexpr std::size_t npos = ~std::size_t{0};

    std::string name{};  ///< as in the file: any bytes
    std::uint32_t root = 0;
    std::uint16_t id = 0;
    event_kind kind = event_kind::instant;
    std::optional<std::uint32_t> total{};  ///< column of its total
    std::uint32_t fixed_bytes = 0;         ///< of the payload before variable-length data
    bool variable = false;                 ///< it has a variable-length field
    std::vector<field_info> fields{};
    std::size_t packed = npos;  ///< the field in which address references are packed, if it has one
    std::uint64_t offset = 0;   ///< of its entry in the file, in bytes
    std::size_t number = 0;     ///< its place in `dictionary::types()`

    /// The index of the field with this name; npos if there is none. Linear.
    [[nodiscard]] std::size_t find(std::string_view field) const noexcept {
        for (std::size_t i = 0; i < fields.size(); ++i) {
            if (fields[i].name == field) return i;
        }
        return npos;
    }
    /// The same, and also finds EVENT.FIELD if this is the event and no field has that whole name.
    [[nodiscard]] std::size_t find_named(std::string_view field) const noexcept {
        const std::size_t own = find(field);
        const bool of_event =
            field.size() > name.size() && field.starts_with(name) && field[name.size()] == '.';
        return own != npos || !of_event ? own : find(field.substr(name.size() + 1));
    }
};

}  // namespace trace_ring::inline v1::reduce
