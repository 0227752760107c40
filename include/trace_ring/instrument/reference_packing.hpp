// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Address references (instrument/references.hpp) as readers see them: a record that packs
/// thousands is read as a record for each, of an event that the file does not have.
///
/// | event | its fields |
/// |---|---|
/// | load, store, update, failed_compare, allocation | address, size, site |
/// | block | site |
/// | enter, exit | site, caller: the place of the call |
///
/// `site` is the address to which the reference's hook returned. Position, time and offset in the
/// file are those of the record that packs it: the reference was made before that time, and after
/// the record before it in the lane. The thread is the one that made it. Bytes that make no sense
/// are a loss without a count, after the references before them.
///
/// If the filter's `events` has the name `references`, packed records are not unpacked.

#include <trace_ring/fwd.hpp>

#if __cplusplus >= 202002L

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <trace_ring/format/layout.hpp>
#include <trace_ring/instrument/references.hpp>
#include <trace_ring/reduce/entries/unpacking.hpp>
#include <trace_ring/reduce/filter.hpp>
#include <trace_ring/reduce/tables/packing.hpp>

namespace trace_ring::inline v1::instrument {

/// Unpacks the references in a trace of address-trace, for trace_file. Has no state.
// NOLINTNEXTLINE(cppcoreguidelines-virtual-class-destructor): no class derives from it
class reference_packing_type final : public reduce::packing {
public:
    constexpr reference_packing_type() = default;

    /// The id of the event of references of this kind.
    [[nodiscard]] static constexpr std::uint16_t id_of(reference_kind kind) noexcept {
        return static_cast<std::uint16_t>(layout::max_event_id + 1 +
                                          static_cast<std::uint32_t>(kind));
    }

    [[nodiscard]] std::size_t packed_field(const reduce::event_type& type) const override {
        if (type.name != packed_references::name || type.kind != event_kind::instant) {
            return reduce::event_type::npos;
        }
        const std::size_t at = type.find("packed");
        const bool fits = at != reduce::event_type::npos &&
                          type.fields[at].type == field_type::u8 && type.fields[at].variable();
        return fits ? at : reduce::event_type::npos;
    }
    [[nodiscard]] std::vector<reduce::event_type> unpacked_types(
        const reduce::event_type& type) const override {
        const auto field = [](const char* name, field_type kind, std::size_t word) {
            reduce::field_info made;
            made.name = name;
            made.type = kind;
            made.offset = static_cast<std::uint16_t>(word * 8);
            return made;
        };
        std::vector<reduce::event_type> all;
        for (const auto& each : names_of<reference_kind>::list) {
            reduce::event_type made;
            made.name = each.name;
            made.root = type.root;
            made.id = id_of(each.value);
            made.offset = type.offset;
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
    [[nodiscard]] bool is_wanted(const reduce::filter& by) const override {
        const auto& all = names_of<reference_kind>::list;
        return std::find(by.events.begin(), by.events.end(), packed_references::name) ==
                   by.events.end() &&
               std::any_of(std::begin(all), std::end(all),
                           [&by](const auto& each) { return by.wants_event(each.name); });
    }
    [[nodiscard]] std::uint32_t thread_of(const reduce::record_view& record) const override {
        return static_cast<std::uint32_t>(record.field("thread").u64());
    }
    [[nodiscard]] std::size_t unpack(std::span<const std::byte> packed,
                                     reduce::unpacked_records& into) const override {
        reference_unpacker unpacker;
        return unpacker.unpack(packed.data(), packed.size(), [&into](const reference& one) {
            const bool sized = has_size(one.kind);
            const std::uint64_t payload[] = {sized ? one.address : one.site,
                                             sized ? one.site : one.address, one.size};
            into.add(id_of(one.kind), payload, words_of(one.kind));
        });
    }
    [[nodiscard]] std::string_view fault() const override {
        return "packed references that make no sense";
    }

private:
    /// The payload has a word for each field.
    [[nodiscard]] static constexpr std::size_t words_of(reference_kind kind) noexcept {
        return kind == reference_kind::block ? 1 : has_size(kind) ? 3 : 2;
    }
};

/// Pass its address to trace_file::open.
inline constexpr reference_packing_type reference_packing{};

}  // namespace trace_ring::inline v1::instrument

#endif
