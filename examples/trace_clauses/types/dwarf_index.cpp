// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "dwarf_index.hpp"

#include <dwarf.h>

#include <trace_clauses/points/debug_information.hpp>

#include "dwarf_attributes.hpp"

namespace trace_clauses {

dwarf_index::dwarf_index(Dwarf* of) {
    debug_information::each_unit(of, [this](Dwarf_Die& unit) {
        if (left_ == 0) return false;
        --left_;
        look_at_children(unit, "", !is_c(unit), 0);
        return left_ != 0;
    });
}

void dwarf_index::look_at_children(Dwarf_Die& of, const std::string& around, bool cxx, int depth) {
    constexpr int deepest = 32;
    Dwarf_Die one;
    if (depth == deepest || dwarf_child(&of, &one) != 0) return;
    do {
        if (left_ == 0) return;
        --left_;
        look_at(one, around, cxx, depth);
    } while (dwarf_siblingof(&one, &one) == 0);
}

void dwarf_index::look_at(Dwarf_Die& one, const std::string& around, bool cxx, int depth) {
    const int tag = dwarf_tag(&one);
    if (tag == DW_TAG_subprogram) return add_function(one);
    const std::string kind = tag_of(one);
    if (kind.empty() && tag != DW_TAG_typedef && tag != DW_TAG_namespace) return;
    const char* const own = dwarf_diename(&one);
    if (tag == DW_TAG_enumeration_type) {
        const bool scoped = own != nullptr && has_flag(one, DW_AT_enum_class);
        enumerations_.emplace_back(one, scoped ? around + own + "::" : around);
    }
    if (own == nullptr && tag != DW_TAG_namespace) return;
    const std::string name = around + (own == nullptr ? "(anonymous namespace)" : own);
    if (tag == DW_TAG_typedef) {
        defined_.emplace(name, one);
    } else if (!kind.empty()) {
        // A declaration with a signature refers to its definition.
        if (is_declaration(one) && dwarf_hasattr(&one, DW_AT_signature) == 0) {
            declared_.emplace(one.addr, kind + " " + name);
        } else {
            defined_.emplace(kind + " " + name, one);
            if (cxx) defined_.emplace(name, one);
        }
    }
    if (cxx && tag != DW_TAG_typedef) look_at_children(one, name + "::", cxx, depth + 1);
}

void dwarf_index::add_function(Dwarf_Die& one) {
    const std::uint64_t entry = debug_information::entry_of(one);
    if (entry == 0) return;
    by_address_.emplace(entry, one);
    if (const char* const name = dwarf_diename(&one)) functions_.emplace(name, one);
    Dwarf_Attribute attribute;
    for (const unsigned linked : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name}) {
        const char* const name = dwarf_formstring(dwarf_attr_integrate(&one, linked, &attribute));
        if (name != nullptr) functions_.emplace(name, one);
    }
}

const enumerator* dwarf_index::value(const std::string& name) {
    add_values();
    const auto found = values_.find(name);
    return found == values_.end() ? nullptr : &found->second;
}

void dwarf_index::add_values() {
    for (auto& [enumeration, around] : std::exchange(enumerations_, {})) {
        Dwarf_Die one;
        if (dwarf_child(&enumeration, &one) != 0) continue;
        bool is_unsigned = true;
        Dwarf_Die child = one;
        do {
            if (dwarf_tag(&child) == DW_TAG_enumerator)
                is_unsigned = is_unsigned && constant_of(child).value_or(0) >= 0;
        } while (dwarf_siblingof(&child, &child) == 0);
        do {
            if (left_ == 0) return;
            --left_;
            const char* const name = dwarf_diename(&one);
            const auto value = constant_of(one);
            if (dwarf_tag(&one) != DW_TAG_enumerator || name == nullptr || !value) continue;
            add_value(name, {*value, is_unsigned});
            if (!around.empty()) add_value(around + name, {*value, is_unsigned});
        } while (dwarf_siblingof(&one, &one) == 0);
    }
}

void dwarf_index::add_value(const std::string& name, const enumerator& value) {
    enumerator& known = values_.try_emplace(name, value).first->second;
    if (known.value != value.value) known.other = value.value;
    known.is_unsigned = known.is_unsigned && value.is_unsigned;
}

}  // namespace trace_clauses
