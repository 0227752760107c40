// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The arithmetic types of C by name.
/// @code
///   basic_of("unsigned long")->type == point::c_type::long_integer;
///   usual("size_t")->is_signed == false;
/// @endcode

#include <optional>
#include <string>

#include <trace_ring/point/c_types.hpp>

#include "type_table.hpp"

namespace trace_clauses {

namespace point = trace_ring::point;

/// An integer or floating type.
struct basic {
    point::c_type type = point::c_type::integer;
    bool is_signed = true;
    bool is_byte = false;  ///< 8 bits, but not a character

    [[nodiscard]] type_id in(type_table& types) const {
        return is_byte ? types.byte(is_signed) : types.of(type, is_signed);
    }
};

/// The meaning of "unsigned long" and similar, with the words in any order and one space between
/// them; empty if they have none.
[[nodiscard]] std::optional<basic> basic_of(const std::string& words);
/// Types that are available through standard headers: size_t, int32_t and similar.
[[nodiscard]] std::optional<basic> usual(const std::string& name);

}  // namespace trace_clauses
