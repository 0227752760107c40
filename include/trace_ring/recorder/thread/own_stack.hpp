// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Where the calling thread's own stack lies, as far as that is certain. pthread_getattr_np knows
/// it, too, but takes a lock and allocates, which a signal handler must not; the kernel's list of
/// mappings can be read anywhere.

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <trace_ring/bounds.hpp>
#include <trace_ring/recorder/site/lane.hpp>
#include <trace_ring/recorder/site/undisturbed.hpp>

namespace trace_ring::inline v1::impl {

/// The addresses from `low` to before `high`.
struct address_range {
    std::uintptr_t low = 0;
    std::uintptr_t high = 0;
};

/// Reads lines of /proc/self/maps, in pieces of any length: `55d0a000-55d0b000 rw-p ... [stack]`.
class mapping_lines {
public:
    struct mapping : address_range {
        bool is_closed = false;      ///< neither read nor written nor executed: a guard page
        bool is_main_stack = false;  ///< of the process's first thread
    };

    /// True: the line has ended, and `line` is its content.
    [[nodiscard]] bool add(char c, mapping& line) noexcept {
        if (c == '\n') {
            now_.is_closed = rights_ == rights_of("---p");
            now_.is_main_stack = (last_ & 0xFF'FFFF'FFFF'FFFF) == rights_of("[stack]");
            line = now_;
            *this = {};
            return true;
        }
        last_ = last_ << 8 | static_cast<unsigned char>(c);
        if (c == '-' && field_ == 0) {
            field_ = 1;
        } else if (c == ' ' && field_ < 3) {
            if (++field_ == 3) rights_ = static_cast<std::uint32_t>(last_ >> 8);
        } else if (field_ < 2) {
            auto& number = field_ == 0 ? now_.low : now_.high;
            number = number << 4 | static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10);
        }
        return false;
    }

private:
    /// The characters in one number, the last of them lowest.
    [[nodiscard]] static constexpr std::uint64_t rights_of(std::string_view text) noexcept {
        std::uint64_t all = 0;
        for (const char c : text) all = all << 8 | static_cast<unsigned char>(c);
        return all;
    }

    mapping now_{};
    std::uint64_t last_ = 0;  // the last eight characters
    std::uint64_t rights_ = 0;
    int field_ = 0;
};

/// The calling thread's own stack. For the first thread: the mapping that the kernel calls so, with
/// the room in which it grows. For others: from a guard page to the thread-local words, which every
/// C library puts at the stack's upper end. Empty where neither is found: there is no /proc, or the
/// stack has no guard page, so that it may be part of something larger. In the child of a fork by
/// another thread than the first: the first thread's, which has no frame of the caller.
/// Signal-safe, 1 KiB of stack; linear in the mappings of the process.
[[nodiscard, gnu::cold]] inline address_range find_own_stack() noexcept {
    const undisturbed scope;
    // The kernel leaves this much free below the first thread's stack, for any stack limit.
    constexpr std::uintptr_t room = std::uintptr_t{128} << 20;
    const bool is_first = ::getpid() == static_cast<pid_t>(::syscall(SYS_gettid));
    const auto words = reinterpret_cast<std::uintptr_t>(&errno);  // a plugin's are elsewhere
    address_range found;
    const int fd = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return found;
    mapping_lines rows;
    mapping_lines::mapping before, line;
    char text[1024];
    for (ssize_t got = 0; found.high == 0 && (got = ::read(fd, text, sizeof text)) > 0;) {
        for (const char c : std::string_view(text, static_cast<std::size_t>(got))) {
            if (!rows.add(c, line)) continue;
            if (is_first && line.is_main_stack) {
                found = {greatest(before.high, line.high - least(line.high, room)), line.high};
            } else if (!is_first && line.low <= words && words < line.high && before.is_closed &&
                       before.high == line.low) {
                found = {line.low, words};
            }
            before = line;
        }
    }
    ::close(fd);
    return found;
}

}  // namespace trace_ring::inline v1::impl
