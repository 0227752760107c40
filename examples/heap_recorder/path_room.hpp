// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Paths, put together within a call of the program's: no allocation, and little stack.

#include <limits.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <string_view>

namespace heap {

/// Room for a path and a name outside the stack, which may be a coroutine's.
class path_room {
public:
    static constexpr std::size_t bytes = std::size_t{2} * PATH_MAX;

    path_room() noexcept
        : at_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
    path_room(const path_room&) = delete;
    path_room& operator=(const path_room&) = delete;
    ~path_room() {
        if (data() != nullptr) ::munmap(at_, bytes);
    }
    /// Null: there is no memory.
    [[nodiscard]] char* data() const noexcept {
        return at_ == MAP_FAILED ? nullptr : static_cast<char*>(at_);
    }

    /// The program's path; empty: unknown.
    [[nodiscard]] std::string_view program() const noexcept {
        const ssize_t got = data() == nullptr ? 0 : ::readlink("/proc/self/exe", data(), PATH_MAX);
        return {data(), got > 0 ? static_cast<std::size_t>(got) : 0};
    }
    /// `name` in the working directory; unchanged if it is absolute, or the directory is unknown.
    [[nodiscard]] std::string_view absolute(std::string_view name) const noexcept {
        if (name.starts_with('/') || data() == nullptr || ::getcwd(data(), PATH_MAX) == nullptr)
            return name;
        std::size_t length = std::strlen(data());
        data()[length++] = '/';
        return {data(), length + name.copy(data() + length, bytes - length - 1)};
    }

private:
    void* at_;
};

}  // namespace heap
