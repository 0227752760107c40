// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file Finds the traced processes.

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

namespace address_trace {

/// The processes that have `file` in their environment or in their memory, except this one:
/// descendants of a program that was started with its path in the environment, including those that
/// have not called a hook yet. Sorted; without processes whose /proc entries this user cannot read.
/// Linear in all processes.
[[nodiscard]] inline std::vector<std::uint32_t> processes_with(const std::string& file) {
    namespace fs = std::filesystem;
    std::vector<std::uint32_t> out;
    const auto has = [&](const fs::path& of) {
        // A stream turns the error of a process that ends into the end of the file.
        std::ifstream in(of, std::ios::binary);
        std::ostringstream all;
        all << in.rdbuf();
        const std::string text = all.str();
        return text.find(file) != std::string::npos;
    };
    std::error_code ended;
    for (fs::directory_iterator each("/proc", ended); !ended && each != fs::directory_iterator();
         each.increment(ended)) {
        const std::string name = each->path().filename().string();
        std::uint32_t process = 0;
        const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), process);
        if (error != std::errc{} || end != name.data() + name.size()) continue;
        if (process == static_cast<std::uint32_t>(::getpid())) continue;
        if (has(each->path() / "environ") || has(each->path() / "maps")) out.push_back(process);
    }
    std::ranges::sort(out);
    return out;
}

}  // namespace address_trace
