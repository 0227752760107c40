// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A thread that is traced by ptrace(2): it can be stopped, continued, and moved past a breakpoint.
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

/// waitpid(2) for a child of either kind, restarted after signals.
[[nodiscard]] ::pid_t wait_for(::pid_t tid, int& status, int options) noexcept;
/// Returns whether a child has stopped or ended, or may have, within this time.
[[nodiscard]] bool await_child(std::chrono::nanoseconds most) noexcept;
/// The PTRACE_EVENT_... of a stopped thread; 0: none.
[[nodiscard]] int event_of(int status) noexcept;

/// A function that a thread is in, and whose exit is traced.
struct awaited_return {
    std::uint64_t stack;  // address of the return address
    std::uint64_t site;   // the return address
    std::uint32_t point;
    entered_call begun;
};
/// A thread that this one traces. Its functions report no errors: waiting for the thread reports
/// that it is gone.
struct traced_thread {
    ::pid_t tid = 0;
    ::pid_t process = 0;
    std::shared_ptr<address_space> memory{};
    bool stands_still = false;
    bool waits_for_child = false;           // in vfork: it cannot be stopped
    bool silent = false;                    // belongs to another process that shares the memory
    bool leaves = false;                    // belongs to another process with a copy of the memory
    std::optional<int> status{};            // status of its last stop, or of its end; not yet
                                            // processed
    std::vector<int> signals{};             // signals to deliver when it continues
    std::vector<awaited_return> returns{};  // the innermost last
    std::array<char, 16> comm{};            // its name at its first firing; empty: has not fired
    // After a tail call: the stack pointer there, and the address where it continues.
    std::uint64_t jumps_with = 0;
    std::uint64_t jumps_to = 0;

    [[nodiscard]] bool get_registers(thread_registers& into) const noexcept;
    [[nodiscard]] bool set_registers(const thread_registers& from) const noexcept;
    /// Returns whether it is stopped after one of our breakpoints. Its registers are then set back
    /// to their values before the breakpoint.
    [[nodiscard]] bool met_breakpoint(thread_registers& into) const;

    /// Emulates the instruction if it is simple. Returns false, without any effect, otherwise.
    [[nodiscard]] bool pass_by_hand(thread_registers& registers, const breakpoint& of) const;
    /// Executes a copy of the instruction elsewhere, so that the breakpoint remains for other
    /// threads. Returns false, without any effect, if that is impossible.
    [[nodiscard]] bool step_elsewhere(thread_registers& registers, const breakpoint& of);
    /// Executes the instruction in its place. No other thread may run.
    void step_in_place(const thread_registers& registers, const breakpoint& of);
    /// Returns false if it cannot be stopped now; it stops when it can.
    bool stop();
    void go_on() noexcept;

private:
    /// Executes one instruction, or less if it raises a signal, which is then delivered when the
    /// thread continues. A system call is executed only as far as the entry to the kernel.
    void step(const thread_registers& registers, const breakpoint& of);
};

}  // namespace trace_clauses
