// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Where a program's DWARF says that a function's arguments are when it is entered.
/// @code
///   dwarf_places places(function, entry, mode, rules);
///   places.read(parameter, into);
/// @endcode
/// Of a place that holds for the whole function, as in code that is not optimized, the function
/// itself copies the argument there: that says nothing of the entry, and is told apart. Source:
/// DWARF 5, 2.5 and 2.6.

#include <elfutils/libdw.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <trace_clauses/points/unwind_rules.hpp>

#include "type_table.hpp"

namespace trace_clauses {

/// Of one function. All that is named must outlive it.
class dwarf_places {
public:
    dwarf_places(Dwarf_Die& function, std::uint64_t entry, program_mode mode, unwind_rules& rules);

    /// Sets what is known of a parameter's place; its type is set already.
    void read(Dwarf_Die& parameter, std::uint64_t bytes, function_type::parameter& into);

private:
    /// A value that an expression computes: a constant, or what a piece says.
    struct term {
        value_piece piece{};
        bool is_register = false;  ///< the register itself, and not what it points to
        bool is_value = false;     ///< the value itself, and not where it is
    };
    enum class outcome : std::uint8_t { known, copied, lost, not_understood };
    struct expression {
        const Dwarf_Op* operations;
        std::size_t count;
    };

    /// What holds where the function is entered, before any of its statements.
    [[nodiscard]] std::vector<expression> at_entry(Dwarf_Die& parameter,
                                                   Dwarf_Attribute& attribute) const;

    [[nodiscard]] outcome evaluate(Dwarf_Attribute& of, const Dwarf_Op* operations,
                                   std::size_t count, bool whole_function, std::uint64_t bytes,
                                   std::vector<value_piece>& into);
    [[nodiscard]] std::optional<term> entry_value(Dwarf_Attribute& of, const Dwarf_Op& one) const;
    [[nodiscard]] term register_of(std::uint64_t number) const;
    /// The frame's base, from where the caller's frame ends.
    void find_frame_base(Dwarf_Die& function);
    [[nodiscard]] std::int64_t word() const noexcept { return mode_ == program_mode::lp64 ? 8 : 4; }

    std::uint64_t entry_;
    program_mode mode_;
    unwind_rules& rules_;
    std::optional<std::int64_t> frame_base_{};
};

}  // namespace trace_clauses
