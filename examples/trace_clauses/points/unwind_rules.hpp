// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// How a program describes its stack frames (.eh_frame, .debug_frame): where a function's frame is
/// and where it returns to.
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

/// Not for two threads at once. The files must outlive it.
class unwind_rules {
public:
    /// `debug`: beside that file's .eh_frame, .debug_frame; null: there is none.
    explicit unwind_rules(const elf_file& of, Dwarf* debug = nullptr);
    ~unwind_rules();
    unwind_rules(const unwind_rules&) = delete;
    unwind_rules& operator=(const unwind_rules&) = delete;

    /// Where the caller's frame ends: what a register holds, and so many bytes.
    struct frame_end {
        unsigned reg = 0;  ///< by DWARF's number
        std::int64_t offset = 0;

        friend bool operator==(const frame_end&, const frame_end&) = default;
    };
    /// Before the instruction at that address; nothing if the file does not say it so simply.
    [[nodiscard]] std::optional<frame_end> frame_end_at(std::uint64_t address);
    /// Whether the word on top of the stack is the address to return to, before the instruction at
    /// that address. Not so of the parts of a function that are jumped to with a frame, of where
    /// programs begin, and of what signals return through. Nothing: the file does not tell.
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
