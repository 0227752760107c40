// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A program's description of its stack frames (.eh_frame, .debug_frame): where a function's frame
/// is, and where it returns to.
/// @code
///   unwind_rules rules(file);
///   if (rules.is_entered_by_call(address)) may_await_return(address);
/// @endcode

#include <elfutils/libdw.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "elf_file.hpp"

namespace trace_clauses {

/// To be used by one thread at a time. The files must outlive it.
class unwind_rules {
public:
    /// `debug`: the source of .debug_frame, in addition to the file's .eh_frame; null: none.
    explicit unwind_rules(const elf_file& of, Dwarf* debug = nullptr);
    ~unwind_rules();
    unwind_rules(const unwind_rules&) = delete;
    unwind_rules& operator=(const unwind_rules&) = delete;

    /// The end of the caller's frame: a register's value plus a number of bytes.
    struct frame_end {
        unsigned reg = 0;  ///< DWARF's register number
        std::int64_t offset = 0;

        friend bool operator==(const frame_end&, const frame_end&) = default;
    };
    /// The frame end before the instruction at that address; empty if the file describes it in a
    /// more complex way.
    [[nodiscard]] std::optional<frame_end> frame_end_at(std::uint64_t address);
    /// Returns whether the return address is on top of the stack before the instruction at that
    /// address. This is false for parts of a function that are reached by a jump with a frame, for
    /// program entry points, and for the code through which signal handlers return. Empty: the file
    /// does not describe it.
    [[nodiscard]] std::optional<bool> is_entered_by_call(std::uint64_t address);

private:
    struct freed {
        void operator()(Dwarf_Frame* of) const noexcept;
    };
    using frame = std::unique_ptr<Dwarf_Frame, freed>;
    [[nodiscard]] frame frame_at(std::uint64_t address);
    [[nodiscard]] static std::optional<frame_end> end_of(Dwarf_Frame& of);

    program_mode mode_;
    Dwarf_CFI* loaded_ = nullptr;  // .eh_frame
    Dwarf_CFI* debug_ = nullptr;   // .debug_frame, which the Dwarf owns
};

}  // namespace trace_clauses
