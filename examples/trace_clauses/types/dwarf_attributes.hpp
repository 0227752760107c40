// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What an entry of DWARF says of a type or a member, in whichever of the ways that its versions
/// have.
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

/// A constant of it, or of the entry that it completes.
[[nodiscard]] std::optional<std::uint64_t> number_of(Dwarf_Die& of, unsigned which);
/// What an enumeration's name stands for.
[[nodiscard]] std::optional<std::int64_t> constant_of(Dwarf_Die& enumerator);
[[nodiscard]] bool has_flag(Dwarf_Die& of, unsigned which);
/// Whether it is only said that there is such a type.
[[nodiscard]] bool is_declaration(Dwarf_Die& of);
/// "struct", "union", "enum"; empty for all that has no such tag.
[[nodiscard]] std::string tag_of(Dwarf_Die& of);
/// Whether a unit was compiled from C, where no types are within others.
[[nodiscard]] bool is_c(Dwarf_Die& unit);
/// Its type; false if it has none.
[[nodiscard]] bool find_type(Dwarf_Die& of, Dwarf_Die& found);

/// Where a member is in its structure; nothing if it is known at run time only, or not said.
[[nodiscard]] std::optional<std::uint64_t> place_of(Dwarf_Die& member);
/// The first bit of a bit-field, from its structure's lowest; its type has `bytes`, and its word is
/// at `place`, in versions that say so.
[[nodiscard]] std::uint64_t first_bit_of(Dwarf_Die& member, std::uint64_t place,
                                         std::uint64_t bytes, std::uint64_t width);
/// Bits `at` to `at + width` of a structure of `whole` bytes, of an integer `type`, as
/// point::layout tells it; nothing if there can be no such bit-field.
[[nodiscard]] std::optional<point::bit_field> bits_at(std::uint64_t at, std::uint64_t width,
                                                      point::extent type, std::uint64_t whole);

}  // namespace trace_clauses
