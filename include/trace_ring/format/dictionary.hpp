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
/// units and the names of values (record/event/names_shape.hpp), if there are any; zero-padded to
/// 64 bytes. A unit without a magic was claimed by a writer that died: skip 64 bytes.
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
inline constexpr std::uint32_t alias_magic = 0x41494C41;  ///< "ALIA"
/// The magic of an entry that may be used again; its length follows as in others.
inline constexpr std::uint32_t free_magic = 0x45455246;  ///< "FREE"
/// Numberings are stored in 16 bits: see sub_buffer_header::magic.
inline constexpr std::uint32_t most_numberings = 65535;

struct field_entry {
    /// In `form`: a span's end has the field, in its own payload, and the begin does not. Such
    /// fields come last. (Readers that do not know this show the records of the event as bytes.)
    static constexpr std::uint8_t result = 0x80;
    shared_atomic<std::uint8_t> type;     ///< field_type
    shared_atomic<std::uint8_t> form;     ///< field_form, or that with `result`
    shared_atomic<std::uint16_t> count;   ///< elements of a fixed array, else 1
    shared_atomic<std::uint16_t> offset;  ///< in the payload (of the u16 length, if variable)
    shared_atomic<std::uint16_t> name_bytes;
};
static_assert(sizeof(field_entry) == 8);

/// The entries of a dictionary in memory, or of a copy of one. Others may have stored anything in
/// it: bytes that cannot be an entry are skipped. Signal-safe; each walk is linear in the bytes.
/// @code
///   for (auto each = types.bindings(); each.next();) use(each.root, each.id, each.at);
/// @endcode
struct dictionary_entries {
    std::byte* base;     ///< the dictionary's first byte
    std::uint64_t size;  ///< its bytes, a multiple of its unit

    /// The last unit does not count if it is not whole.
    dictionary_entries(std::byte* first, std::uint64_t bytes) noexcept
        : base(first), size(bytes / dictionary_unit * dictionary_unit) {}

    [[nodiscard]] type_entry& type_at(std::uint64_t offset) const noexcept {
        return *static_cast<type_entry*>(static_cast<void*>(base + offset));
    }
    [[nodiscard]] alias_entry& alias_at(std::uint64_t offset) const noexcept {
        return *static_cast<alias_entry*>(static_cast<void*>(base + offset));
    }
    /// Field `i` of the type at `offset`. The caller has checked that the entry is so long.
    [[nodiscard]] field_entry& field_at(std::uint64_t offset, std::size_t i) const noexcept {
        return *static_cast<field_entry*>(
            static_cast<void*>(base + offset + sizeof(type_entry) + i * sizeof(field_entry)));
    }

    /// The name of an event, as shared bytes.
    struct event_name {
        const shared_atomic<std::uint8_t>* first = nullptr;
        std::size_t length = 0;
        bool is_there = false;
    };
    /// That of the type at `offset`, a unit of this; not there, if there is no sound type.
    [[nodiscard]] event_name name_at(std::uint64_t offset) const noexcept {
        const type_entry& entry = type_at(offset);
        // order: dictionary.read:B pairs with dictionary.write:A
        if (entry.magic.load(acquire) != type_magic) return {};
        // relaxed, to the end: written before the magic; checked, for the file may be damaged
        const std::uint64_t bytes = entry.bytes.load(relaxed);
        const std::uint64_t at = sizeof entry + sizeof(field_entry) * entry.fields.load(relaxed);
        const std::uint64_t length = entry.name_bytes.load(relaxed);
        if (bytes > size - offset || at + length > bytes) return {};
        return {&word_at<std::uint8_t>(base + offset, as_size(at)), as_size(length), true};
    }

    /// Goes from entry to entry.
    class entry_walk;
    [[nodiscard]] entry_walk entries() const noexcept;
    /// Goes from one number that means something to the next.
    class binding_walk;
    [[nodiscard]] binding_walk bindings() const noexcept;
};

class dictionary_entries::entry_walk {
public:
    explicit entry_walk(const dictionary_entries& of) noexcept : of_(of) {}
    /// Goes to the next entry, or to the next unit if there is none; `bytes` is then 0. False:
    /// there are no more. The entry may be freed, and its bytes used, before the next step.
    [[gnu::noinline]] bool step() noexcept {
        if (next_ >= of_.size) return false;
        at = next_;
        const auto& entry = of_.type_at(at);
        // order: dictionary.read:A pairs with dictionary.write:A, dictionary.write:B,
        // dictionary.free:A
        magic = entry.magic.load(acquire);
        bytes = entry.bytes.load(relaxed);  // relaxed: after the magic
        if (!is_entry() || bytes % dictionary_unit != 0 || bytes > of_.size - at) bytes = 0;
        next_ += bytes != 0 ? bytes : dictionary_unit;
        return true;
    }
    /// Goes to the next entry. False: there are no more.
    bool next() noexcept {
        while (step()) {
            if (bytes != 0) return true;
        }
        return false;
    }
    /// Whether an entry begins here, be its length possible or not.
    [[nodiscard]] bool is_entry() const noexcept {
        return magic == type_magic || magic == alias_magic || magic == free_magic;
    }

    std::uint64_t at = 0;
    std::uint64_t bytes = 0;
    std::uint32_t magic = 0;

private:
    const dictionary_entries of_;
    std::uint64_t next_ = 0;
};

class dictionary_entries::binding_walk {
public:
    explicit binding_walk(const dictionary_entries& of) noexcept : of_(of), entry_(of) {}
    [[gnu::noinline]] bool next() noexcept {
        for (;;) {
            // relaxed, to the end: after the magic
            const auto& alias = of_.alias_at(entry_.at);
            while (left_ != 0) {
                --left_;
                at = std::uint64_t{alias.unit[i_].load(relaxed)} * dictionary_unit;
                id = first_ + i_++;
                if (at <= of_.size - dictionary_unit) return true;
            }
            if (!entry_.next()) return false;
            // Both kinds of entry have it in the same place.
            root = of_.type_at(entry_.at).root.load(relaxed);
            if (entry_.magic == type_magic) {
                at = entry_.at;
                id = of_.type_at(at).id.load(relaxed);
                return true;
            }
            if (entry_.magic != alias_magic) continue;
            i_ = 0;
            first_ = of_.alias_at(entry_.at).first_id.load(relaxed);
            const std::uint32_t count = of_.alias_at(entry_.at).count.load(relaxed);
            left_ = count < alias_entry::most ? count : std::uint32_t{alias_entry::most};
        }
    }

    std::uint32_t root = 0;  ///< the numbering
    std::uint32_t id = 0;
    std::uint64_t at = 0;  ///< where the type is described, or was

private:
    const dictionary_entries of_;
    entry_walk entry_;
    std::uint32_t first_ = 0;
    std::uint32_t i_ = 0;
    std::uint32_t left_ = 0;
};

inline dictionary_entries::entry_walk dictionary_entries::entries() const noexcept {
    return entry_walk(*this);
}
inline dictionary_entries::binding_walk dictionary_entries::bindings() const noexcept {
    return binding_walk(*this);
}

}  // namespace trace_ring::inline v1::layout
