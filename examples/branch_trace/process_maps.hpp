// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file Reads a process's properties from /proc while it exists: its mapped code, its program and
/// word size, and the process of a thread.

#include <limits.h>
#include <unistd.h>

#include <array>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "branch_log.hpp"

namespace branches {

[[nodiscard]] inline std::string proc(std::uint32_t process, std::string_view what) {
    return "/proc/" + std::to_string(process) + "/" + std::string(what);
}

/// The mappings that contain code, by address; empty if the process no longer exists.
[[nodiscard]] inline std::vector<mapping> read_code_maps(std::uint32_t process) {
    std::vector<mapping> all;
    std::ifstream in(proc(process, "maps"));
    for (std::string line; std::getline(in, line);) {
        mapping one;
        std::array<char, 5> rights{};
        int path = 0;
        if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %n",
                        &one.start, &one.end, rights.data(), &one.offset, &path) != 4 ||
            rights[2] != 'x') {
            continue;
        }
        one.path = path > 0 ? line.substr(static_cast<std::size_t>(path)) : "";
        if (one.path.empty()) one.path = "[anonymous]";
        all.push_back(std::move(one));
    }
    return all;
}

/// The path of its program; "?" if unknown.
[[nodiscard]] inline std::string program_of(std::uint32_t process) {
    std::array<char, PATH_MAX> path{};
    const auto length = ::readlink(proc(process, "exe").c_str(), path.data(), path.size());
    return length > 0 ? std::string(path.data(), static_cast<std::size_t>(length)) : "?";
}

/// Whether its program has 64 bits, according to the file; true if unknown.
[[nodiscard]] inline bool is_64_bit(std::uint32_t process) {
    std::array<char, 5> head{};
    std::ifstream in(proc(process, "exe"), std::ios::binary);
    return !in.read(head.data(), head.size()) || head[4] != 1;
}

/// The process of a thread; the thread's number if unknown.
[[nodiscard]] inline std::uint32_t process_of(std::uint32_t thread) {
    std::ifstream in(proc(thread, "status"));
    constexpr std::string_view label = "Tgid:";
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with(label)) {
            return static_cast<std::uint32_t>(
                std::strtoul(line.c_str() + label.size(), nullptr, 10));
        }
    }
    return thread;
}

}  // namespace branches
