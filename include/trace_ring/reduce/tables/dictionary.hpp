// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The dictionary of a trace file: event types whose every offset and length has been checked, so
/// that decoding a record need only check the record. An entry that makes no sense is left out and
/// reported as damaged; the records of its event are then shown as raw bytes.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <trace_ring/atomic.hpp>
#include <trace_ring/reduce/tables/packing.hpp>
#include <trace_ring/reduce/tables/writers.hpp>

namespace trace_ring::inline v1::reduce {

class dictionary {
public:
    /// `unpack`: how records are unpacked; null: they are not.
    explicit dictionary(const packing* unpack) noexcept : unpack_(unpack) {}

    /// All types, in the order of the file; after one whose records pack others, the types of
    /// those; after one of a span with results, those of its ends (event_type::results). Addresses
    /// stay when more are added.
    [[nodiscard]] const std::deque<event_type>& types() const noexcept { return types_; }
    /// Whether records of some type pack others.
    [[nodiscard]] bool packs() const noexcept { return packs_; }

    /// The type of event `id` of the numbering `root`; null if it is not known.
    [[nodiscard]] const event_type* find(std::uint32_t root, std::uint32_t id) const noexcept {
        if (slots_.empty()) return nullptr;
        for (std::size_t i = hash(root, id);; ++i) {
            const event_type* type = slots_[i & (slots_.size() - 1)];
            if (type == nullptr || (type->root == root && type->id == id)) return type;
        }
    }

    /// Like `find` where the numbering is not known: the type if only one has an event of that id.
    [[nodiscard]] const event_type* find_only(std::uint32_t id) const noexcept {
        return id < only_.size() && only_[id].families == 1 ? only_[id].type : nullptr;
    }

    /// Reads the dictionary, which lies at `offset` in the file, and adds the entries that are new
    /// since the last call. Bad entries are added to `damages`. Linear in its bytes.
    void add(std::span<const std::uint64_t> words, std::uint64_t offset,
             std::uint32_t process_count, std::uint32_t totals_per_lane,
             std::vector<damage>& damages) {
        constexpr std::size_t unit_words = layout::dictionary_unit / 8;
        const std::size_t units = words.size() / unit_words;
        if (seen_.size() < units) seen_.resize(units);
        const std::size_t before = types_.size();
        std::vector<std::size_t> aliases;
        bool in_step = true;  // after a sound entry, not inside one that was never finished
        for (std::size_t unit = 0; unit < units;) {
            entry_reader entry{
                {words.subspan(unit * unit_words), offset + unit * layout::dictionary_unit}};
            const auto magic = entry.get<std::uint32_t>(offsetof(layout::type_entry, magic));
            if (magic != layout::type_magic && magic != layout::alias_magic &&
                magic != layout::free_magic) {
                // Zero: not used yet, or claimed by a writer that died before it was done. In the
                // second case any part of the entry may follow, and is skipped.
                if (magic != 0 && in_step && seen_[unit].hash != 1) {
                    seen_[unit] = {1, nullptr};
                    damages.push_back({entry.table, "not an entry of the dictionary"});
                }
                in_step = false;
                ++unit;
                continue;
            }
            const std::size_t length =
                std::max<std::size_t>(entry.sane_bytes() / layout::dictionary_unit, 1);
            in_step = entry.sane_bytes() != 0;
            // Another entry may have taken the place of one that nothing refers to any more.
            const std::uint64_t hash = entry.hash(length * unit_words);
            if (magic == layout::alias_magic) aliases.push_back(unit);
            if (magic == layout::type_magic && hash != seen_[unit].hash) {
                event_type type;
                const damage fault = entry.parse(type, process_count, totals_per_lane);
                if (fault.what.empty()) {
                    if (const damage odd = entry.parse_names(type); !odd.what.empty()) {
                        damages.push_back(odd);
                    }
                    seen_[unit] = {hash, &keep(std::move(type))};
                } else {
                    seen_[unit] = {hash, nullptr};
                    damages.push_back(fault);
                }
            }
            unit += length;
        }
        for (const std::size_t unit : aliases) {
            const entry_reader entry{
                {words.subspan(unit * unit_words), offset + unit * layout::dictionary_unit}};
            const std::uint64_t hash = entry.hash(unit_words);
            if (hash == seen_[unit].hash) continue;
            seen_[unit] = {hash, nullptr};
            add_aliases(entry, process_count, damages);
        }
        if (types_.size() != before) rehash();
    }

private:
    /// One entry, from its first byte to the dictionary's end.
    struct entry_reader : table_row {
        /// `length` bytes, whatever they are.
        [[nodiscard]] std::string name(std::size_t field, std::size_t length) const {
            return {reinterpret_cast<const char*>(words.data()) + field, length};
        }
        /// Bytes of the whole entry; 0 if the stated number is impossible.
        [[nodiscard]] std::uint32_t sane_bytes() const noexcept {
            const auto bytes = get<std::uint32_t>(offsetof(layout::type_entry, bytes));
            return bytes % layout::dictionary_unit == 0 && bytes <= words.size() * 8 ? bytes : 0;
        }

        /// A hash of its first `count` words: never 0 or 1.
        [[nodiscard]] std::uint64_t hash(std::size_t count) const noexcept {
            std::uint64_t sum = 0;
            for (const std::uint64_t word : words.first((std::min)(count, words.size()))) {
                sum = (sum ^ word) * 0x9E3779B97F4A7C15U;
                sum ^= sum >> 29;
            }
            return sum | 2;
        }

        struct check {
            bool wrong;
            std::size_t at;
            const char* what;
        };
        /// The first that is wrong, as damage.
        [[nodiscard]] damage first_wrong(std::initializer_list<check> all) const {
            for (const check& each : all) {
                if (each.wrong) return {offset(each.at), each.what};
            }
            return {};
        }
        [[nodiscard]] damage parse(event_type& type, std::uint32_t process_count,
                                   std::uint32_t totals_per_lane) const {
            using layout::type_entry;
            const std::uint32_t bytes = sane_bytes();
            std::uint8_t kind = 0, total = 0;
            std::uint16_t count = 0, name_bytes = 0;
            std::uint64_t flows = 0;
            read(offsetof(type_entry, root), type.root, offsetof(type_entry, id), type.id,
                 offsetof(type_entry, kind), kind, offsetof(type_entry, total), total,
                 offsetof(type_entry, fixed_bytes), type.fixed_bytes, offsetof(type_entry, fields),
                 count, offsetof(type_entry, name_bytes), name_bytes,
                 offsetof(type_entry, flow_fields), flows);
            const std::size_t fields_end = sizeof(type_entry) + count * sizeof(layout::field_entry);
            damage wrong = first_wrong({
                {bytes == 0, offsetof(type_entry, bytes), "impossible length of an event type"},
                {type.root >= process_count, offsetof(type_entry, root),
                 "an event type of no process"},
                {type.id == record_word::time_id || type.id > layout::max_event_id,
                 offsetof(type_entry, id), "impossible number of an event type"},
                {kind > static_cast<std::uint8_t>(event_kind::counter), offsetof(type_entry, kind),
                 "an event type of no known kind"},
                {total > totals_per_lane, offsetof(type_entry, total),
                 "an event type with an impossible total"},
                {type.fixed_bytes > max_sub_buffer_bytes || type.fixed_bytes % 8 != 0,
                 offsetof(type_entry, fixed_bytes), "an event type of impossible size"},
                {fields_end > bytes, offsetof(type_entry, fields),
                 "an event type with too many fields"},
                {name_bytes == 0 || name_bytes > bytes - fields_end,
                 offsetof(type_entry, name_bytes), "impossible length of an event type's name"},
                {count < most_flow_fields && flows >> count != 0, offsetof(type_entry, flow_fields),
                 "a flow that is no field"},
            });
            if (!wrong.what.empty()) return wrong;
            type.offset = table;
            type.kind = static_cast<event_kind>(kind);
            if (total != 0) type.total = total - 1U;
            type.name = name(fields_end, name_bytes);
            std::size_t name_at = fields_end + name_bytes;
            type.fields.reserve(count);
            for (std::size_t i = 0; i < count && wrong.what.empty(); ++i) {
                wrong = parse_field(type, i, flows, bytes, name_at);
            }
            return wrong;
        }
        [[nodiscard]] damage parse_field(event_type& type, std::size_t i, std::uint64_t flows,
                                         std::size_t bytes, std::size_t& name_at) const {
            using layout::field_entry;
            const std::size_t at = sizeof(layout::type_entry) + i * sizeof(field_entry);
            field_info field;
            std::uint8_t kind = 0, form = 0;
            std::uint16_t length = 0;
            read(at + offsetof(field_entry, type), kind, at + offsetof(field_entry, form), form,
                 at + offsetof(field_entry, count), field.count, at + offsetof(field_entry, offset),
                 field.offset, at + offsetof(field_entry, name_bytes), length);
            field.type = static_cast<field_type>(kind);
            field.result = (form & field_entry::result) != 0;
            form = static_cast<std::uint8_t>(form & ~field_entry::result);
            field.form = static_cast<field_form>(form);
            field.flow = i < most_flow_fields && (flows >> i & 1U) != 0;
            const std::size_t size = field.variable() ? 2 : size_of(field.type);
            const std::size_t end = field.offset + size * (field.variable() ? 1U : field.count);
            damage wrong = first_wrong({
                {size_of(field.type) == 0 || form > static_cast<std::uint8_t>(field_form::variable),
                 at, "a field of no known type"},
                {field.form == field_form::scalar && field.count != 1,
                 at + offsetof(field_entry, count), "a field with a wrong count"},
                {(size != 0 && field.offset % size != 0) ||
                     end > (field.result ? max_sub_buffer_bytes : type.fixed_bytes),
                 at + offsetof(field_entry, offset), "a field outside its event's records"},
                {field.result ? type.kind != event_kind::span
                              : !type.fields.empty() && type.fields.back().result,
                 at + offsetof(field_entry, form), "a result in the wrong place"},
                {field.flow && (field.type != field_type::u64 || field.variable()),
                 offsetof(layout::type_entry, flow_fields), "a flow that is no number"},
                {length > bytes - name_at, at + offsetof(field_entry, name_bytes),
                 "impossible length of a field's name"},
            });
            if (!wrong.what.empty()) return wrong;
            field.name = name(name_at, length);
            name_at += length;
            type.variable = type.variable || (field.variable() && !field.result);
            type.fields.push_back(std::move(field));
            return {};
        }
        /// Reads the units and the names of values of a parsed entry. Those that make no sense are
        /// left out.
        [[nodiscard]] damage parse_names(event_type& type) const {
            std::size_t at = sizeof(layout::type_entry) +
                             sizeof(layout::field_entry) * type.fields.size() + type.name.size();
            for (const auto& field : type.fields) at += field.name.size();
            at = as_size(layout::round_up(at, 8));
            const std::size_t bytes = sane_bytes();
            if (at >= bytes) return {};
            auto rest = words.first(bytes / 8).subspan(at / 8);
            if (!impl::read_units(rest, type.fields))
                return {offset(at), "impossible units of durations"};
            if (rest.empty() || static_cast<std::uint32_t>(rest[0]) != names_magic) return {};
            const bool sound = impl::read_value_names(
                rest, type.fields,
                [&](std::size_t i, const auto& names) { type.fields[i].values = names; });
            return sound ? damage{} : damage{offset(at), "impossible names of values"};
        }
    };

    /// The type of a span's ends that have these results, `before` bytes of each.
    [[nodiscard]] const event_type& keep_results(const event_type& span,
                                                 const std::vector<field_info>& results,
                                                 std::uint16_t before) {
        event_type made;
        made.name = span.name;
        made.root = span.root;
        made.id = span.id;
        made.kind = span.kind;
        made.offset = span.offset;
        made.span = &span;
        made.number = types_.size();
        made.fields = results;
        std::size_t end = 0;
        for (auto& field : made.fields) {
            const std::size_t size =
                field.variable() ? 2 : std::size_t{size_of(field.type)} * field.count;
            end = (std::max)(end, field.offset + size);
            field.offset = static_cast<std::uint16_t>(field.offset + before);
            made.variable = made.variable || field.variable();
        }
        made.fixed_bytes = static_cast<std::uint32_t>(layout::round_up(end, 8) + before);
        return types_.emplace_back(std::move(made));
    }
    event_type& keep(event_type type) {
        std::vector<field_info> results;
        if (type.results != nullptr) results = type.results->fields;  // a copy for an alias
        const auto first = std::find_if(type.fields.begin(), type.fields.end(),
                                        [](const field_info& each) { return each.result; });
        std::move(first, type.fields.end(), std::back_inserter(results));
        type.fields.erase(first, type.fields.end());
        event_type& kept = keep_alone(std::move(type));
        if (!results.empty()) {
            constexpr std::size_t place = layout::span_end_record::bytes - record_header_bytes;
            kept.results = &keep_results(kept, results, 0);
            kept.told_results = &keep_results(kept, results, place);
        }
        return kept;
    }
    event_type& keep_alone(event_type type) {
        type.number = types_.size();
        if (unpack_ != nullptr) type.packed = unpack_->packed_field(type);
        event_type& kept = types_.emplace_back(std::move(type));
        if (kept.packed == event_type::npos) return kept;
        const bool known = std::any_of(types_.begin(), types_.end(), [&kept](const auto& each) {
            return each.root == kept.root && each.id > layout::max_event_id;
        });
        if (!known) {
            for (event_type& each : unpack_->unpacked_types(kept)) {
                each.number = types_.size();
                types_.push_back(std::move(each));
            }
        }
        packs_ = true;
        return kept;
    }
    /// Adds the numbers by which one numbering means types that are described for another.
    void add_aliases(const entry_reader& entry, std::uint32_t process_count,
                     std::vector<damage>& damages) {
        using layout::alias_entry;
        const auto root = entry.get<std::uint32_t>(offsetof(alias_entry, root));
        const auto first = entry.get<std::uint16_t>(offsetof(alias_entry, first_id));
        const auto count = entry.get<std::uint16_t>(offsetof(alias_entry, count));
        if (root >= process_count || first == record_word::time_id || count > alias_entry::most ||
            first + std::size_t{count} > layout::max_event_id + std::size_t{1}) {
            damages.push_back({entry.table, "impossible numbers of event types"});
            return;
        }
        for (std::uint16_t i = 0; i < count; ++i) {
            const std::size_t at = offsetof(alias_entry, unit) + i * sizeof(std::uint32_t);
            const auto unit = entry.get<std::uint32_t>(at);
            const event_type* const of = unit < seen_.size() ? seen_[unit].type : nullptr;
            if (of == nullptr) {
                damages.push_back(
                    {entry.offset(at), "a number of an event type that is not there"});
                continue;
            }
            event_type type = *of;
            type.root = root;
            type.id = static_cast<std::uint16_t>(first + i);
            keep(std::move(type));
        }
    }

    [[nodiscard]] std::size_t hash(std::uint32_t root, std::uint32_t id) const noexcept {
        return (root * 0x9E3779B1U) ^ (id * 0x85EBCA6BU >> 7) ^ id;
    }

    // Open addressing, at most half full. If a numbering has a number twice, the later type counts:
    // no record that can be read refers to the older one.
    void rehash() {
        std::size_t size = 16;
        while (size < types_.size() * 2) size *= 2;
        slots_.assign(size, nullptr);
        std::size_t ids = 0;
        for (const auto& type : types_) ids = std::max<std::size_t>(ids, type.id + 1U);
        only_.assign(ids, {});
        for (const auto& type : types_) {
            if (type.span != nullptr) continue;
            std::size_t i = hash(type.root, type.id);
            while (slots_[i & (size - 1)] != nullptr) {
                const auto& other = *slots_[i & (size - 1)];
                if (other.root == type.root && other.id == type.id) break;
                ++i;
            }
            if (slots_[i & (size - 1)] == nullptr) ++only_[type.id].families;
            slots_[i & (size - 1)] = &type;
            only_[type.id].type = &type;
        }
    }

    struct by_id {
        const event_type* type = nullptr;
        std::uint32_t families = 0;
    };
    std::vector<by_id> only_{};
    std::deque<event_type> types_{};
    const packing* unpack_;
    bool packs_ = false;
    std::vector<const event_type*> slots_{};
    struct seen {
        std::uint64_t hash = 0;            // of the entry that was read there; 1: of none
        const event_type* type = nullptr;  // described by that entry
    };
    std::vector<seen> seen_{};  // by unit
};

}  // namespace trace_ring::inline v1::reduce
