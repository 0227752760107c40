// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A firing of a trace point by a stopped thread, as point/machine/run.hpp requires it: the
/// thread's registers and its process's memory.
/// @code
///   stopped_firing at(thread, process, registers, function_part::entry);
///   session.fire(number, at.mode(), at, visitor);
/// @endcode
/// The mode is the mode of the firing code. As in the kernel source, the code segment determines
/// it.

#include <sys/types.h>
#include <sys/user.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <trace_ring/point/machine/run.hpp>
#include <trace_ring/record/data_model.hpp>

#include "../../launching/process_memory.hpp"
#include "../firings/firing_record.hpp"
#include "entered_calls.hpp"

namespace trace_clauses {

namespace point = trace_ring::point;
using launching::read_memory;
using launching::write_memory;

/// Always has all 64 bits, also for 32-bit programs.
using thread_registers = ::user_regs_struct;

[[nodiscard]] inline trace_ring::record::program_mode mode_of(const thread_registers& of) noexcept {
    constexpr std::uint64_t segment_of_32 = 0x23;
    return of.cs == segment_of_32 ? trace_ring::record::program_mode::ilp32
                                  : trace_ring::record::program_mode::lp64;
}
[[nodiscard]] inline std::size_t word_bytes_of(const thread_registers& of) noexcept {
    return mode_of(of) == trace_ring::record::program_mode::lp64 ? 8 : 4;
}
/// Reads a word of 4 or 8 bytes from the program, through one of its threads, because the first
/// thread may have ended.
[[nodiscard]] std::optional<std::uint64_t> read_word(::pid_t thread, std::uint64_t at,
                                                     std::size_t bytes) noexcept;

/// Valid while the thread is stopped. A model of point::firing.
class stopped_firing {
public:
    stopped_firing(::pid_t thread, ::pid_t process, const thread_registers& registers,
                   function_part part, const entered_call* begun = nullptr) noexcept
        : thread_(thread), process_(process), registers_(registers), part_(part), begun_(begun) {}

    [[nodiscard]] trace_ring::record::program_mode mode() const noexcept {
        return mode_of(registers_);
    }
    /// A stack_snapshot, followed by as much of the stack as there is room for.
    void copy_stack(std::span<std::byte> into) const noexcept;
    /// The thread's name; empty if the thread is gone.
    void copy_name(std::array<char, 16>& into) const noexcept;
    /// firing_record::call.
    [[nodiscard]] std::uint64_t call() const noexcept {
        if (part_ == function_part::exit) return registers_.rsp - word_bytes_of(registers_);
        return has_return_on_top(part_) ? registers_.rsp : 0;
    }
    [[nodiscard]] std::uint64_t word(point::context_word of) const noexcept;
    /// At the function's entry, read with the return address on top of the stack. At its exit, the
    /// kept value.
    [[nodiscard]] std::optional<std::uint64_t> argument(unsigned n) const noexcept;
    [[nodiscard]] std::uint64_t reg(unsigned n) const noexcept;
    [[nodiscard]] bool read(std::uint64_t address, std::span<std::byte> into) const noexcept {
        return read_memory(thread_, address, into);
    }
    [[nodiscard]] std::optional<std::size_t> read_text(std::uint64_t address,
                                                       std::span<std::byte> into) const noexcept;
    /// By frame pointers. At a function's entry its frame does not exist yet, and at its return it
    /// no longer exists: the caller's address is on top of the stack.
    [[nodiscard]] std::size_t stack(std::span<std::uint64_t> into) const noexcept;

private:
    [[nodiscard]] bool is_wide() const noexcept {
        return mode() == trace_ring::record::program_mode::lp64;
    }
    /// Truncates to the program's word size.
    [[nodiscard]] std::uint64_t cut(std::uint64_t value) const noexcept {
        return is_wide() ? value : value & 0xFFFFFFFFU;
    }
    [[nodiscard]] std::uint64_t real_register(unsigned n) const noexcept;
    [[nodiscard]] std::string file(const char* name) const;
    [[nodiscard]] std::uint64_t user() const noexcept;
    [[nodiscard]] std::uint64_t processor() const noexcept;
    [[nodiscard]] std::uint64_t command(std::size_t from) const noexcept;

    ::pid_t thread_;
    ::pid_t process_;
    const thread_registers& registers_;
    function_part part_;
    const entered_call* begun_;  // the call that exits; null: unknown
};
static_assert(point::firing<stopped_firing>);

}  // namespace trace_clauses
