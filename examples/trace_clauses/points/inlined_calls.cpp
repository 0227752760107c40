// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "inlined_calls.hpp"

#include <dwarf.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>

#include <trace_ring/glob.hpp>

#include "debug_information.hpp"

namespace trace_clauses {

inlined_calls::inlined_calls(const program_file& of) {
    try {
        const debug_information debug(of);
        if (debug.handle() == nullptr) return;
        debug_information::each_unit(debug.handle(), [this](Dwarf_Die& unit) {
            look_at_children(unit, 0);
            return left_ != 0;
        });
    } catch (const std::runtime_error&) {
        // It was there when its functions were read.
    }
}

void inlined_calls::look_at_children(Dwarf_Die& of, int depth) {
    constexpr int deepest = 64;
    Dwarf_Die one;
    if (depth == deepest || dwarf_child(&of, &one) != 0) return;
    do {
        if (left_ == 0) return;
        --left_;
        const int tag = dwarf_tag(&one);
        if (tag == DW_TAG_inlined_subroutine) {
            Dwarf_Attribute attribute;
            const char* name =
                dwarf_formstring(dwarf_attr_integrate(&one, DW_AT_linkage_name, &attribute));
            if (name == nullptr) name = dwarf_diename(&one);
            if (name != nullptr) ++places_[name];
        }
        if (tag == DW_TAG_inlined_subroutine || tag == DW_TAG_subprogram ||
            tag == DW_TAG_lexical_block || tag == DW_TAG_namespace ||
            tag == DW_TAG_structure_type || tag == DW_TAG_class_type) {
            look_at_children(one, depth + 1);
        }
    } while (dwarf_siblingof(&one, &one) == 0);
}

std::size_t inlined_calls::of(std::span<const std::string> names) const {
    name_reader readable;
    for (const std::string& each : names) {
        if (const auto found = places_.find(each); found != places_.end()) return found->second;
        // Of one that no other file can call, it has the author's name alone.
        if (!each.starts_with("_ZL")) continue;
        const std::string written = readable(each);
        if (const auto found = places_.find(written.substr(0, written.find('(')));
            found != places_.end())
            return found->second;
    }
    return 0;
}

std::vector<std::pair<std::string, std::size_t>> inlined_calls::matching(
    std::string_view glob) const {
    std::vector<std::pair<std::string, std::size_t>> found;
    name_reader readable;
    const std::string with_parameters = std::string(glob) + "(*)*";
    for (const auto& [name, places] : places_) {
        const std::string written = readable(name);
        if (trace_ring::matches_glob(glob, name) || trace_ring::matches_glob(glob, written) ||
            trace_ring::matches_glob(with_parameters, written)) {
            found.emplace_back(written, places);
        }
    }
    std::sort(found.begin(), found.end());
    return found;
}

}  // namespace trace_clauses
