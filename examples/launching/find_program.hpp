// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Where programs are.

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
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

}  // namespace launching
