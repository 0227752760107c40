// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file The recorder's settings from the environment. They may be read before libc has set up
/// `environ`.

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "call_stack.hpp"

namespace heap {

struct settings {
    std::string file = "heap.%e.%p.trace";
    /// Bytes of records at most; a program's whole trace is on disk, so this is a promise to it.
    std::uint64_t limit = std::uint64_t{1} << (sizeof(void*) == 8 ? 30 : 28);
    unwind_by unwind = default_unwind;
    std::size_t depth = default_depth;
    std::size_t free_depth = default_free_depth;
    /// A file to which the name of each trace is added, for heap-record; empty: none.
    std::string list;
    std::string preload;  ///< LD_PRELOAD
};

/// Writes one line to the standard error output, past stdio and in one piece.
inline void complain(std::initializer_list<std::string_view> parts) {
    std::string line = "heap_recorder: ";
    for (const auto part : parts) line += part;
    line += '\n';
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

/// A whole number with an optional K, M or G (powers of 1024).
[[nodiscard]] constexpr std::optional<std::uint64_t> parse_bytes(std::string_view text) noexcept {
    unsigned shift = 0;
    if (!text.empty()) {
        switch (text.back()) {
            case 'K':
            case 'k':
                shift = 10;
                break;
            case 'M':
            case 'm':
                shift = 20;
                break;
            case 'G':
            case 'g':
                shift = 30;
                break;
            default:
                break;
        }
        if (shift != 0) text.remove_suffix(1);
    }
    if (text.empty() || text.size() > 12) return std::nullopt;
    std::uint64_t value = 0;
    for (const char c : text) {
        if (c < '0' || c > '9') return std::nullopt;
        value = value * 10 + static_cast<std::uint64_t>(c - '0');
    }
    return value << shift;
}

/// What of the process's environment is read here, as one block of NUL-terminated strings.
[[nodiscard]] inline std::string environment_block() {
    std::string all;
    if (environ != nullptr) {
        for (char** each = environ; *each != nullptr; ++each) {
            const std::string_view entry(*each);
            if (entry.starts_with("TRACE_RING_") || entry.starts_with("LD_PRELOAD=")) {
                all.append(entry).push_back('\0');
            }
        }
        return all;
    }
    // This allocation comes before libc has received the environment.
    const int fd = ::open("/proc/self/environ", O_RDONLY | O_CLOEXEC);
    static char part[4096];
    for (ssize_t got = 0; fd >= 0 && (got = ::read(fd, part, sizeof part)) > 0;) {
        all.append(part, static_cast<std::size_t>(got));
    }
    if (fd >= 0) ::close(fd);
    return all;
}

/// Sees to it that the program has a name, for "%e" and the trace's table of processes. libc sets
/// it together with `environ`, and then it is set for good.
inline void find_program_name() {
    static char name[256];
    if (*program_invocation_short_name != '\0') return;
    const int fd = ::open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    static char path[4096];
    const ssize_t got = fd < 0 ? 0 : ::read(fd, path, sizeof path - 1);
    if (fd >= 0) ::close(fd);
    path[got > 0 ? got : 0] = '\0';  // after the first argument there is a zero anyway
    std::string_view argument(path);
    argument.remove_prefix(argument.rfind('/') + 1);  // npos + 1 is 0
    argument.copy(name, sizeof name - 1);
    program_invocation_short_name = name;
}

/// The settings; a value that makes no sense is complained of, and the default taken.
[[nodiscard]] inline settings read_settings() {
    settings s;
    const std::string block = environment_block();
    const auto variable = [&](std::string_view name) -> std::string_view {
        for (std::string_view rest(block); !rest.empty();) {
            const auto end = rest.find('\0');
            const auto entry = rest.substr(0, end);
            if (entry.size() > name.size() && entry.starts_with(name) &&
                entry[name.size()] == '=') {
                return entry.substr(name.size() + 1);
            }
            if (end == std::string_view::npos) break;
            rest.remove_prefix(end + 1);
        }
        return {};
    };
    if (const auto text = variable("TRACE_RING_FILE"); !text.empty()) s.file = text;
    s.list = variable("TRACE_RING_LIST");
    s.preload = variable("LD_PRELOAD");
    if (const auto text = variable("TRACE_RING_LIMIT"); !text.empty()) {
        if (const auto bytes = parse_bytes(text); bytes && *bytes >= std::uint64_t{1} << 20) {
            s.limit = *bytes;
        } else {
            complain({"TRACE_RING_LIMIT=", text, " is no size of at least 1M; using the default"});
        }
    }
    if (const auto text = variable("TRACE_RING_UNWIND"); !text.empty()) {
        if (const auto way = unwind_from(text)) {
            s.unwind = *way;
        } else {
            complain({"TRACE_RING_UNWIND=", text,
                      " is none of tables, fp, unwind, none; using the default"});
        }
    }
    const auto depth = [&](std::string_view name, std::size_t& to) {
        const auto text = variable(name);
        if (text.empty()) return;
        if (const auto frames = parse_bytes(text); frames && *frames <= max_depth) {
            to = static_cast<std::size_t>(*frames);
        } else {
            complain({name, "=", text, " is no number from 0 to 32; using the default"});
        }
    };
    depth("TRACE_RING_STACK", s.depth);
    depth("TRACE_RING_FREE_STACK", s.free_depth);
    if (s.unwind == unwind_by::none) s.depth = 0;
    s.free_depth = std::min(s.free_depth, s.depth);
    return s;
}

/// `pattern` with a counter before its extension: for 0 the pattern itself.
[[nodiscard]] inline std::string numbered(const std::string& pattern, unsigned count) {
    if (count == 0) return pattern;
    const auto slash = pattern.rfind('/');
    auto dot = pattern.rfind('.');
    if (dot == std::string::npos || (slash != std::string::npos && dot < slash + 2) || dot == 0) {
        dot = pattern.size();
    }
    return pattern.substr(0, dot) + "." + std::to_string(count) + pattern.substr(dot);
}

}  // namespace heap
