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
///       if (source.wait(100)) source.read([](const kernel_record& of, auto output) { ... });
///   }
/// @endcode
/// What is told is what the kernel's source tells, and nothing is ever lost: the program waits
/// meanwhile. The breakpoints are in the program's own memory: all are taken out by `detach`, but
/// not if this process is killed. A program that goes on then is ended by the next one that it
/// meets: see outliving.hpp.
///
/// Processes that it forks are not traced, and left without breakpoints; one that shares the
/// program's memory until it executes another (vfork) passes them without firing. A function that
/// is left by longjmp or an exception does not fire its exit.

#include <signal.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <trace_ring/point/clauses.hpp>

#include "../kernel/kernel_source.hpp"
#include "address_space.hpp"
#include "stopped_firing.hpp"

namespace trace_clauses {

/// All for the one thread that has constructed it, as ptrace wants it. While it lives, SIGCHLD is
/// blocked in that thread, and it waits for all of the process's children.
class ptrace_source {
public:
    /// Whether points are in what a process runs now, or only in what it executes next.
    enum class from : std::uint8_t { now, next_program };

    explicit ptrace_source(const point::clauses& session, from begin);
    ptrace_source(const ptrace_source&) = delete;
    ptrace_source& operator=(const ptrace_source&) = delete;
    ~ptrace_source();

    /// Runs these clauses wherever the point fires from the next `wait` on, also in libraries that
    /// are loaded later. Throws std::runtime_error, in one sentence, if the point is of all
    /// processes, or the process may not be traced.
    void attach(const kernel_point& at, std::span<const std::uint32_t> clauses);
    /// No point fires any more: the programs are as they were, and go on untraced.
    void detach() noexcept;

    /// Lets the programs go on, for so many ms, or until there is much to read. False: there is
    /// nothing. Throws std::bad_alloc.
    bool wait(int milliseconds);
    /// Calls `tell(const kernel_record&, std::span<const std::byte> output)` for all that fired
    /// since, in that order. Returns how many.
    template <class Tell>
    std::size_t read(Tell&& tell) {
        std::size_t count = 0;
        for (std::size_t at = 0; at < records_.size(); ++count) {
            const auto words = static_cast<std::size_t>(records_[at]);
            const auto bytes = std::as_bytes(std::span(records_).subspan(at + 1, words));
            kernel_record head;
            std::memcpy(&head, bytes.data(), sizeof head);
            tell(std::as_const(head), bytes.subspan(sizeof head));
            at += 1 + words;
        }
        records_.clear();
        return count;
    }

    [[nodiscard]] kernel_counts counts(std::uint32_t clause) const { return counts_.at(clause); }
    /// How a process that was traced has ended, as waitpid(2) says it; empty before. It has been
    /// waited for: nobody else can.
    [[nodiscard]] std::optional<int> status_of(::pid_t process) const {
        const auto found = ended_.find(process);
        return found == ended_.end() ? std::nullopt : std::optional(found->second);
    }

private:
    static constexpr std::size_t much_words = std::size_t{1} << 17;

    struct placed {
        kernel_point at;
        std::uint32_t number;                          // in the session
        std::pair<std::uint64_t, std::uint64_t> file;  // its device, and its number there
    };
    /// A function that a thread is in, whose exit is awaited.
    struct awaited_return {
        std::uint64_t stack;  // where the return address is
        std::uint64_t site;   // the return address
        std::uint32_t point;
    };
    struct thread {
        ::pid_t tid = 0;
        ::pid_t process = 0;
        std::shared_ptr<address_space> memory{};
        bool stands_still = false;
        bool waits_for_child = false;  // in vfork: it cannot be stopped
        bool silent = false;           // of another process, which shares the memory
        bool leaves = false;           // of another process, with a copy of it
        std::optional<int> status{};   // that it has stopped or ended with; not looked at yet
        std::vector<int> signals{};    // to be given to it when it goes on
        std::vector<awaited_return> returns{};  // the innermost last
    };

    // What is traced.
    void seize(::pid_t process);
    void find_places(address_space& memory, ::pid_t process);
    void place_loader(address_space& memory, const std::vector<mapped_file>& files);
    // What happens.
    void take(::pid_t tid, int status);
    void look(thread& one, int status);
    void ended(thread& one, int status);
    void executed(thread& one);
    void born(thread& parent, bool by_vfork);
    [[nodiscard]] bool has_hit(thread& one);
    [[nodiscard]] bool met_breakpoint(const thread& one, thread_registers& registers) const;
    void fire(const thread& one, std::uint32_t point, const thread_registers& registers);
    void await_return(thread& one, std::uint32_t point, const thread_registers& registers);
    void returned(thread& one, const thread_registers& registers);
    // Going on behind a breakpoint.
    void pass(thread& one, thread_registers& registers, const breakpoint& of);
    [[nodiscard]] bool pass_by_hand(const thread& one, thread_registers& registers,
                                    const breakpoint& of) const;
    [[nodiscard]] bool step_elsewhere(thread& one, thread_registers& registers,
                                      const breakpoint& of);
    void step_in_place(thread& one, const thread_registers& registers, const breakpoint& of);
    void step(thread& one);
    bool stop(thread& one);
    void go_on(thread& one) noexcept;
    // Leaving.
    void set_back(thread& one);
    void let_go(thread& one) noexcept;

    point::clauses session_;
    from begin_;
    bool places_are_known_ = false;
    std::vector<placed> points_;
    std::vector<kernel_counts> counts_;
    std::uint64_t dropped_ = 0;
    std::map<::pid_t, thread> threads_;
    std::vector<::pid_t> with_status_;
    std::map<::pid_t, int> early_;  // children that have stopped before their parents told of them
    std::map<::pid_t, int> ended_;
    std::map<std::string, std::optional<std::uint64_t>> loaders_;
    std::vector<std::uint64_t> records_;  // each with its length before it
    ::sigset_t signals_before_{};
    struct sigaction child_action_before_ {};
};

}  // namespace trace_clauses
