// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The memory of a process that is traced, and how a process or thread is. Thread-safe; signal-safe
/// except for `state_of` and `living_thread_of`. O(n) in the bytes.

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <system_error>

namespace launching {

/// Reads all of `into` in the memory of a process, or of one of its threads; false if that is not
/// all there.
[[nodiscard]] inline bool read_memory(::pid_t process, std::uint64_t at,
                                      std::span<std::byte> into) noexcept {
    if (at > UINTPTR_MAX) return false;
    ::iovec own{into.data(), into.size()};
    ::iovec other{reinterpret_cast<void*>(static_cast<std::uintptr_t>(at)), into.size()};
    return ::process_vm_readv(process, &own, 1, &other, 1, 0) ==
           static_cast<::ssize_t>(into.size());
}
/// Writes it; false if that is not permitted to the process itself.
[[nodiscard]] inline bool write_memory(::pid_t process, std::uint64_t at,
                                       std::span<const std::byte> from) noexcept {
    if (at > UINTPTR_MAX) return false;
    ::iovec own{const_cast<std::byte*>(from.data()), from.size()};
    ::iovec other{reinterpret_cast<void*>(static_cast<std::uintptr_t>(at)), from.size()};
    return ::process_vm_writev(process, &own, 1, &other, 1, 0) ==
           static_cast<::ssize_t>(from.size());
}

/// R, S, D, Z and so on, as proc(5) has it; a space if there is no such process or thread.
[[nodiscard]] inline char state_of(::pid_t process) {
    std::ifstream in("/proc/" + std::to_string(process) + "/stat");
    std::string text;
    std::getline(in, text, '\0');             // names may have line ends
    const std::size_t end = text.rfind(')');  // "1234 (name) S ..."
    return end == text.npos || end + 2 >= text.size() ? ' ' : text[end + 2];
}

/// A thread of the process that has not ended: the first one may have ended before the others, and
/// then has no memory, and no files in /proc. The process's number if there is none.
[[nodiscard]] inline ::pid_t living_thread_of(::pid_t process) {
    const auto has_ended = [](char state) { return state == 'Z' || state == 'X'; };
    if (!has_ended(state_of(process))) return process;
    std::error_code gone;
    for (const auto& each :
         std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/task", gone)) {
        const auto thread =
            static_cast<::pid_t>(std::strtol(each.path().filename().c_str(), nullptr, 10));
        if (thread != 0 && !has_ended(state_of(thread))) return thread;
    }
    return process;
}

}  // namespace launching
