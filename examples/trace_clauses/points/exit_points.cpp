// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "exit_points.hpp"

#include <dwarf.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace trace_clauses {
namespace {

/// Those that keep the address to return to, and use it again later or in another process.
constexpr std::array<std::string_view, 14> returning_twice{
    "setjmp",     "_setjmp",     "__sigsetjmp",  "sigsetjmp",    "__setjmp",
    "getcontext", "swapcontext", "__getcontext", "setcontext",   "__swapcontext",
    "vfork",      "__vfork",     "__libc_vfork", "jump_fcontext"};
}  // namespace

exit_points::exit_points(const program_file& of)
    : debug_(of), rules_(debug_.file(), debug_.handle()), places_(of, debug_.file(), rules_) {}

void exit_points::find_entries() {
    entries_are_known_ = true;
    if (debug_.handle() == nullptr) return;
    std::size_t left = std::size_t{1} << 25;  // entries that are looked at: a file may lie
    debug_information::each_unit(debug_.handle(), [&](Dwarf_Die& unit) {
        Dwarf_Die one;
        if (dwarf_child(&unit, &one) != 0) return true;
        do {
            if (left-- == 0) return false;
            if (dwarf_tag(&one) == DW_TAG_subprogram) add_function(one);
        } while (dwarf_siblingof(&one, &one) == 0);
        return true;
    });
}

void exit_points::add_function(Dwarf_Die& one) {
    const std::uint64_t entry = debug_information::entry_of(one);
    if (entry != 0) entries_.insert(entry);
    Dwarf_Addr base = 0, begin = 0, end = 0;
    std::ptrdiff_t at = 0;
    while ((at = dwarf_ranges(&one, at, &base, &begin, &end)) > 0) {
        if (begin != entry) parts_.insert(begin);
    }
}

const char* exit_points::refusal(const program_function& of) {
    for (const std::string& name : of.names) {
        if (std::find(returning_twice.begin(), returning_twice.end(), name) !=
            returning_twice.end())
            return "it may return more than once";
        if (name.find(".cold") != std::string::npos) return "it is a part of another function";
    }
    if (!entries_are_known_) find_entries();
    if (parts_.contains(of.address) && !entries_.contains(of.address))
        return "it is a part of another function";
    const std::optional<bool> by_call = rules_.is_entered_by_call(of.address);
    if (by_call == false) return "it is not entered like a function that returns";
    if (!by_call && !entries_.contains(of.address)) {
        return "neither unwind information nor debug information shows that a function begins "
               "there";
    }
    return nullptr;
}

}  // namespace trace_clauses
