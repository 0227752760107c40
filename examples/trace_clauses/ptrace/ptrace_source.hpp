// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Clauses that run in this process where a program meets a breakpoint, by ptrace(2): where the
/// kernel does not permit BPF or uprobes, for whoever may debug the program.
/// @code
///   ptrace_source source(session, ptrace_source::from::now);
///   source.attach({"/usr/lib/x86_64-linux-gnu/libc.so.6", 0x98860, function_part::entry, pid},
///                 session.at(point));
///   while (!source.status_of(pid)) {
///       if (source.wait(100)) source.read([](const firing_record& of, auto output) { ... });
///   }
/// @endcode
/// What is told is what the kernel's source tells, and nothing is ever lost: the program waits
/// meanwhile. The breakpoints are in the program's own memory: all are taken out by `detach`, but
/// not if this process is killed. A program that goes on then is ended by the next one that it
/// meets: see outliving.hpp.
///
/// Processes that it forks are not traced, and left without breakpoints; one that shares the
/// program's memory until it executes another (vfork) passes them without firing.
///
/// An exit is seen by the instructions that return, if these are known. If not, by a breakpoint
/// where the call returns to, for that call: then an exit that was none is told if a longjmp or an
/// exception leads there.

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

/// All for the one thread that has constructed it, as ptrace wants it. While it lives, SIGCHLD is
/// blocked in that thread, and it waits for all of the process's children.
class ptrace_source {
public:
    /// Whether points are in what a process runs now, or only in what it executes next.
    enum class from : std::uint8_t { now, next_program };

    /// `mapped` is called for a stopped process whose mapped code may have changed.
    explicit ptrace_source(const point::clauses& session, from begin, std::uint32_t stack_bytes = 0,
                           std::function<void(::pid_t)> mapped = {});
    ptrace_source(const ptrace_source&) = delete;
    ptrace_source& operator=(const ptrace_source&) = delete;
    ~ptrace_source();

    /// Runs these clauses wherever the point fires from the next `wait` on, also in libraries that
    /// are loaded later. Throws std::runtime_error, in one sentence, if the point is of all
    /// processes, or the process may not be traced.
    /// `entry`: of an exit, as planned_point has it.
    void attach(const attach_point& at, std::span<const std::uint32_t> clauses,
                std::optional<std::uint32_t> entry = std::nullopt);
    /// Sets the points that are not set yet, before the next `wait` does so.
    void set_points();
    /// No point fires any more: the programs are as they were, and go on untraced.
    void detach() noexcept;

    /// Lets the programs go on, for so many ms, or until there is much to read. False: there is
    /// nothing. Throws std::bad_alloc.
    bool wait(int milliseconds);
    /// Calls `tell(const firing_record&, std::span<const std::byte> output)` for all that fired
    /// since, in that order. Returns how many.
    template <class Tell>
    std::size_t read(Tell&& tell) {
        return runs_.read(std::forward<Tell>(tell));
    }

    [[nodiscard]] clause_counts counts(std::uint32_t clause) const { return runs_.counts(clause); }
    /// How a process that was traced has ended, as waitpid(2) says it; empty before. It has been
    /// waited for: nobody else can.
    [[nodiscard]] std::optional<int> status_of(::pid_t process) const {
        const auto found = ended_.find(process);
        return found == ended_.end() ? std::nullopt : std::optional(found->second);
    }

private:
    // What is traced.
    void seize(::pid_t process);
    // What happens.
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
    // Leaving.
    void set_back(traced_thread& one);
    void let_go(traced_thread& one) noexcept;

    const point::clauses& session_;
    clause_runs runs_;
    from begin_;
    bool places_are_known_ = false;
    placed_points points_;
    std::map<::pid_t, traced_thread> threads_;
    std::function<void(::pid_t)> mapped_;
    std::map<::pid_t, entered_calls> entered_;  // by the process
    std::vector<::pid_t> with_status_;
    std::map<::pid_t, int> early_;  // children that have stopped before their parents told of them
    std::map<::pid_t, int> ended_;
    ::sigset_t signals_before_{};
    struct sigaction child_action_before_ {};
};

}  // namespace trace_clauses
