// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A firing of a trace point by a thread that stands still there, as point/machine/run.hpp asks for
/// it: by its registers, and its process's memory.
/// @code
///   stopped_firing at(thread, process, registers, function_part::entry);
///   session.fire(number, at.mode(), at, tell);
/// @endcode
/// The mode is that of the code which fires, as the kernel's source tells it by the same segment.

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

/// All 64 bits of them are told, of 32-bit programs, too.
using thread_registers = ::user_regs_struct;

[[nodiscard]] inline trace_ring::record::program_mode mode_of(const thread_registers& of) noexcept {
    constexpr std::uint64_t segment_of_32 = 0x23;
    return of.cs == segment_of_32 ? trace_ring::record::program_mode::ilp32
                                  : trace_ring::record::program_mode::lp64;
}
[[nodiscard]] inline std::size_t word_bytes_of(const thread_registers& of) noexcept {
    return mode_of(of) == trace_ring::record::program_mode::lp64 ? 8 : 4;
}
/// A word of the program's, of 4 or 8 bytes, by one of its threads: the first one may have ended.
[[nodiscard]] std::optional<std::uint64_t> read_word(::pid_t thread, std::uint64_t at,
                                                     std::size_t bytes) noexcept;

/// For the time that the thread stands still. A model of point::firing.
class stopped_firing {
public:
    stopped_firing(::pid_t thread, ::pid_t process, const thread_registers& registers,
                   function_part part, const entered_call* begun = nullptr) noexcept
        : thread_(thread), process_(process), registers_(registers), part_(part), begun_(begun) {}

    [[nodiscard]] trace_ring::record::program_mode mode() const noexcept {
        return mode_of(registers_);
    }
    /// A stack_snapshot, and as much of the stack as there is room for behind it.
    void copy_stack(std::span<std::byte> into) const noexcept;
    /// The thread's name; of one that is gone nothing.
    void copy_name(std::array<char, 16>& into) const noexcept;
    /// firing_record::call.
    [[nodiscard]] std::uint64_t call() const noexcept {
        if (part_ == function_part::exit) return registers_.rsp - word_bytes_of(registers_);
        return has_return_on_top(part_) ? registers_.rsp : 0;
    }
    [[nodiscard]] std::uint64_t word(point::context_word of) const noexcept;
    /// Where the function is entered: the return address is on top of the stack. Where it exits:
    /// what was kept.
    [[nodiscard]] std::optional<std::uint64_t> argument(unsigned n) const noexcept;
    [[nodiscard]] std::uint64_t reg(unsigned n) const noexcept;
    [[nodiscard]] bool read(std::uint64_t address, std::span<std::byte> into) const noexcept {
        return read_memory(thread_, address, into);
    }
    [[nodiscard]] std::optional<std::size_t> read_text(std::uint64_t address,
                                                       std::span<std::byte> into) const noexcept;
    /// By frame pointers. A function that is entered has made no frame yet, and one that returns
    /// has left it: who called it is on top of the stack.
    [[nodiscard]] std::size_t stack(std::span<std::uint64_t> into) const noexcept;

private:
    [[nodiscard]] bool is_wide() const noexcept {
        return mode() == trace_ring::record::program_mode::lp64;
    }
    /// As wide as the program has it.
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
    const entered_call* begun_;  // of what exits; null: it is not known
};
static_assert(point::firing<stopped_firing>);

}  // namespace trace_clauses
