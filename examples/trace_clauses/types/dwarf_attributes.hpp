// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Reads the attributes of a type or a member from a DWARF entry, in the forms of all DWARF
/// versions.
/// @code
///   const auto bytes = number_of(entry, DW_AT_byte_size);
///   const auto offset = place_of(member);
/// @endcode

#include <elfutils/libdw.h>

#include <cstdint>
#include <optional>
#include <string>

#include <trace_ring/point/layout.hpp>

namespace trace_clauses {

namespace point = trace_ring::point;

/// A constant of the entry, or of the entry that it completes.
[[nodiscard]] std::optional<std::uint64_t> number_of(Dwarf_Die& of, unsigned which);
/// An enumerator's value.
[[nodiscard]] std::optional<std::int64_t> constant_of(Dwarf_Die& enumerator);
[[nodiscard]] bool has_flag(Dwarf_Die& of, unsigned which);
/// Whether the type is only declared.
[[nodiscard]] bool is_declaration(Dwarf_Die& of);
/// "struct", "union", "enum"; empty for other entries.
[[nodiscard]] std::string tag_of(Dwarf_Die& of);
/// Whether a unit was compiled from C, where types are not nested.
[[nodiscard]] bool is_c(Dwarf_Die& unit);
/// The entry's type; false if it has none.
[[nodiscard]] bool find_type(Dwarf_Die& of, Dwarf_Die& found);

/// The offset of a member in its structure; empty if it is missing, or known only at run time.
[[nodiscard]] std::optional<std::uint64_t> place_of(Dwarf_Die& member);
/// The first bit of a bit-field, counted from the structure's lowest bit. Its type has `bytes`, and
/// its word is at `place` in the versions that give it.
[[nodiscard]] std::uint64_t first_bit_of(Dwarf_Die& member, std::uint64_t place,
                                         std::uint64_t bytes, std::uint64_t width);
/// Bits `at` to `at + width` of a structure of `whole` bytes, as an integer of type `type`, in the
/// form of point::layout; empty if there can be no such bit-field.
[[nodiscard]] std::optional<point::bit_field> bits_at(std::uint64_t at, std::uint64_t width,
                                                      point::extent type, std::uint64_t whole);

}  // namespace trace_clauses
