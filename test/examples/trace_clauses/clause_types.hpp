// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Types in a line, and members by name, for the tests of trace clauses.

#include <cstdint>
#include <string>

#include <trace_clauses/types/type_table.hpp>

namespace clause_types {

using namespace trace_clauses;

/// The parts of a type that a clause can show, without names of structures.
[[nodiscard]] inline std::string described(const type_table& in, type_id id, int depth = 0) {
    const type& one = in[id];
    const std::string size = std::to_string(one.size.bytes);
    if (depth > 4) return "...";
    switch (one.is) {
        case type::kind::nothing:
            return "nothing " + size;
        case type::kind::integer:
            return (one.is_signed ? "i" : "u") + size;
        case type::kind::real:
            return "f" + size;
        case type::kind::pointer:
            return "*" + described(in, one.of, depth + 2);
        case type::kind::array:
            return described(in, one.of, depth + 1) + "[" + std::to_string(one.count) + "]";
        case type::kind::structure:
            break;
    }
    std::string all = "{" + size + "/" + std::to_string(one.size.alignment);
    for (const member& each : one.members) {
        all += " " + each.name + "@" + std::to_string(each.offset) + ":";
        if (each.bits.width != 0) {
            all += std::to_string(each.bits.first_bit) + "+" + std::to_string(each.bits.width) +
                   "of" + std::to_string(each.bits.bytes) + ":";
        }
        all += described(in, each.type, depth + 1);
    }
    return all + "}";
}

/// A member by name, also of one without.
[[nodiscard]] inline const member* found(const type_table& in, type_id of, const std::string& name,
                                         std::uint64_t& offset) {
    for (const member& each : in[of].members) {
        if (each.name == name) {
            offset += each.offset;
            return &each;
        }
        if (!each.name.empty()) continue;
        std::uint64_t further = offset + each.offset;
        if (const member* inside = found(in, each.type, name, further)) {
            offset = further;
            return inside;
        }
    }
    return nullptr;
}

[[nodiscard]] inline const member* found_member(const type_table& in, type_id of,
                                                const std::string& name) {
    std::uint64_t offset = 0;
    return found(in, of, name, offset);
}

}  // namespace clause_types
