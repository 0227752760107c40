// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A thread that is traced by ptrace(2): stopped, made to go on, and led past a breakpoint.
/// @code
///   if (one.met_breakpoint(registers) && !one.pass_by_hand(registers, here)) ...
/// @endcode

#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "address_space.hpp"
#include "entered_calls.hpp"
#include "stopped_firing.hpp"

namespace trace_clauses {

/// waitpid(2) of a child of either kind, which signals do not end.
[[nodiscard]] ::pid_t wait_for(::pid_t tid, int& status, int options) noexcept;
/// Whether a child has stopped or ended, or may have, within so long.
[[nodiscard]] bool await_child(std::chrono::nanoseconds most) noexcept;
/// PTRACE_EVENT_..., of a thread that has stopped; 0: of none.
[[nodiscard]] int event_of(int status) noexcept;

/// A function that a thread is in, whose exit is awaited.
struct awaited_return {
    std::uint64_t stack;  // where the return address is
    std::uint64_t site;   // the return address
    std::uint32_t point;
    entered_call begun;
};
/// One that is traced by this one. None of its functions tells of an error: a thread that is gone
/// says so when it is waited for.
struct traced_thread {
    ::pid_t tid = 0;
    ::pid_t process = 0;
    std::shared_ptr<address_space> memory{};
    bool stands_still = false;
    bool waits_for_child = false;           // in vfork: it cannot be stopped
    bool silent = false;                    // of another process, which shares the memory
    bool leaves = false;                    // of another process, with a copy of it
    std::optional<int> status{};            // that it has stopped or ended with; not looked at yet
    std::vector<int> signals{};             // to be given to it when it goes on
    std::vector<awaited_return> returns{};  // the innermost last
    std::array<char, 16> comm{};            // its name when it first fired; empty: it has not
    // By a tail call, if it has come by one: where its stack was, and where it goes on.
    std::uint64_t jumps_with = 0;
    std::uint64_t jumps_to = 0;

    [[nodiscard]] bool get_registers(thread_registers& into) const noexcept;
    [[nodiscard]] bool set_registers(const thread_registers& from) const noexcept;
    /// Whether it stands behind a breakpoint of ours, which has stopped it: then its registers are
    /// as they were before.
    [[nodiscard]] bool met_breakpoint(thread_registers& into) const;

    /// Does what the instruction does, where that is simple. False: nothing is done.
    [[nodiscard]] bool pass_by_hand(thread_registers& registers, const breakpoint& of) const;
    /// Executes a copy of the instruction, where nothing else comes by, so that the breakpoint
    /// stays for others. False: nothing is done.
    [[nodiscard]] bool step_elsewhere(thread_registers& registers, const breakpoint& of);
    /// Executes it in its place; no other thread may run.
    void step_in_place(const thread_registers& registers, const breakpoint& of);
    /// False: it cannot be stopped now, and stops when it can.
    bool stop();
    void go_on() noexcept;

private:
    /// One instruction, or less if that raises a signal: it is given to it when it goes on. Of a
    /// system call only the way into the kernel.
    void step(const thread_registers& registers, const breakpoint& of);
};

}  // namespace trace_clauses
