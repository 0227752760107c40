// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Runs clauses in this process when a program reaches a breakpoint, by ptrace(2). It is used if
/// the kernel does not permit BPF or uprobes, and needs only the permission to debug the program.
/// @code
///   ptrace_source source(session, ptrace_source::from::now);
///   source.attach({"/usr/lib/x86_64-linux-gnu/libc.so.6", 0x98860, function_part::entry, pid},
///                 session.at(point));
///   while (!source.status_of(pid)) {
///       if (source.wait(100)) source.read([](const firing_record& of, auto output) { ... });
///   }
/// @endcode
/// It reports the same firings as the kernel source, and loses none, because the program waits. The
/// breakpoints are in the program's private memory. `detach` removes them all. If this process is
/// killed, they remain, and the next one that the program reaches kills it: see outliving.hpp.
///
/// Forked processes are not traced, and their breakpoints are removed. A process that shares the
/// program's memory until it executes another program (vfork) passes breakpoints without firing.
///
/// An exit is detected at the instructions that return, if these are known. Otherwise it is
/// detected by a breakpoint at the call's return address, for that call. In that case, a longjmp or
/// an exception that leads to this address is reported as an exit.

#include <signal.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <trace_ring/point/clauses.hpp>

#include "../firings/firing_record.hpp"
#include "address_space.hpp"
#include "clause_runs.hpp"
#include "entered_calls.hpp"
#include "placed_points.hpp"
#include "traced_thread.hpp"

namespace trace_clauses {

/// As ptrace requires, only the thread that has constructed it may use it. While the object exists,
/// SIGCHLD is blocked in that thread, and it waits for all of the process's children.
class ptrace_source {
public:
    /// Whether points are set in the program that a process runs now, or only in the next one that
    /// it executes.
    enum class from : std::uint8_t { now, next_program };

    /// `mapped` is called for a stopped process whose mapped code may have changed.
    explicit ptrace_source(const point::clauses& session, from begin, std::uint32_t stack_bytes = 0,
                           std::function<void(::pid_t)> mapped = {});
    ptrace_source(const ptrace_source&) = delete;
    ptrace_source& operator=(const ptrace_source&) = delete;
    ~ptrace_source();

    /// Runs these clauses at each firing of the point from the next `wait` on, including in
    /// libraries that are loaded later. Throws std::runtime_error, with a one-sentence reason, if
    /// the point is for all processes, or if the process may not be traced. `entry`: for an exit,
    /// as in planned_point.
    void attach(const attach_point& at, std::span<const std::uint32_t> clauses,
                std::optional<std::uint32_t> entry = std::nullopt);
    /// Sets the points that are not set yet, before the next `wait` does so.
    void set_points();
    /// Removes all points. The programs continue untraced, with their original code.
    void detach() noexcept;

    /// Lets the programs run for the given number of ms, or until there is much to read. Returns
    /// false if there is nothing to read. Throws std::bad_alloc.
    bool wait(int milliseconds);
    /// Passes each `const firing_record&` since the last call and its output, `std::span<const
    /// std::byte>`, to the visitor, in order. Returns the number of records.
    template <class Tell>
    std::size_t read(Tell&& tell) {
        return runs_.read(std::forward<Tell>(tell));
    }

    [[nodiscard]] clause_counts counts(std::uint32_t clause) const { return runs_.counts(clause); }
    /// The exit status of a traced process in the form of waitpid(2); empty while it runs. The
    /// source has already waited for the process, so no other code can.
    [[nodiscard]] std::optional<int> status_of(::pid_t process) const {
        const auto found = ended_.find(process);
        return found == ended_.end() ? std::nullopt : std::optional(found->second);
    }

private:
    // Attaching.
    void seize(::pid_t process);
    // Events.
    void take(::pid_t tid, int status);
    void look(traced_thread& one, int status);
    void ended(traced_thread& one, int status);
    void executed(traced_thread& one);
    void born(traced_thread& parent, bool by_vfork);
    [[nodiscard]] bool has_hit(traced_thread& one);
    void fire(traced_thread& one, std::uint32_t point, const thread_registers& registers,
              const entered_call* begun = nullptr);
    [[nodiscard]] entered_call begin(const traced_thread& one, std::uint32_t point,
                                     const thread_registers& registers) const;
    void forget_left(traced_thread& one, std::span<const std::uint32_t> points,
                     const thread_registers& registers);
    void await_return(traced_thread& one, std::uint32_t point, const thread_registers& registers);
    void returned(traced_thread& one, const thread_registers& registers);
    void pass(traced_thread& one, thread_registers& registers, const breakpoint& of);
    bool stop(traced_thread& one);
    // Detaching.
    void set_back(traced_thread& one);
    void let_go(traced_thread& one) noexcept;

    const point::clauses& session_;
    clause_runs runs_;
    from begin_;
    bool places_are_known_ = false;
    placed_points points_;
    std::map<::pid_t, traced_thread> threads_;
    std::function<void(::pid_t)> mapped_;
    std::map<::pid_t, entered_calls> entered_;  // by process
    std::vector<::pid_t> with_status_;
    std::map<::pid_t, int> early_;  // children that stopped before their parents' fork events
    std::map<::pid_t, int> ended_;
    ::sigset_t signals_before_{};
    struct sigaction child_action_before_ {};
};

}  // namespace trace_clauses
