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

#include <trace_ring/format/words.hpp>
#include <trace_ring/reduce/tables/duration_unit.hpp>
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
    bool result = false;  ///< ends of a span have it, and begins do not
    /// The unit of its values, if they are durations; null: they are plain numbers, or none.
    std::shared_ptr<const duration_unit> unit{};
    /// The name with its unit, `latency [ms]`, for formats in which the value is a plain number;
    /// empty without a unit: see `shown_name`.
    std::string label{};

    [[nodiscard]] const std::string& shown_name() const noexcept {
        return label.empty() ? name : label;
    }

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
    std::size_t packed = npos;  ///< the field in which other records are packed, if it has one
    std::uint64_t offset = 0;   ///< of its entry in the file, in bytes
    std::size_t number = 0;     ///< its place in `dictionary::types()`
    /// A span with results has a type for its begins, and for ends without results, whose `results`
    /// is the type of ends that have them, and `told_results` of those that also say where the span
    /// began. The `span` of these two is the first. Null in all other types.
    const event_type* results = nullptr;
    const event_type* told_results = nullptr;
    const event_type* span = nullptr;

    /// The event's first type, of which this is one.
    [[nodiscard]] const event_type& whole() const noexcept {
        return span != nullptr ? *span : *this;
    }
    /// The type of a record with this header word: one of this event's.
    [[nodiscard]] const event_type& of_record(std::uint32_t word) const noexcept {
        if (results == nullptr) return *this;
        using layout::span_end_record;
        const std::uint32_t ends = record_word::flags(word) & span_end_record::flags;
        const std::size_t bytes = record_word::bytes(word);
        if (ends == record_word::end && bytes > record_header_bytes) return *results;
        if (ends == span_end_record::flags && bytes > span_end_record::bytes) return *told_results;
        return *this;
    }

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
