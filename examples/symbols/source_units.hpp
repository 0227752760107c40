// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file Finds the source unit of an address.

#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace symbols {

/// For one module. clang writes no table of address ranges, only the ranges in each unit. elfutils
/// makes a table from these since 0.190; here, one is made for an address that is in no table.
class source_units {
public:
    struct found {
        Dwarf_Die* unit = nullptr;
        Dwarf_Addr bias = 0;  ///< to be subtracted from an address to have the unit's
    };

    [[nodiscard]] found find(Dwfl_Module* module, std::uint64_t address) {
        found out;
        out.unit = dwfl_module_addrdie(module, address, &out.bias);
        if (out.unit != nullptr) return out;
        if (!made_) make(module);
        for (const range& each : ranges_) {
            if (each.start <= address && address < each.end) return each.of;
        }
        return out;
    }

private:
    struct range {
        Dwarf_Addr start, end;
        found of;
    };

    void make(Dwfl_Module* module) {
        made_ = true;
        found each;
        while ((each.unit = dwfl_module_nextcu(module, each.unit, &each.bias)) != nullptr) {
            Dwarf_Addr base = 0, start = 0, end = 0;
            std::ptrdiff_t at = 0;
            while ((at = dwarf_ranges(each.unit, at, &base, &start, &end)) > 0)
                ranges_.push_back({start + each.bias, end + each.bias, each});
        }
    }

    std::vector<range> ranges_;
    bool made_ = false;
};

}  // namespace symbols
