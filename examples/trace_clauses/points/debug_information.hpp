// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The DWARF of a program or library, from the file itself or from a separate file, and its units.
/// @code
///   debug_information debug(program);
///   debug_information::each_unit(debug.handle(), [](Dwarf_Die& unit) { return true; });
/// @endcode

#include <dwarf.h>
#include <elfutils/libdw.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "elf_file.hpp"
#include "program_file.hpp"

namespace trace_clauses {

/// To be used by one thread at a time.
class debug_information {
public:
    /// Throws std::runtime_error, "FILE: cause", if the file can no longer be read. An invalid file
    /// of debug information is treated as missing.
    explicit debug_information(const program_file& of);
    ~debug_information();
    debug_information(const debug_information&) = delete;
    debug_information& operator=(const debug_information&) = delete;

    /// The file that programs run.
    [[nodiscard]] const elf_file& file() const noexcept { return file_; }
    /// Null: there is none.
    [[nodiscard]] Dwarf* handle() const noexcept { return handle_; }

    /// Visits each unit's Dwarf_Die& until the visitor returns false. If a unit is split, its part
    /// in the separate file is visited instead.
    template <class Tell>
    static void each_unit(Dwarf* of, Tell&& tell) {
        Dwarf_CU* unit = nullptr;
        Dwarf_Die whole, split;
        std::uint8_t kind = 0;
        while (dwarf_get_units(of, unit, &unit, nullptr, &kind, &whole, &split) == 0) {
            if (!tell(kind == DW_UT_skeleton && dwarf_tag(&split) != 0 ? split : whole)) return;
        }
    }
    /// The address where a function's code begins; for a function in several parts, the first one.
    /// 0: it has no code, or the linker removed it.
    [[nodiscard]] static std::uint64_t entry_of(Dwarf_Die& function);

private:
    elf_file file_;
    std::unique_ptr<elf_file> other_;
    Dwarf* handle_ = nullptr;
};

}  // namespace trace_clauses
