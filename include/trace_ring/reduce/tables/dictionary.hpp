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
#include <trace_ring/format/dictionary.hpp>
#include <trace_ring/format/plan.hpp>
#include <trace_ring/reduce/tables/packing.hpp>
#include <trace_ring/reduce/tables/writers.hpp>

namespace trace_ring::inline v1::reduce {

class dictionary {
public:
    /// `unpack`: how records are unpacked; null: they are not.
    explicit dictionary(const packing* unpack) noexcept : unpack_(unpack) {}
    // A copy would refer to the types of the original. A move keeps their addresses.
    dictionary(const dictionary&) = delete;
    dictionary& operator=(const dictionary&) = delete;
    dictionary(dictionary&&) = default;
    dictionary& operator=(dictionary&&) = default;
    ~dictionary() = default;

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

    /// Reads a copy of the dictionary, which lies at `offset` in the file, and adds the entries
    /// that are new since the last call. Bad entries are added to `damages`. Linear in its bytes.
    void add(const layout::dictionary_entries& all, std::uint64_t offset,
             std::uint32_t process_count, std::uint32_t totals_per_lane,
             std::vector<damage>& damages) {
        const auto unit_of = [](std::uint64_t at) { return as_size(at / layout::dictionary_unit); };
        if (seen_.size() < unit_of(all.size)) seen_.resize(unit_of(all.size));
        const std::size_t before = types_.size();
        std::vector<entry_reader> aliases;
        bool in_step = true;  // after a sound entry, not inside one that was never finished
        for (auto each = all.entries(); each.step(); in_step = each.bytes != 0) {
            const entry_reader entry{all, offset, each.at, each.bytes};
            auto& before_this = seen_[unit_of(each.at)];
            // Zero: not used yet, or claimed by a writer that died before it was done. In the
            // second case any part of the entry may follow, and is skipped.
            if (!each.is_entry() && each.magic != 0 && in_step && before_this.hash != 1) {
                before_this = {1, nullptr};
                damages.push_back({offset + each.at, "not an entry of the dictionary"});
            }
            if (each.magic == layout::alias_magic) aliases.push_back(entry);
            if (each.magic != layout::type_magic) continue;
            // Another entry may have taken the place of one that nothing refers to any more.
            const std::uint64_t hash = entry.hash();
            if (hash == before_this.hash) continue;
            event_type type;
            const damage fault = entry.parse(type, process_count, totals_per_lane);
            if (fault.what.empty()) {
                if (const damage odd = entry.parse_names(type); !odd.what.empty()) {
                    damages.push_back(odd);
                }
                before_this = {hash, &keep(std::move(type))};
            } else {
                before_this = {hash, nullptr};
                damages.push_back(fault);
            }
        }
        for (const entry_reader& entry : aliases) {
            auto& before_this = seen_[unit_of(entry.at)];
            const std::uint64_t hash = entry.hash();
            if (hash == before_this.hash) continue;
            before_this = {hash, nullptr};
            add_aliases(entry, process_count, damages);
        }
        if (types_.size() != before) rehash();
    }

private:
    /// One entry of the copy.
    struct entry_reader {
        layout::dictionary_entries all;
        std::uint64_t dictionary;  ///< where it lies in the file
        std::uint64_t at;          ///< where the entry lies in it
        std::uint64_t bytes;       ///< of the entry; 0 if the stated number is impossible

        /// Where a field lies in the file.
        template <class Field>
        [[nodiscard]] std::uint64_t offset(const Field& field) const noexcept {
            return dictionary + static_cast<std::uint64_t>(
                                    reinterpret_cast<const std::byte*>(&field) - all.base);
        }
        /// `length` bytes of any kind.
        [[nodiscard]] std::string name(std::uint64_t from, std::size_t length) const {
            return {reinterpret_cast<const char*>(all.base) + at + from, length};
        }
        [[nodiscard]] std::span<const std::uint64_t> words() const noexcept {
            const void* const first = all.base + at;  // aligned to the dictionary's unit
            return {static_cast<const std::uint64_t*>(first),
                    as_size((std::max)(bytes, std::uint64_t{layout::dictionary_unit}) / 8)};
        }
        /// A hash of its words: never 0 or 1.
        [[nodiscard]] std::uint64_t hash() const noexcept {
            std::uint64_t sum = 0;
            for (const std::uint64_t word : words()) {
                sum = (sum ^ word) * 0x9E3779B97F4A7C15U;
                sum ^= sum >> 29;
            }
            return sum | 2;
        }

        struct check {
            bool wrong;
            std::uint64_t offset;
            const char* what;
        };
        /// The first that is wrong, as damage.
        [[nodiscard]] static damage first_wrong(std::initializer_list<check> all_checks) {
            for (const check& each : all_checks) {
                if (each.wrong) return {each.offset, each.what};
            }
            return {};
        }
        [[nodiscard]] damage parse(event_type& type, std::uint32_t process_count,
                                   std::uint32_t totals_per_lane) const {
            const layout::type_entry& entry = all.type_at(at);
            // relaxed: a copy
            const auto get = [](const auto& shared) { return shared.load(relaxed); };
            const std::uint8_t kind = get(entry.kind), total = get(entry.total);
            const std::uint16_t count = get(entry.fields), name_bytes = get(entry.name_bytes);
            const std::uint64_t flows = get(entry.flow_fields);
            type.root = get(entry.root);
            type.id = get(entry.id);
            type.fixed_bytes = get(entry.fixed_bytes);
            const std::size_t fields_end = sizeof entry + count * sizeof(layout::field_entry);
            damage wrong = first_wrong({
                {bytes == 0, offset(entry.bytes), "impossible length of an event type"},
                {type.root >= process_count, offset(entry.root), "an event type of no process"},
                {type.id == record_word::time_id || type.id > layout::max_event_id,
                 offset(entry.id), "impossible number of an event type"},
                {kind > static_cast<std::uint8_t>(event_kind::counter), offset(entry.kind),
                 "an event type of no known kind"},
                {total > totals_per_lane, offset(entry.total),
                 "an event type with an impossible total"},
                {type.fixed_bytes > max_sub_buffer_bytes || type.fixed_bytes % 8 != 0,
                 offset(entry.fixed_bytes), "an event type of impossible size"},
                {fields_end > bytes, offset(entry.fields), "an event type with too many fields"},
                {name_bytes == 0 || name_bytes > bytes - fields_end, offset(entry.name_bytes),
                 "impossible length of an event type's name"},
                {count < most_flow_fields && flows >> count != 0, offset(entry.flow_fields),
                 "a flow that is no field"},
            });
            if (!wrong.what.empty()) return wrong;
            type.offset = dictionary + at;
            type.kind = static_cast<event_kind>(kind);
            if (total != 0) type.total = total - 1U;
            type.name = name(fields_end, name_bytes);
            std::size_t name_at = fields_end + name_bytes;
            type.fields.reserve(count);
            for (std::size_t i = 0; i < count && wrong.what.empty(); ++i) {
                wrong = parse_field(type, i, flows, name_at);
            }
            return wrong;
        }
        [[nodiscard]] damage parse_field(event_type& type, std::size_t i, std::uint64_t flows,
                                         std::size_t& name_at) const {
            const layout::field_entry& entry = all.field_at(at, i);
            // relaxed: a copy
            const auto get = [](const auto& shared) { return shared.load(relaxed); };
            const std::uint16_t length = get(entry.name_bytes);
            const auto form =
                static_cast<std::uint8_t>(get(entry.form) & ~layout::field_entry::result);
            field_info field;
            field.count = get(entry.count);
            field.offset = get(entry.offset);
            field.type = static_cast<field_type>(get(entry.type));
            field.result = (get(entry.form) & layout::field_entry::result) != 0;
            field.form = static_cast<field_form>(form);
            field.flow = i < most_flow_fields && (flows >> i & 1U) != 0;
            const std::size_t size = field.variable() ? 2 : size_of(field.type);
            const std::size_t end = field.offset + size * (field.variable() ? 1U : field.count);
            damage wrong = first_wrong({
                {size_of(field.type) == 0 || form > static_cast<std::uint8_t>(field_form::variable),
                 offset(entry), "a field of no known type"},
                {field.form == field_form::scalar && field.count != 1, offset(entry.count),
                 "a field with a wrong count"},
                {(size != 0 && field.offset % size != 0) ||
                     end > (field.result ? max_sub_buffer_bytes : type.fixed_bytes),
                 offset(entry.offset), "a field outside its event's records"},
                {field.result ? type.kind != event_kind::span
                              : !type.fields.empty() && type.fields.back().result,
                 offset(entry.form), "a result in the wrong place"},
                {field.flow && (field.type != field_type::u64 || field.variable()),
                 offset(all.type_at(at).flow_fields), "a flow that is no number"},
                {length > bytes - name_at, offset(entry.name_bytes),
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
            std::size_t end = sizeof(layout::type_entry) +
                              sizeof(layout::field_entry) * type.fields.size() + type.name.size();
            for (const auto& field : type.fields) end += field.name.size();
            end = as_size(layout::round_up(end, 8));
            if (end >= bytes) return {};
            auto rest = words().subspan(end / 8);
            const std::uint64_t place = dictionary + at + end;
            if (!impl::read_units(rest, type.fields))
                return {place, "impossible units of durations"};
            if (rest.empty() || static_cast<std::uint32_t>(rest[0]) != names_magic) return {};
            const bool sound = impl::read_value_names(
                rest, type.fields,
                [&](std::size_t i, const auto& names) { type.fields[i].values = names; });
            return sound ? damage{} : damage{place, "impossible names of values"};
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
        const alias_entry& alias = entry.all.alias_at(entry.at);
        // relaxed, to the end: a copy
        const std::uint32_t root = alias.root.load(relaxed);
        const std::uint16_t first = alias.first_id.load(relaxed);
        const std::uint16_t count = alias.count.load(relaxed);
        if (root >= process_count || first == record_word::time_id || count > alias_entry::most ||
            first + std::size_t{count} > layout::max_event_id + std::size_t{1}) {
            damages.push_back({entry.offset(alias), "impossible numbers of event types"});
            return;
        }
        for (std::uint16_t i = 0; i < count; ++i) {
            const std::uint32_t unit = alias.unit[i].load(relaxed);
            const event_type* const of = unit < seen_.size() ? seen_[unit].type : nullptr;
            if (of == nullptr) {
                damages.push_back(
                    {entry.offset(alias.unit[i]), "a number of an event type that is not there"});
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
