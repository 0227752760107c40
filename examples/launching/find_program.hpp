// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Where programs are, and how they are executed.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace launching {

[[nodiscard]] inline bool is_file(const std::string& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

/// The parts of a list with colons; an empty one is the current folder.
[[nodiscard]] inline std::vector<std::string> folders_of(std::string_view list) {
    std::vector<std::string> made;
    while (!list.empty()) {
        const std::size_t end = std::min(list.find(':'), list.size());
        made.emplace_back(end == 0 ? "." : list.substr(0, end));
        list.remove_prefix(std::min(end + 1, list.size()));
    }
    return made;
}

/// Where a program is, as execvp looks for it; empty if it is nowhere.
[[nodiscard]] inline std::string path_of_program(const std::string& name) {
    if (name.find('/') != std::string::npos) return is_file(name) ? name : "";
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody here sets variables
    const char* const list = std::getenv("PATH");
    for (const std::string& folder : folders_of(list == nullptr ? "/bin:/usr/bin" : list)) {
        std::string path = folder;
        path.append("/").append(name);
        if (is_file(path) && ::access(path.c_str(), X_OK) == 0) return path;
    }
    return {};
}

/// Whether a file is a program in the system's own format. Signal-safe.
[[nodiscard]] inline bool is_elf(const char* path) noexcept {
    const int file = ::open(path, O_RDONLY | O_CLOEXEC);
    char begin[4] = {};
    const bool is = file >= 0 && ::read(file, begin, sizeof begin) == sizeof begin &&
                    std::memcmp(begin, "\177ELF", sizeof begin) == 0;
    if (file >= 0) ::close(file);
    return is;
}

/// Executes a program in place of this process, as a shell does: sh runs a text without `#!`.
/// execvp also gives sh a program for another machine or word size, which sh would run as a script.
/// Returns only on failure, with errno set. Signal-safe.
///
/// @param path  path_of_program(words[0]), found before a fork
inline void execute(const char* path, char* const* words) noexcept {
    if (*path != 0) {
        ::execv(path, words);
        if (errno != ENOEXEC) return;
        if (is_elf(path)) {
            errno = ENOEXEC;
            return;
        }
    }
    ::execvp(words[0], words);
}

}  // namespace launching
