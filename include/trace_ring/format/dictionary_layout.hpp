// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The dictionary of a trace file, byte by byte. Its entries are made of 64-byte units: a described
/// type, or numbers for types described in another numbering, or free.

#include <cstddef>
#include <cstdint>

#include <trace_ring/atomic.hpp>
#include <trace_ring/format/words.hpp>

namespace trace_ring::inline v1::layout {

/// The head of a dictionary entry, at a multiple of 64 bytes. Behind it: `fields` field_entry, then
/// the event's name, then the fields' names, without terminators; then, at a multiple of 8, the
/// names of values (record/event/value_names.hpp), if there are any; zero-padded to 64 bytes. A
/// unit without a magic was claimed by a writer that died: skip 64 bytes.
struct type_entry {
    shared_atomic<std::uint32_t> magic;  ///< type_magic; stored last
    shared_atomic<std::uint32_t> bytes;  ///< of the whole entry, a multiple of 64
    shared_atomic<std::uint32_t> root;   ///< numbering: ids are unique within one
    shared_atomic<std::uint16_t> id;     ///< 1 to 4095
    shared_atomic<std::uint8_t> kind;    ///< event_kind
    shared_atomic<std::uint8_t> total;   ///< column of its total + 1; 0: none
    shared_atomic<std::uint16_t> fields;
    shared_atomic<std::uint16_t> name_bytes;
    shared_atomic<std::uint32_t> fixed_bytes;  ///< of the payload before variable-length data
    /// Bit i: field i, of u64, is the number of a flow (zero in files of versions without flows).
    shared_atomic<std::uint64_t> flow_fields;
};
static_assert(sizeof(type_entry) == 32);
static_assert(offsetof(type_entry, id) == 12);
static_assert(offsetof(type_entry, fields) == 16);
static_assert(offsetof(type_entry, fixed_bytes) == 20);
static_assert(offsetof(type_entry, flow_fields) == 24);
inline constexpr std::uint32_t type_magic = 0x45505954;  ///< "TYPE"
inline constexpr std::size_t dictionary_unit = 64;

/// In the dictionary: numbers `first_id`, `first_id` + 1 ... of a numbering mean types of another.
struct alias_entry {
    static constexpr std::size_t most = 12;
    shared_atomic<std::uint32_t> magic;  ///< alias_magic; stored last
    shared_atomic<std::uint32_t> bytes;  ///< 64
    shared_atomic<std::uint32_t> root;
    shared_atomic<std::uint16_t> first_id;
    shared_atomic<std::uint16_t> count;
    shared_atomic<std::uint32_t> unit[most];  ///< where the type_entry lies, in units
};
static_assert(sizeof(alias_entry) == dictionary_unit);
static_assert(offsetof(alias_entry, root) == offsetof(type_entry, root));
static_assert(offsetof(alias_entry, unit) == 16);
inline constexpr std::uint32_t alias_magic = 0x41494C41;  ///< "ALIA"
/// The magic of an entry that may be used again; its length follows as in others.
inline constexpr std::uint32_t free_magic = 0x45455246;  ///< "FREE"
/// Numberings are stored in 16 bits: see sub_buffer_header::magic.
inline constexpr std::uint32_t most_numberings = 65535;
inline constexpr std::uint32_t max_totals = 64;

struct field_entry {
    shared_atomic<std::uint8_t> type;     ///< field_type
    shared_atomic<std::uint8_t> form;     ///< field_form
    shared_atomic<std::uint16_t> count;   ///< elements of a fixed array, else 1
    shared_atomic<std::uint16_t> offset;  ///< in the payload (of the u16 length, if variable)
    shared_atomic<std::uint16_t> name_bytes;
};
static_assert(sizeof(field_entry) == 8);

/// The entries of a dictionary in memory. Others may have stored anything in it: bytes that cannot
/// be an entry are skipped. Signal-safe; each walk is linear in the bytes.
struct dictionary_entries {
    std::byte* base = nullptr;  ///< the dictionary's first byte
    std::uint64_t size = 0;     ///< its bytes, a multiple of its unit

    [[nodiscard]] type_entry& type_at(std::uint64_t offset) const noexcept {
        return *reinterpret_cast<type_entry*>(base + offset);
    }
    [[nodiscard]] alias_entry& alias_at(std::uint64_t offset) const noexcept {
        return *reinterpret_cast<alias_entry*>(base + offset);
    }

    /// Calls `visit(offset, magic, bytes)` for each entry, until it returns false.
    template <class Visit>
    void for_each_entry(Visit&& visit) const {
        for (std::uint64_t at = 0; at < size;) {
            const auto& entry = type_at(at);
            // order: dictionary.read:A pairs with dictionary.write:A, dictionary.write:B,
            // dictionary.free:A
            const std::uint32_t magic = entry.magic.load(acquire);
            const std::uint64_t bytes = entry.bytes.load(relaxed);  // relaxed: after the magic
            const bool is_one = magic == type_magic || magic == alias_magic || magic == free_magic;
            if (!is_one || bytes == 0 || bytes % dictionary_unit != 0 || bytes > size - at) {
                at += dictionary_unit;
                continue;
            }
            if (!visit(at, magic, bytes)) return;
            at += bytes;
        }
    }
    /// Calls `visit(numbering, id, offset)` for each number that means something, until it returns
    /// false. The type is described at the offset, or was.
    template <class Visit>
    void for_each_binding(Visit&& visit) const {
        for_each_entry([&](std::uint64_t at, std::uint32_t magic, std::uint64_t) {
            // relaxed, to the end: after the magic
            if (magic == type_magic) {
                const auto& entry = type_at(at);
                return visit(entry.root.load(relaxed), std::uint32_t{entry.id.load(relaxed)}, at);
            }
            if (magic != alias_magic) return true;
            const auto& entry = alias_at(at);
            const std::uint32_t first = entry.first_id.load(relaxed);
            for (std::uint32_t i = 0; i < entry.count.load(relaxed) && i < alias_entry::most; ++i) {
                const std::uint64_t type =
                    std::uint64_t{entry.unit[i].load(relaxed)} * dictionary_unit;
                if (type > size - dictionary_unit) continue;
                if (!visit(entry.root.load(relaxed), first + i, type)) return false;
            }
            return true;
        });
    }
};

}  // namespace trace_ring::inline v1::layout
