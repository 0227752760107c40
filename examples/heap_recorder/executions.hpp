// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The functions by which a program executes another one. If the preload works in the next program,
/// it begins another trace there. Otherwise this program's trace records that and why.
///
/// exec may be called in a child of vfork, which shares its parent's memory, and in a signal
/// handler, so nothing here allocates or takes a lock. Direct system calls are not seen.

#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <string_view>

#include "next_functions.hpp"
#include "path_room.hpp"
#include "recordable.hpp"

namespace heap {

/// The C library's functions, found at set-up: a child of vfork must not look them up.
struct next_executions {
    next_function<int(const char*, char* const*, char* const*)> execve{"execve"};
    next_function<int(const char*, char* const*)> execv{"execv"};
    next_function<int(const char*, char* const*)> execvp{"execvp"};
    next_function<int(const char*, char* const*, char* const*)> execvpe{"execvpe"};
    next_function<int(int, char* const*, char* const*)> fexecve{"fexecve"};
    next_function<int(int, const char*, char* const*, char* const*, int)> execveat{"execveat"};
    using spawn = int(pid_t*, const char*, const posix_spawn_file_actions_t*,
                      const posix_spawnattr_t*, char* const*, char* const*);
    next_function<spawn> posix_spawn{"posix_spawn"};
    next_function<spawn> posix_spawnp{"posix_spawnp"};
    next_function<int(const char*)> system{"system"};
    next_function<FILE*(const char*, const char*)> popen{"popen"};

    void find() noexcept {
        static_cast<void>(execve.get()), static_cast<void>(execv.get());
        static_cast<void>(execvp.get()), static_cast<void>(execvpe.get());
        static_cast<void>(fexecve.get()), static_cast<void>(execveat.get());
        static_cast<void>(posix_spawn.get()), static_cast<void>(posix_spawnp.get());
        static_cast<void>(system.get()), static_cast<void>(popen.get());
    }
};

/// Whether an environment preloads a library with this name.
[[nodiscard]] inline bool preloads(char* const* environment, std::string_view library) noexcept {
    constexpr std::string_view name = "LD_PRELOAD=";
    for (; environment != nullptr && *environment != nullptr; ++environment) {
        const std::string_view entry(*environment);
        if (entry.starts_with(name)) return entry.find(library) != entry.npos;
    }
    return false;
}

/// The path of a program that is about to be executed: `name` itself, or where execvp finds it.
class executed_path {
public:
    executed_path(const char* name, bool by_search) noexcept : name_(name) {
        if (name == nullptr || *name == '\0') return;
        if (by_search && std::strchr(name, '/') == nullptr) {
            search();
            return;
        }
        path_ = full_.absolute(name);
    }
    /// The file that a descriptor is open on, or a path relative to it.
    executed_path(int directory, const char* name) noexcept : name_(name) {
        if (*name == '/' || directory == AT_FDCWD) {
            path_ = full_.absolute(name);
            return;
        }
        char link[40];
        ::snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
        char* const to = full_.data();
        const ssize_t got = to == nullptr ? 0 : ::readlink(link, to, PATH_MAX);
        if (got <= 0) return;
        auto length = static_cast<std::size_t>(got);
        const std::size_t more = std::strlen(name);
        if (more != 0 && more + length + 2 < path_room::bytes) {
            to[length++] = '/';
            std::memcpy(to + length, name, more);
            length += more;
        }
        to[length] = '\0';
        path_ = {to, length};
    }

    /// Zero-terminated; empty: not found, so it will not be executed.
    [[nodiscard]] std::string_view path() const noexcept { return path_; }
    [[nodiscard]] bool is_there() const noexcept {
        return !path_.empty() && ::access(path_.data(), X_OK) == 0;
    }

private:
    void search() noexcept {
        const char* list = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): as execvp
        if (list == nullptr) list = "/bin:/usr/bin";
        const std::size_t length = std::strlen(name_);
        char* const to = found_.data();
        if (to == nullptr) return;
        for (;; ++list) {
            const std::size_t folder = std::strcspn(list, ":");
            if (folder + length + 2 < path_room::bytes) {
                std::memcpy(to, list, folder);
                std::size_t end = folder;
                if (end != 0) to[end++] = '/';
                std::memcpy(to + end, name_, length + 1);
                if (::access(to, X_OK) == 0) {
                    path_ = full_.absolute(to);
                    return;
                }
            }
            list += folder;
            if (*list == '\0') return;
        }
    }

    const char* name_;
    path_room found_, full_;
    std::string_view path_;
};

}  // namespace heap
