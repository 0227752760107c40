// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file A program under ptrace: starts it, and reads its threads while they are stopped. If a
/// thread no longer exists (for example because it was killed), functions return false.

#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <trace_ring/policy/storage/mapping.hpp>
#include <trace_ring/record/data_model.hpp>

#include "../../launching/find_program.hpp"

namespace branch_trace::impl {

namespace record = trace_ring::record;

/// The offsets of the registers for PTRACE_PEEKUSER, which always uses the tracer's layout, even
/// for a 32-bit program under a 64-bit tracer.
struct user_area {
#if defined(__x86_64__)
    static constexpr std::size_t ip = offsetof(::user_regs_struct, rip);
    static constexpr std::size_t call = offsetof(::user_regs_struct, orig_rax);
    static constexpr std::size_t result = offsetof(::user_regs_struct, rax);
    static constexpr std::size_t flags = offsetof(::user_regs_struct, eflags);
    static constexpr std::size_t count = offsetof(::user_regs_struct, rcx);
    static constexpr std::size_t stack = offsetof(::user_regs_struct, rsp);
    static constexpr std::size_t syscall_flags = offsetof(::user_regs_struct, r11);
#else
    static constexpr std::size_t ip = offsetof(::user_regs_struct, eip);
    static constexpr std::size_t call = offsetof(::user_regs_struct, orig_eax);
    static constexpr std::size_t result = offsetof(::user_regs_struct, eax);
    static constexpr std::size_t flags = offsetof(::user_regs_struct, eflags);
    static constexpr std::size_t count = offsetof(::user_regs_struct, ecx);
    static constexpr std::size_t stack = offsetof(::user_regs_struct, esp);
#endif
};
static_assert(offsetof(::user, regs) == 0);

[[nodiscard]] inline bool peek(::pid_t thread, std::size_t offset, std::uint64_t& out) noexcept {
    errno = 0;
    const long word = ::ptrace(PTRACE_PEEKUSER, thread, offset, nullptr);
    if (word == -1 && errno != 0) return false;
    out = static_cast<unsigned long>(word);
    return true;
}

inline void poke(::pid_t thread, std::size_t offset, std::uint64_t value) noexcept {
    static_cast<void>(::ptrace(PTRACE_POKEUSER, thread, offset, static_cast<unsigned long>(value)));
}

/// Whether the thread executes 32- or 64-bit code, detected by the size of its registers.
[[nodiscard]] inline bool read_mode(::pid_t thread, record::program_mode& out) noexcept {
    constexpr std::size_t registers32 = 17 * 4;
    std::array<std::byte, 512> bytes{};
    ::iovec into{bytes.data(), bytes.size()};
    if (::ptrace(PTRACE_GETREGSET, thread, NT_PRSTATUS, &into) != 0) return false;
    out = into.iov_len == registers32 ? record::program_mode::ilp32 : record::program_mode::lp64;
    return true;
}

[[nodiscard]] inline bool read_signal(::pid_t thread, ::siginfo_t& out) noexcept {
    return ::ptrace(PTRACE_GETSIGINFO, thread, nullptr, &out) == 0;
}

[[nodiscard]] inline ::pid_t read_event_message(::pid_t thread) noexcept {
    unsigned long message = 0;
    if (::ptrace(PTRACE_GETEVENTMSG, thread, nullptr, &message) != 0) return 0;
    return static_cast<::pid_t>(message);
}

inline bool step(::pid_t thread, int signal) noexcept {
    return ::ptrace(PTRACE_SINGLESTEP, thread, nullptr, static_cast<long>(signal)) == 0;
}
/// Continues to the next entry of a system call, or from there to its return.
inline bool go_to_system_call(::pid_t thread, int signal) noexcept {
    return ::ptrace(PTRACE_SYSCALL, thread, nullptr, static_cast<long>(signal)) == 0;
}

[[nodiscard]] inline bool is_thread_of(::pid_t process, ::pid_t thread) noexcept {
    return ::syscall(SYS_tgkill, process, thread, 0) == 0;
}

/// At the end of a system call: whether it was interrupted and will be entered again, unless a
/// handler is called.
[[nodiscard]] inline bool is_restarted(::pid_t thread) noexcept {
    std::uint64_t number = 0, result = 0;
    if (!peek(thread, user_area::call, number) || !peek(thread, user_area::result, result) ||
        static_cast<std::int32_t>(number) == -1) {  // a handler's return
        return false;
    }
    const auto error = -static_cast<std::int32_t>(result);
    return (error >= 512 && error <= 514) || error == 516;  // ERESTARTSYS and similar
}

/// Whether a system call, by its number in either table, may have changed mappings. Some others are
/// included, because the numbers of one table have other meanings in the other one.
[[nodiscard]] constexpr bool may_map(std::uint64_t number) noexcept {
    switch (number & 0x3FFFFFFFU) {  // x32 sets a bit
        case 9:   // mmap, and from here on mprotect, munmap, mremap, shmat, shmdt,
        case 10:  // remap_file_pages, pkey_mprotect of 64-bit programs
        case 11:
        case 25:
        case 30:
        case 67:
        case 216:
        case 329:
        case 90:  // and mmap, munmap, ipc, mprotect, mremap, mmap2, remap_file_pages,
        case 91:  // pkey_mprotect, shmat, shmdt of 32-bit ones
        case 117:
        case 125:
        case 163:
        case 192:
        case 257:
        case 380:
        case 397:
        case 398:
            return true;
        default:
            return false;
    }
}

/// Starts a program (found as a shell does) and stops it at its first instruction, traced by this
/// thread with `options`. Throws setup_error, which names the program.
[[nodiscard]] inline ::pid_t start_traced(const std::vector<std::string>& command, long options) {
    if (command.empty())
        throw trace_ring::setup_error("single_step", "no program is named", EINVAL);
    const std::string& name = command.front();
    std::vector<char*> arguments;
    arguments.reserve(command.size() + 1);
    for (const auto& one : command) arguments.push_back(const_cast<char*>(one.c_str()));
    arguments.push_back(nullptr);
    const std::string path = launching::path_of_program(name);

    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
        throw trace_ring::setup_error(name, "cannot make a pipe", errno);
    const trace_ring::file_descriptor go_out(ends[0]);
    trace_ring::file_descriptor go_in(ends[1]);
    if (::pipe2(ends, O_CLOEXEC) != 0)
        throw trace_ring::setup_error(name, "cannot make a pipe", errno);
    const trace_ring::file_descriptor error_out(ends[0]);
    trace_ring::file_descriptor error_in(ends[1]);

    const ::pid_t child = ::fork();
    if (child < 0) throw trace_ring::setup_error(name, "cannot fork", errno);
    if (child == 0) {  // only system calls here, because other threads may hold any lock
        go_in.reset();
        char byte = 0;
        if (::read(go_out.get(), &byte, 1) == 1) {
            launching::execute(path.c_str(), arguments.data());
            const int error = errno;
            static_cast<void>(!::write(error_in.get(), &error, sizeof error));
        }
        ::_exit(127);
    }
    error_in.reset();
    const auto fail = [&](const char* what, int error) {
        ::kill(child, SIGKILL);
        while (::waitpid(child, nullptr, __WALL) < 0 && errno == EINTR) {
        }
        throw trace_ring::setup_error(name, what, error);
    };
    if (::ptrace(PTRACE_SEIZE, child, nullptr, options) != 0) fail("cannot be traced", errno);
    while (::write(go_in.get(), "", 1) != 1) {
        if (errno != EINTR) fail("cannot be started", errno);
    }
    for (;;) {
        int status = 0;
        if (::waitpid(child, &status, __WALL) < 0) {
            if (errno == EINTR) continue;
            throw trace_ring::setup_error(name, "cannot be waited for", errno);
        }
        if (WIFSTOPPED(status)) {
            if (status >> 16 == PTRACE_EVENT_EXEC) return child;
            const int signal = status >> 16 == 0 ? WSTOPSIG(status) : 0;
            static_cast<void>(::ptrace(PTRACE_CONT, child, nullptr, static_cast<long>(signal)));
            continue;
        }
        int error = ECHILD;  // killed before it was traced
        static_cast<void>(!::read(error_out.get(), &error, sizeof error));
        throw trace_ring::setup_error(name, "cannot be executed", error);
    }
}

}  // namespace branch_trace::impl
