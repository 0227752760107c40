// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Which functions catch exceptions, or clean up behind them: the unwinder may lead into code of
/// theirs that no jump leads to.
/// @code
///   landing_pads pads(file);
///   if (pads.may_be_in(function.address)) look_for_parts(function);
/// @endcode
/// By the program's .eh_frame: those functions' entries there name a table (LSDA). Source: the
/// Linux Standard Base, "Exception Frames".

#include <cstdint>
#include <set>

#include "elf_file.hpp"

namespace trace_clauses {

class landing_pads {
public:
    /// Linear in the size of .eh_frame.
    explicit landing_pads(const elf_file& of);

    /// True, too, if the file cannot be understood.
    [[nodiscard]] bool may_be_in(std::uint64_t function) const {
        return !is_understood_ || functions_.contains(function);
    }

private:
    void read(const elf_file& of, Elf_Scn* section, std::uint64_t address);

    bool is_understood_ = true;
    std::set<std::uint64_t> functions_;
};

}  // namespace trace_clauses
