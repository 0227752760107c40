// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "traced_thread.hpp"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <span>

#include "../../branch_trace/step/instruction_prefix.hpp"
#include "../../branch_trace/step/traced_program.hpp"
#include "../../branch_trace/step/trap_flag.hpp"
#include "../../launching/process_memory.hpp"
#include "by_hand.hpp"
#include "movable.hpp"

namespace trace_clauses {
namespace {

using branch_trace::impl::read_signal;

/// Returns whether the program steps itself: the trap flag of a stopped thread was set by the
/// program.
[[nodiscard]] bool steps_itself(const thread_registers& of) noexcept {
    return (of.eflags & branch_trace::impl::trap_flag) != 0;
}

/// The opcode after the prefixes; for opcodes that begin with 0x0F, and for int, including the
/// following byte.
[[nodiscard]] unsigned opcode_of(std::span<const std::byte> code, bool wide) noexcept {
    const auto at = [code](std::size_t i) {
        return i < code.size() ? std::to_integer<unsigned>(code[i]) : 0U;
    };
    const std::size_t i = branch_trace::count_prefixes(code, wide);
    return at(i) == 0x0F || at(i) == 0xCD ? at(i) << 8 | at(i + 1) : at(i);
}
}  // namespace

::pid_t wait_for(::pid_t tid, int& status, int options) noexcept {
    ::pid_t got = 0;
    while ((got = ::waitpid(tid, &status, __WALL | options)) < 0 && errno == EINTR) {
    }
    return got;
}
/// Returns whether a child has stopped or ended, or may have, within this time.
bool await_child(std::chrono::nanoseconds most) noexcept {
    ::sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    const ::timespec limit{most.count() / 1'000'000'000, most.count() % 1'000'000'000};
    return ::sigtimedwait(&child, nullptr, &limit) == SIGCHLD;
}
int event_of(int status) noexcept {
    return WIFSTOPPED(status) ? status >> 16 : 0;
}

bool traced_thread::get_registers(thread_registers& into) const noexcept {
    return ::ptrace(PTRACE_GETREGS, tid, nullptr, &into) == 0;
}
bool traced_thread::set_registers(const thread_registers& from) const noexcept {
    return ::ptrace(PTRACE_SETREGS, tid, nullptr, &from) == 0;
}

bool traced_thread::met_breakpoint(thread_registers& into) const {
    ::siginfo_t info{};
    if (memory == nullptr || !get_registers(into) || memory->at(into.rip - 1) == nullptr ||
        !read_signal(tid, info) || info.si_code != SI_KERNEL) {  // an int3
        return false;
    }
    --into.rip;
    return true;
}

bool traced_thread::pass_by_hand(thread_registers& registers, const breakpoint& of) const {
    if (steps_itself(registers)) return false;  // by a signal after the instruction
    struct {
        ::pid_t pid;
        [[nodiscard]] bool read(std::uint64_t at, std::span<std::byte> into) const noexcept {
            return read_memory(pid, at, into);
        }
        [[nodiscard]] bool write(std::uint64_t at, std::span<const std::byte> from) const noexcept {
            return write_memory(pid, at, from);
        }
        /// If the kernel does not have these registers, there are no shadow stacks.
        [[nodiscard]] bool has_shadow_stack() const noexcept {
            constexpr unsigned shadow_stack = 0x204;  // NT_X86_SHSTK
            std::uint64_t pointer = 0;
            ::iovec into{&pointer, sizeof pointer};
            return ::ptrace(PTRACE_GETREGSET, pid, shadow_stack, &into) == 0;
        }
    } of_process{tid};
    return execute_by_hand(of.code, registers, of_process) && set_registers(registers);
}

bool traced_thread::step_elsewhere(thread_registers& registers, const breakpoint& of) {
    const std::uint64_t there = memory->entry();
    std::array<std::byte, breakpoint::most_code> before{};
    if (there == 0 || steps_itself(registers) || !is_movable(of.code, mode_of(registers)) ||
        !memory->read(there, before) || !memory->write(there, of.code))
        return false;
    const std::uint64_t here = registers.rip;
    registers.rip = there;
    if (set_registers(registers)) {
        step(registers, of);
        const unsigned opcode = opcode_of(of.code, word_bytes_of(registers) == 8);
        const bool has_returned = opcode == 0xC2 || opcode == 0xC3;
        if (!has_returned && get_registers(registers) && registers.rip - there < before.size()) {
            registers.rip += here - there;
            static_cast<void>(set_registers(registers));
        }
    }
    static_cast<void>(memory->write(there, before));
    return true;
}

void traced_thread::step_in_place(const thread_registers& registers, const breakpoint& of) {
    const std::uint64_t here = registers.rip;
    if (!set_registers(registers)) return;
    memory->lift(here, of);
    step(registers, of);
    memory->lower(here);
}

void traced_thread::step(const thread_registers& registers, const breakpoint& of) {
    const unsigned opcode = opcode_of(of.code, word_bytes_of(registers) == 8);
    const bool has_own_trap = steps_itself(registers);
    // A system call is followed only into the kernel: it may wait there, and it stores the flags.
    const bool enters = opcode == 0x0F05 || opcode == 0x0F34 || opcode == 0xCD80;
    while (::ptrace(enters ? PTRACE_SYSCALL : PTRACE_SINGLESTEP, tid, nullptr, nullptr) == 0) {
        int now = 0;
        if (wait_for(tid, now, 0) != tid) return;
        if (!WIFSTOPPED(now) || (event_of(now) != 0 && event_of(now) != PTRACE_EVENT_STOP)) {
            status = now;  // it has ended, or the instruction is a system call
            return;
        }
        if (event_of(now) == PTRACE_EVENT_STOP) continue;
        const int signal = WSTOPSIG(now);
        ::siginfo_t info{};
        const bool by_itself = read_signal(tid, info) && info.si_code > 0;
        if (signal == SIGTRAP && by_itself) {
            constexpr int by_step = 2;  // si_code
            constexpr unsigned pushf = 0x9C, int1 = 0xF1, int_3 = 0xCD03;
            if (opcode == pushf && !has_own_trap) {
                branch_trace::impl::hide_pushed_trap_flag(tid);
            }
            // The instruction raised an exception, or the program's own step ended: the thread
            // continues with that signal.
            if (opcode == int1 || opcode == int_3 || (info.si_code == by_step && has_own_trap)) {
                signals.insert(signals.begin(), signal);
            }
            return;
        }
        signals.push_back(signal);
        if (by_itself &&
            (signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE)) {
            // A popf was not executed: the kernel would take the trap flag for the program's.
            if (!has_own_trap) branch_trace::impl::take_trap_flag(tid);
            return;
        }
    }
}

bool traced_thread::stop() {
    if (stands_still) return true;
    if (::ptrace(PTRACE_INTERRUPT, tid, nullptr, nullptr) != 0) return false;
    int now = 0;
    for (int tries = 0;; ++tries) {
        const ::pid_t got = wait_for(tid, now, WNOHANG);
        if (got < 0) return false;
        if (got == tid) break;
        static_cast<void>(await_child(std::chrono::milliseconds(1)));
        // The thread is in the kernel, or it is a process's first thread, which has ended before
        // the others.
        if (tries % 16 == 15) {
            const char state = launching::state_of(tid);
            if (state == 'Z' || state == 'X' || (state == 'D' && tries > 100)) return false;
        }
    }
    stands_still = true;
    if (event_of(now) == PTRACE_EVENT_STOP && WSTOPSIG(now) == SIGTRAP) return true;
    status = now;
    return true;
}

void traced_thread::go_on() noexcept {
    // The thread takes one signal on continuing; further ones are sent again.
    int signal = 0;
    if (!signals.empty()) {
        signal = signals.front();
        for (std::size_t i = 1; i < signals.size(); ++i)
            ::syscall(SYS_tgkill, process, tid, signals[i]);
        signals.clear();
    }
    stands_still = false;
    // If the thread is gone, the next wait reports its end.
    static_cast<void>(::ptrace(PTRACE_CONT, tid, nullptr, static_cast<long>(signal)));
}

}  // namespace trace_clauses
