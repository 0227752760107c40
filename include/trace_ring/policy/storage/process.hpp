// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Names the processes that share memory, and determines whether they live: a pid and the time when
/// the process began name it uniquely. Everything here is signal-safe.

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>

#include <trace_ring/large_files.hpp>

namespace trace_ring::inline v1::storage {

/// Facts about a process from /proc/PID/task/PID/stat, the file of its first thread.
/// /proc/PID/stat has the same facts, but an emulator of user programs (QEMU's linux-user) replaces
/// that file, with a made-up start time for the process that reads it.
struct process_facts {
    std::uint64_t start = 0;  ///< when it began, in ticks since boot; 0 if it cannot be read
    bool ended = false;       ///< it is a zombie: its parent has not waited for it yet
};

/// Reads the facts. They are unknown if /proc shows the processes of another PID namespace.
/// Signal-safe.
[[nodiscard, gnu::noinline, gnu::cold]] inline process_facts facts_of(std::uint32_t pid) noexcept {
    process_facts out;
    const int saved = errno;
    char text[1024];
    const ssize_t self = ::readlink("/proc/self", text, 16);
    char own[16];
    const int digits = std::snprintf(own, sizeof own, "%d", ::getpid());  // no allocation for %d
    if (self != digits || std::memcmp(text, own, static_cast<std::size_t>(digits)) != 0) {
        errno = saved;
        return out;
    }
    std::snprintf(text, sizeof text, "/proc/%u/task/%u/stat", pid, pid);
    const int fd = ::open(text, O_RDONLY | O_CLOEXEC);
    const ssize_t got = fd < 0 ? -1 : ::read(fd, text, sizeof text - 1);
    if (fd >= 0) ::close(fd);
    errno = saved;
    if (got <= 0) return out;
    // The name, field 2, is in brackets and may hold any characters: count from the last bracket.
    const std::string_view all(text, static_cast<std::size_t>(got));
    std::size_t at = all.rfind(')');
    const auto number_at = [&all](std::size_t from) {
        std::uint64_t number = 0;
        for (; from < all.size() && all[from] >= '0' && all[from] <= '9'; ++from) {
            number = number * 10 + static_cast<std::uint64_t>(all[from] - '0');
        }
        return number;
    };
    bool dead_leader = false;
    for (int field = 3; field <= 22 && at != std::string_view::npos; ++field) {
        at = all.find(' ', at + 1);
        if (at == std::string_view::npos || at + 1 == all.size()) break;
        if (field == 3) dead_leader = all[at + 1] == 'Z' || all[at + 1] == 'X';
        // Other threads may still live after the first has ended.
        if (field == 20) out.ended = dead_leader && number_at(at + 1) <= 1;
        if (field == 22) out.start = number_at(at + 1);
    }
    return out;
}

/// The PID namespace of the calling process: its pids are valid only there. 0 if it is unknown.
/// Signal-safe.
[[nodiscard, gnu::noinline]] inline std::uint32_t pid_namespace() noexcept {
    large_files::file_status status{};
    const int saved = errno;
    const bool known = large_files::stat("/proc/self/ns/pid", &status) == 0;
    errno = saved;
    return known ? static_cast<std::uint32_t>(status.st_ino) : 0;
}

/// False only if no process, or only a zombie, has that pid and start. A start of 0 is unknown;
/// only the bits in `told` are compared. For a pid in the caller's own namespace. Signal-safe.
[[nodiscard, gnu::noinline]] inline bool process_may_live(std::uint32_t pid, std::uint64_t start,
                                                          std::uint64_t told = ~std::uint64_t{
                                                              0}) noexcept {
    const int saved = errno;
    const bool there = ::kill(static_cast<pid_t>(pid), 0) == 0 || errno != ESRCH;
    errno = saved;
    if (!there) return false;
    const process_facts now = facts_of(pid);
    if (now.ended) return false;
    return now.start == 0 || start == 0 || (now.start & told) == (start & told);
}

/// A process in one word, from the lowest bit: its pid (24 bits, of which Linux uses 22), the low
/// 16 bits of its PID namespace, the low 23 bits of its start; the last bit is the user's. Never 0.
struct process_word {
    static constexpr std::uint64_t start_bits = (std::uint64_t{1} << 23) - 1;
    static constexpr std::uint64_t mark = std::uint64_t{1} << 63;

    /// The calling process.
    [[nodiscard]] static std::uint64_t own() noexcept {
        const auto pid = static_cast<std::uint32_t>(::getpid());
        return (facts_of(pid).start & start_bits) << 40 |
               std::uint64_t{pid_namespace() & 0xFFFFU} << 24 | pid;
    }
    [[nodiscard]] static std::uint32_t pid(std::uint64_t word) noexcept {
        return static_cast<std::uint32_t>(word & 0xFFFFFFU);
    }
    /// False only if the process that the word names is certainly gone. Always true for a process
    /// in another PID namespace.
    [[nodiscard]] static bool may_live(std::uint64_t word) noexcept {
        const std::uint32_t space = pid_namespace() & 0xFFFFU;
        if (space == 0 || (word >> 24 & 0xFFFFU) != space) return true;
        return process_may_live(pid(word), word >> 40 & start_bits, start_bits);
    }
};

}  // namespace trace_ring::inline v1::storage
