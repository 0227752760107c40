// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The places of a function's arguments at its entry, as described by the program's DWARF.
/// @code
///   dwarf_places places(function, entry, mode, rules);
///   places.read(parameter, into);
/// @endcode
/// If a place is valid for the whole function, as in unoptimized code, the function itself copies
/// the argument there. Such a place is not valid at the entry, and is marked. Source: DWARF 5, 2.5
/// and 2.6.

#include <elfutils/libdw.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <trace_clauses/points/unwind_rules.hpp>

#include "type_table.hpp"

namespace trace_clauses {

/// For one function. Everything that it refers to must outlive it.
class dwarf_places {
public:
    dwarf_places(Dwarf_Die& function, std::uint64_t entry, program_mode mode, unwind_rules& rules);

    /// Sets the known part of a parameter's place. The parameter's type is already set.
    void read(Dwarf_Die& parameter, std::uint64_t bytes, function_type::parameter& into);

private:
    /// A value that an expression computes: a constant or a piece.
    struct term {
        value_piece piece{};
        bool is_register = false;  ///< the register itself, not the memory that it points to
        bool is_value = false;     ///< the value itself, not its address
    };
    enum class outcome : std::uint8_t { known, copied, lost, not_understood };
    struct expression {
        const Dwarf_Op* operations;
        std::size_t count;
    };

    /// The places that are valid at the function's entry, before any of its statements.
    [[nodiscard]] std::vector<expression> at_entry(Dwarf_Die& parameter,
                                                   Dwarf_Attribute& attribute) const;

    [[nodiscard]] outcome evaluate(Dwarf_Attribute& of, const Dwarf_Op* operations,
                                   std::size_t count, bool whole_function, std::uint64_t bytes,
                                   std::vector<value_piece>& into);
    [[nodiscard]] std::optional<term> entry_value(Dwarf_Attribute& of, const Dwarf_Op& one) const;
    [[nodiscard]] term register_of(std::uint64_t number) const;
    /// Finds the frame base, relative to the end of the caller's frame.
    void find_frame_base(Dwarf_Die& function);
    [[nodiscard]] std::int64_t word() const noexcept { return mode_ == program_mode::lp64 ? 8 : 4; }

    std::uint64_t entry_;
    program_mode mode_;
    unwind_rules& rules_;
    std::optional<std::int64_t> frame_base_{};
};

}  // namespace trace_clauses
