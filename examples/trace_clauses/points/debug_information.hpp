// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The DWARF of a program or library, which is in the file itself or in one of its own, and its
/// units.
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

/// Not for two threads at once.
class debug_information {
public:
    /// Throws std::runtime_error, "FILE: cause", if the file cannot be read any more. What is wrong
    /// with the file of its debug information is as if that were not there.
    explicit debug_information(const program_file& of);
    ~debug_information();
    debug_information(const debug_information&) = delete;
    debug_information& operator=(const debug_information&) = delete;

    /// The file that programs run.
    [[nodiscard]] const elf_file& file() const noexcept { return file_; }
    /// Null: there is none.
    [[nodiscard]] Dwarf* handle() const noexcept { return handle_; }

    /// Calls `tell(Dwarf_Die&)` with each unit, until that is false. What is split off of a unit is
    /// in a file of its own, and told instead.
    template <class Tell>
    static void each_unit(Dwarf* of, Tell&& tell) {
        Dwarf_CU* unit = nullptr;
        Dwarf_Die whole, split;
        std::uint8_t kind = 0;
        while (dwarf_get_units(of, unit, &unit, nullptr, &kind, &whole, &split) == 0) {
            if (!tell(kind == DW_UT_skeleton && dwarf_tag(&split) != 0 ? split : whole)) return;
        }
    }
    /// Where a function's code begins: of one in several parts, the first. 0: it has none, or the
    /// linker left it out.
    [[nodiscard]] static std::uint64_t entry_of(Dwarf_Die& function);

private:
    elf_file file_;
    std::unique_ptr<elf_file> other_;
    Dwarf* handle_ = nullptr;
};

}  // namespace trace_clauses
