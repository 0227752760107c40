// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Finds the `ret` instructions of functions. An exit point there changes neither the stack nor the
/// return address, so exceptions, longjmp and multiple stacks are not affected.
/// @code
///   return_places places(program, file, rules);
///   const auto found = places.of(function);
///   if (found.doubt == nullptr) set_breakpoints(found.offsets);
/// @endcode

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "elf_file.hpp"
#include "instruction.hpp"
#include "landing_pads.hpp"
#include "program_file.hpp"
#include "unwind_rules.hpp"

namespace trace_clauses {

/// To be used by one thread at a time. The objects that it is constructed from must outlive it.
class return_places {
public:
    struct result {
        std::vector<std::uint64_t> offsets{};  ///< in the file
        const char* doubt = nullptr;           ///< why the function may also leave at other places
        bool repeats_entry = false;            ///< it jumps to its first instruction
        std::vector<std::uint64_t> jumps{};    ///< offsets of jumps that may leave the function
    };

    return_places(const program_file& of, const elf_file& file, unwind_rules& rules);

    /// Decodes the function, its parts, and the functions around them, each of these once: linear
    /// in their sizes. A function without doubt and without places never returns.
    [[nodiscard]] result of(const program_function& one);

private:
    /// The code of a function, or of a separate part of it.
    struct piece {
        const program_function* from = nullptr;
        std::vector<std::byte> code{};
        std::vector<instruction> instructions{};
        bool is_complete = false;  ///< it consists of instructions only

        [[nodiscard]] bool holds(std::uint64_t address) const noexcept {
            return address - from->address < from->size;
        }
        /// Also finds an instruction after a lock prefix: single-threaded programs jump over the
        /// prefix.
        [[nodiscard]] bool has_instruction_at(std::uint64_t address) const noexcept;
        [[nodiscard]] bool jumps_into(const program_function& other) const noexcept;
    };
    using pieces = std::vector<piece>;

    [[nodiscard]] std::vector<std::uint64_t> jumps_out_of(const pieces& all) const;

    [[nodiscard]] piece decoded(const program_function& one) const;
    // Each returns the reason for doubt, or null.
    [[nodiscard]] const char* doubt_of(const program_function& one, pieces& all);
    [[nodiscard]] const char* add_parts(pieces& all) const;
    [[nodiscard]] const char* doubt_of_stack(const piece& one) const;
    [[nodiscard]] const char* doubt_of_jumps(const piece& one, const pieces& all) const;
    [[nodiscard]] const char* doubt_of_entries(const pieces& all);

    [[nodiscard]] bool is_switch(std::size_t jump, const piece& one, const pieces& all) const;
    /// Collects the jumps that leave the functions nearby.
    void look_around(const program_function& one);

    const program_file& program_;
    const elf_file& file_;
    unwind_rules& rules_;
    instruction_decoder decode_;
    std::uint64_t got_ = 0;        // i386: what jump tables are relative to
    std::uint64_t morestack_ = 0;  // which calls what follows its call, on another stack; 0: none
    landing_pads pads_;
    // By the name before ".cold": the parts, and the functions that they may be of.
    std::map<std::string, std::vector<const program_function*>> parts_;
    std::map<std::string, std::vector<const program_function*>> owners_;
    std::multimap<std::uint64_t, const program_function*> jumps_out_;  // by the target
    std::vector<bool> looked_at_;                                      // by the function's number
};

}  // namespace trace_clauses
