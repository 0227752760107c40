// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Address references (record/event/references.hpp) as readers see them: a record that packs
/// thousands is read as a record for each, of an event that the file does not have.
///
/// | event | its fields |
/// |---|---|
/// | load, store, update, failed_compare, allocation | address, size, site |
/// | block | site |
/// | enter, exit | site, caller: the place of the call |
///
/// `site` is where the reference was made: the address to which its hook returned. Thread,
/// position, time and offset in the file are those of the record that packs it: it was made before
/// that time, and after the record before it in the lane. Bytes that make no sense are a loss
/// without a count, after the references before them.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <trace_ring/format/layout.hpp>
#include <trace_ring/record/event/references.hpp>
#include <trace_ring/reduce/tables/event_type.hpp>

namespace trace_ring::inline v1::reduce {

/// The number of the event that a reference of this kind has: no record in a file has it.
[[nodiscard]] constexpr std::uint16_t unpacked_id(reference_kind kind) noexcept {
    return static_cast<std::uint16_t>(layout::max_event_id + 1 + static_cast<std::uint32_t>(kind));
}
inline constexpr std::uint16_t last_unpacked_id = unpacked_id(reference_kind::allocation);

/// The field of an event in which references are packed, by the event's name and that field; npos
/// if it is another event.
[[nodiscard]] inline std::size_t packed_field(const event_type& type) noexcept {
    if (type.name != packed_references::name || type.kind != event_kind::instant) {
        return event_type::npos;
    }
    const std::size_t at = type.find("packed");
    const bool fits = at != event_type::npos && type.fields[at].type == field_type::u8 &&
                      type.fields[at].variable();
    return fits ? at : event_type::npos;
}

/// The types of the references that records of this type pack. Those of one kind lie one behind
/// the other in memory of the reader, with header and payload, as records of a file do.
[[nodiscard]] inline std::vector<event_type> unpacked_types(const event_type& packing) {
    const auto field = [](const char* name, field_type type, std::size_t word) {
        field_info made;
        made.name = name;
        made.type = type;
        made.offset = static_cast<std::uint16_t>(word * 8);
        return made;
    };
    std::vector<event_type> all;
    for (const auto& each : names_of<reference_kind>::list) {
        event_type made;
        made.name = each.name;
        made.root = packing.root;
        made.id = unpacked_id(each.value);
        made.offset = packing.offset;
        switch (each.value) {
            case reference_kind::load:
            case reference_kind::store:
            case reference_kind::update:
            case reference_kind::failed_compare:
            case reference_kind::allocation:
                made.fields = {field("address", field_type::address, 0),
                               field("size", field_type::u32, 2),
                               field("site", field_type::address, 1)};
                break;
            case reference_kind::block:
                made.fields = {field("site", field_type::address, 0)};
                break;
            default:  // enter, exit
                made.fields = {field("site", field_type::address, 0),
                               field("caller", field_type::address, 1)};
        }
        made.fixed_bytes = static_cast<std::uint32_t>(made.fields.size() * 8);
        all.push_back(std::move(made));
    }
    return all;
}

}  // namespace trace_ring::inline v1::reduce
