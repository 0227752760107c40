// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Determines which classes are passed by address, from the functions that DWARF lists for them.
/// @code
///   class_copying copied(die);
///   for (Dwarf_Die& each : children) copied.look_at(each);
///   if (copied.by_own_code(a_member_is)) pass_address();
/// @endcode

#include <dwarf.h>
#include <elfutils/libdw.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "dwarf_attributes.hpp"

namespace trace_clauses {

/// Whether a class has its own code to copy or destroy objects. Calls then pass its objects by
/// address (Itanium C++ ABI, "non-trivial for the purposes of calls").
class class_copying {
public:
    explicit class_copying(Dwarf_Die& of) : of_(of) {
        constexpr std::uint64_t pass_by_reference = 4, pass_by_value = 5;  // DW_CC_...
        const auto told = number_of(of, DW_AT_calling_convention);
        if (told == pass_by_reference) told_ = true;
        if (told == pass_by_value) told_ = false;
    }
    void look_at(Dwarf_Die& one) {
        if (dwarf_tag(&one) == DW_TAG_inheritance)
            own_ = own_ || number_of(one, DW_AT_virtuality).value_or(0) != 0;
        if (dwarf_tag(&one) != DW_TAG_subprogram) return;
        own_ = own_ || number_of(one, DW_AT_virtuality).value_or(0) != 0;
        const char* const name = dwarf_diename(&one);
        const char* const of = dwarf_diename(&of_);
        if (name == nullptr || of == nullptr || has_flag(one, DW_AT_artificial)) return;
        constexpr std::uint64_t in_class = 1;  // DW_DEFAULTED_in_class
        const bool by_default = number_of(one, DW_AT_defaulted) == in_class;
        if (name[0] == '~') {
            own_ = own_ || !by_default;
            return;
        }
        // The name of a template includes its arguments; a constructor's name does not.
        const std::string_view whole(of);
        if (whole.substr(0, whole.find('<')) != name || !takes_its_like(one)) return;
        if (has_flag(one, DW_AT_deleted)) {
            deleted_ = true;
        } else {
            copies_ = true;
            own_ = own_ || !by_default;
        }
    }
    [[nodiscard]] bool by_own_code(bool of_members) const noexcept {
        return told_.value_or(own_ || of_members || (deleted_ && !copies_));
    }

private:
    /// Returns whether the constructor's only argument is another object of the class.
    [[nodiscard]] bool takes_its_like(Dwarf_Die& constructor) const {
        Dwarf_Die one;
        if (dwarf_child(&constructor, &one) != 0) return false;
        do {
            if (dwarf_tag(&one) != DW_TAG_formal_parameter || has_flag(one, DW_AT_artificial))
                continue;
            Dwarf_Die at;
            if (!find_type(one, at)) return false;
            const int tag = dwarf_tag(&at);
            if (tag != DW_TAG_reference_type && tag != DW_TAG_rvalue_reference_type) return false;
            Dwarf_Die to;
            if (!find_type(at, to)) return false;
            while (dwarf_tag(&to) == DW_TAG_const_type || dwarf_tag(&to) == DW_TAG_volatile_type) {
                Dwarf_Die next;
                if (!find_type(to, next)) return false;
                to = next;
            }
            return to.addr == of_.addr;
        } while (dwarf_siblingof(&one, &one) == 0);
        return false;
    }

    Dwarf_Die& of_;
    std::optional<bool> told_;
    bool own_ = false;
    bool copies_ = false;
    bool deleted_ = false;
};

}  // namespace trace_clauses
