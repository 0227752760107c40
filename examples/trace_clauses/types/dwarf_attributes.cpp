// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "dwarf_attributes.hpp"

#include <dwarf.h>

#include <cstddef>

namespace trace_clauses {

bool has_flag(Dwarf_Die& of, unsigned which) {
    bool is = false;
    Dwarf_Attribute attribute;
    return dwarf_formflag(dwarf_attr(&of, which, &attribute), &is) == 0 && is;
}

bool is_declaration(Dwarf_Die& of) {
    return has_flag(of, DW_AT_declaration);
}

std::string tag_of(Dwarf_Die& of) {
    switch (dwarf_tag(&of)) {
        case DW_TAG_structure_type:
        case DW_TAG_class_type:
            return "struct";
        case DW_TAG_union_type:
            return "union";
        case DW_TAG_enumeration_type:
            return "enum";
        default:
            return {};
    }
}

bool is_c(Dwarf_Die& unit) {
    const int language = dwarf_srclang(&unit);
    return language == DW_LANG_C || language == DW_LANG_C89 || language == DW_LANG_C99 ||
           language == DW_LANG_C11;
}

std::optional<std::uint64_t> number_of(Dwarf_Die& of, unsigned which) {
    Dwarf_Attribute attribute;
    Dwarf_Word value = 0;
    if (dwarf_formudata(dwarf_attr_integrate(&of, which, &attribute), &value) != 0) {
        return std::nullopt;
    }
    return value;
}

std::optional<std::int64_t> constant_of(Dwarf_Die& enumerator) {
    Dwarf_Attribute attribute;
    if (dwarf_attr(&enumerator, DW_AT_const_value, &attribute) == nullptr) return std::nullopt;
    // A constant of one to eight bytes without a sign is not negative: compilers write negative
    // ones in LEB128.
    const unsigned form = dwarf_whatform(&attribute);
    Dwarf_Word value = 0;
    Dwarf_Sword with_sign = 0;
    if (form == DW_FORM_sdata || form == DW_FORM_implicit_const) {
        if (dwarf_formsdata(&attribute, &with_sign) != 0) return std::nullopt;
        return with_sign;
    }
    if (dwarf_formudata(&attribute, &value) != 0) return std::nullopt;
    return static_cast<std::int64_t>(value);
}

bool find_type(Dwarf_Die& of, Dwarf_Die& found) {
    Dwarf_Attribute attribute;
    return dwarf_formref_die(dwarf_attr_integrate(&of, DW_AT_type, &attribute), &found) != nullptr;
}

std::optional<std::uint64_t> place_of(Dwarf_Die& member) {
    Dwarf_Attribute attribute;
    if (dwarf_attr(&member, DW_AT_data_member_location, &attribute) == nullptr) {
        return std::nullopt;
    }
    Dwarf_Word value = 0;
    if (dwarf_formudata(&attribute, &value) == 0) return value;
    // DWARF 2 and 3 have an expression here.
    Dwarf_Op* operations = nullptr;
    std::size_t count = 0;
    if (dwarf_getlocation(&attribute, &operations, &count) != 0 || count != 1 ||
        operations[0].atom != DW_OP_plus_uconst) {
        return std::nullopt;  // for a virtual base class: known only at run time
    }
    return operations[0].number;
}

std::uint64_t first_bit_of(Dwarf_Die& member, std::uint64_t place, std::uint64_t bytes,
                           std::uint64_t width) {
    if (const auto first = number_of(member, DW_AT_data_bit_offset)) return *first;
    Dwarf_Attribute attribute;
    Dwarf_Sword from_highest = 0;
    // Before DWARF 4, bits are counted from the highest bit of the word.
    if (dwarf_formsdata(dwarf_attr(&member, DW_AT_bit_offset, &attribute), &from_highest) != 0) {
        return place * 8;
    }
    const auto word = number_of(member, DW_AT_byte_size).value_or(bytes);
    return (place + word) * 8 - static_cast<std::uint64_t>(from_highest) - width;
}

std::optional<point::bit_field> bits_at(std::uint64_t at, std::uint64_t width, point::extent type,
                                        std::uint64_t whole) {
    if (type.bytes == 0 || type.bytes > 8 || width == 0 || width > type.bytes * 8 ||
        at > whole * 8 || width > whole * 8 - at) {
        return std::nullopt;
    }
    // Tries aligned words first. A bit-field that is not within one of them is in a packed
    // structure.
    for (const std::uint64_t alignment : {type.alignment, std::uint64_t{1}}) {
        const auto found = point::layout::word_of(at, width, alignment);
        if (found && (alignment == 1 ||
                      (found->bytes <= type.bytes && found->offset + found->bytes <= whole))) {
            return found;
        }
    }
    return std::nullopt;
}

}  // namespace trace_clauses
