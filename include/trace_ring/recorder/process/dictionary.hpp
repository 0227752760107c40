// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The dictionary of a trace file as recording programs write it: which event type each number
/// means, in each of the numberings that programs use in the file.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include <trace_ring/atomic.hpp>
#include <trace_ring/format/view.hpp>
#include <trace_ring/record/event/value_names.hpp>
#include <trace_ring/recorder/file/trace_memory.hpp>
#include <trace_ring/recorder/site/registry.hpp>

namespace trace_ring::inline v1::impl {

class dictionary : public layout::dictionary_entries {
public:
    explicit dictionary(const trace_memory& in) noexcept
        : layout::dictionary_entries(in.types()), in_(in) {}

    /// What `id` means in numbering `root`: nothing, this type, or another.
    enum class binding { none, same, other };
    /// Signal-safe, linear in the dictionary, as are all functions below.
    [[nodiscard, gnu::noinline, gnu::cold]] binding look(std::uint32_t root, std::uint32_t id,
                                                         const type_description& type,
                                                         std::uint8_t total) const noexcept {
        for (auto each = bindings(); each.next();) {
            if (each.root != root || each.id != id) continue;
            return is_same(each.at, type, total) ? binding::same : binding::other;
        }
        return binding::none;
    }
    /// A number that means this type in numbering `root`; 0 if none does.
    [[nodiscard, gnu::noinline, gnu::cold]] std::uint32_t find(
        std::uint32_t root, const type_description& type) const noexcept {
        for (auto each = bindings(); each.next();) {
            if (each.root == root && is_same(each.at, type, 0)) return each.id;
        }
        return 0;
    }

    /// Adds a type to a numbering that does not have it. False: there is no room. The names of
    /// values leave a quarter of the dictionary to types; if only that is left, a type is added
    /// without them, and `named` is false.
    [[nodiscard, gnu::noinline, gnu::cold]] bool add(const type_node& node, std::uint32_t root,
                                                     bool named) const noexcept {
        const type_description& type = node.description;
        static constexpr std::uint64_t left_out[] = {names_shape{}.head()};
        const std::span<const std::uint64_t> words{type.names.begin(), type.names.size()};
        const std::span<const std::uint64_t> units = words.first(units_of(type));
        std::span<const std::uint64_t> names = words.subspan(units.size());
        if (!names.empty() && !named) names = left_out;
        std::uint64_t end = sizeof(layout::type_entry) +
                            sizeof(layout::field_entry) * type.fields.size() + type.name.size();
        for (const auto& f : type.fields) end += f.name.size();
        const std::uint64_t names_at = layout::round_up(end, sizeof(std::uint64_t));
        const std::uint64_t bytes = layout::round_up(
            words.empty() ? end : names_at + units.size_bytes() + names.size_bytes(),
            layout::dictionary_unit);
        const bool has_names = names.size() > 1;
        const std::optional<std::uint64_t> offset = claim(bytes, has_names ? size / 4 : 0);
        if (!offset) return false;
        auto& entry = type_at(*offset);
        // relaxed, to the end: the bytes are the caller's alone until the magic publishes them
        entry.bytes.store(static_cast<std::uint32_t>(bytes), relaxed);
        entry.root.store(root, relaxed);
        entry.id.store(static_cast<std::uint16_t>(node.id), relaxed);
        std::byte* const start = base + *offset;
        entry_words to{start};
        to.lay_out(type, total_of(node));
        // Another entry may have been there: bytes behind the texts must not look like names.
        for (; end < names_at; ++end) to.put<std::uint8_t>(end, 0);
        for (const std::uint64_t word : units) to.put(std::exchange(end, end + 8), word);
        for (const std::uint64_t word : names) to.put(std::exchange(end, end + 8), word);
        for (; end < bytes; end += 8) to.put<std::uint64_t>(end, 0);
        // order: dictionary.write:A pairs with table.read:A, snapshot.copy:A, dictionary.read:A,
        // dictionary.read:B, dictionary.read:C
        entry.magic.store(layout::type_magic, release);
        return true;
    }

    /// The column of a type's total in the file: 0 if it has none.
    [[nodiscard]] std::uint8_t total_of(const type_node& node) const noexcept {
        const bool has = node.total != 0 && node.total <= in_.plan().totals_per_lane;
        return static_cast<std::uint8_t>(has ? node.total : 0);
    }

    /// Makes numbers from `first_id` on mean the types at these offsets. False: there is no room.
    [[nodiscard, gnu::cold]] bool add_alias(std::uint32_t root, std::uint32_t first_id,
                                            std::span<const std::uint64_t> types) const noexcept {
        const std::optional<std::uint64_t> offset = claim(sizeof(layout::alias_entry));
        if (!offset) return false;
        auto& entry = alias_at(*offset);
        // relaxed, to the end: published by the magic
        entry.bytes.store(sizeof(layout::alias_entry), relaxed);
        entry.root.store(root, relaxed);
        entry.first_id.store(static_cast<std::uint16_t>(first_id), relaxed);
        entry.count.store(static_cast<std::uint16_t>(types.size()), relaxed);
        for (std::size_t i = 0; i < types.size(); ++i) {
            entry.unit[i].store(static_cast<std::uint32_t>(types[i] / layout::dictionary_unit),
                                relaxed);
        }
        // order: dictionary.write:B pairs with table.read:A, snapshot.copy:A, dictionary.read:A
        entry.magic.store(layout::alias_magic, release);
        return true;
    }
    /// Whether the entry at `offset` describes exactly this type, or the type without the names of
    /// values, for which there was no room. `total` 0: with any total.
    [[nodiscard, gnu::noinline, gnu::cold]] bool is_same(std::uint64_t offset,
                                                         const type_description& type,
                                                         std::uint8_t total) const noexcept {
        const auto& entry = type_at(offset);
        // order: dictionary.read:C pairs with dictionary.write:A
        if (entry.magic.load(acquire) != layout::type_magic) return false;
        const std::uint64_t length = entry.bytes.load(relaxed);  // relaxed: after the magic
        if (length > size - offset) return false;
        entry_words words{base + offset, length, true};
        std::uint64_t at = layout::round_up(words.lay_out(type, total), sizeof(std::uint64_t));
        const std::size_t units = units_of(type);
        for (std::size_t i = 0; i < units; ++i) words.put(std::exchange(at, at + 8), type.names[i]);
        std::uint64_t head = 0;
        if (at < length)  // relaxed: as above
            head = word_at<std::uint64_t>(words.start, as_size(at)).load(relaxed);
        if (units_words(head) != 0) return false;
        if (type.names.size() == units)
            return words.same && static_cast<std::uint32_t>(head) != names_magic;
        if (head == names_shape{}.head()) return words.same;
        for (std::size_t i = units; i < type.names.size(); ++i)
            words.put(std::exchange(at, at + 8), type.names[i]);
        return words.same;
    }
    /// The words that the units of a type's fields take, before the names of values.
    [[nodiscard]] static std::size_t units_of(const type_description& type) noexcept {
        return type.names.empty() ? 0 : units_words(type.names[0]);
    }

    /// Frees the bytes of an entry that nothing refers to.
    void free(std::uint64_t offset, std::uint64_t length) const noexcept {
        auto& entry = type_at(offset);
        entry.bytes.store(static_cast<std::uint32_t>(length), relaxed);  // relaxed: as follows
        // order: dictionary.free:A pairs with dictionary.read:A, dictionary.claim:A, table.read:A,
        // dictionary.claim:B, dictionary.claim:C
        entry.magic.store(layout::free_magic, release);
    }

private:
    /// The words of a type's entry: written, or compared with those that are there. One function
    /// for both, so that they cannot differ.
    struct entry_words {
        std::byte* start;
        std::uint64_t there = 0;  ///< bytes of the entry that is there
        bool compares = false;    ///< with that entry
        bool same = true;

        /// A total of 0 is the same as any.
        template <class T>
        void put(std::uint64_t offset, T value) noexcept {
            const auto at = as_size(offset);
            // relaxed, both: before the magic of an entry that is written, after one that is there
            if (!compares) return word_at<T>(start, at).store(value, relaxed);
            if (!same || (value == 0 && at == offsetof(layout::type_entry, total))) return;
            same = at + sizeof value <= there && word_at<T>(start, at).load(relaxed) == value;
        }
        [[gnu::noinline]] void put_text(std::uint64_t at, name_view from) noexcept {
            for (const char c : from) put(at++, static_cast<std::uint8_t>(c));
        }
        /// All parts but the names of values. Returns where they end.
        [[gnu::noinline, gnu::cold]] std::uint64_t lay_out(const type_description& type,
                                                           std::uint8_t total) noexcept {
            using layout::field_entry;
            using layout::type_entry;
            put(offsetof(type_entry, kind), static_cast<std::uint8_t>(type.kind));
            put(offsetof(type_entry, total), total);
            put(offsetof(type_entry, fields), static_cast<std::uint16_t>(type.fields.size()));
            put(offsetof(type_entry, name_bytes), static_cast<std::uint16_t>(type.name.size()));
            put(offsetof(type_entry, fixed_bytes), std::uint32_t{type.fixed_bytes});
            std::uint64_t flows = 0;
            std::uint64_t at = sizeof(type_entry);
            std::uint64_t text = at + sizeof(field_entry) * type.fields.size();
            put_text(text, type.name);
            text += type.name.size();
            for (std::size_t i = 0; i < type.fields.size(); ++i, at += sizeof(field_entry)) {
                const field_description& f = type.fields[i];
                if (f.flow && i < most_flow_fields) flows |= std::uint64_t{1} << i;
                put(at + offsetof(field_entry, type), static_cast<std::uint8_t>(f.type));
                put(at + offsetof(field_entry, form),
                    static_cast<std::uint8_t>(static_cast<unsigned>(f.form) |
                                              (f.result ? field_entry::result : 0U)));
                put(at + offsetof(field_entry, count), f.count);
                put(at + offsetof(field_entry, offset), f.offset);
                put(at + offsetof(field_entry, name_bytes),
                    static_cast<std::uint16_t>(f.name.size()));
                put_text(text, f.name);
                text += f.name.size();
            }
            put(offsetof(type_entry, flow_fields), flows);
            return text;
        }
    };
    /// Claims a free entry, or one behind the last if `to_leave` bytes remain. Its magic is 0.
    [[nodiscard, gnu::noinline, gnu::cold]] std::optional<std::uint64_t> claim(
        std::uint64_t wanted, std::uint64_t to_leave = 0) const noexcept {
        if (wanted > size - to_leave) return std::nullopt;
        auto& used = in_.ring().dictionary_used;
        // relaxed, both: the bytes are the caller's alone, by the count it drew
        if (used.load(relaxed) <= size - wanted - to_leave) {
            const std::uint64_t offset = used.fetch_add(wanted, relaxed);
            if (offset <= size - wanted && offset % layout::dictionary_unit == 0) return offset;
        }
        for (auto each = entries(); each.next();) {
            if (each.magic != layout::free_magic || each.bytes < wanted) continue;
            std::uint32_t expected = layout::free_magic;
            // order: dictionary.claim:A pairs with dictionary.free:A
            if (!type_at(each.at).magic.compare_exchange_strong(expected, 0, acquire)) continue;
            if (each.bytes > wanted) free(each.at + wanted, each.bytes - wanted);
            return each.at;
        }
        return std::nullopt;
    }
    const trace_memory& in_;
};

}  // namespace trace_ring::inline v1::impl
