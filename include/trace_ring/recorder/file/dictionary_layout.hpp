// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The dictionary of a trace file, byte by byte: entries of 64-byte units, each a type that is
/// described, or numbers that mean types described for others, or free.

#include <cstddef>
#include <cstdint>

#include <trace_ring/atomic.hpp>

namespace trace_ring::inline v1::layout {

/// The head of a dictionary entry, at a multiple of 64 bytes. After it: `fields` field_entry, then
/// the event's name, then the fields' names, without terminators, zero-padded to 64 bytes.
/// A unit whose magic is not there was claimed by a writer that died: skip 64 bytes.
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
    /// Bit i: field i, of u64, is the number of a flow (zero in files made before there were any).
    shared_atomic<std::uint64_t> flow_fields;
};
static_assert(sizeof(type_entry) == 32);
static_assert(offsetof(type_entry, id) == 12);
static_assert(offsetof(type_entry, fields) == 16);
static_assert(offsetof(type_entry, fixed_bytes) == 20);
static_assert(offsetof(type_entry, flow_fields) == 24);
inline constexpr std::uint32_t type_magic = 0x45505954;  ///< "TYPE"
inline constexpr std::size_t dictionary_unit = 64;

/// In the dictionary: numbers `first_id`, `first_id` + 1 ... of a numbering mean types that are
/// described for another.
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
/// The magic of an entry, its length behind it as in others, that may be used again.
inline constexpr std::uint32_t free_magic = 0x45455246;  ///< "FREE"
/// Numberings are told in 16 bits: see sub_buffer_header::magic.
inline constexpr std::uint32_t most_numberings = 65535;
inline constexpr std::uint32_t max_event_id = 4095;
inline constexpr std::uint32_t max_totals = 64;

struct field_entry {
    shared_atomic<std::uint8_t> type;     ///< field_type
    shared_atomic<std::uint8_t> form;     ///< field_form
    shared_atomic<std::uint16_t> count;   ///< elements of a fixed array, else 1
    shared_atomic<std::uint16_t> offset;  ///< in the payload (of the u16 length, if variable)
    shared_atomic<std::uint16_t> name_bytes;
};
static_assert(sizeof(field_entry) == 8);

}  // namespace trace_ring::inline v1::layout
