// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file The place of a site in the source, from the symbol tables and debug information of its
/// object.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include <heap_recorder/report/stacks.hpp>
#include <heap_recorder/report/symbols.hpp>
#include <symbols/symbols.hpp>

namespace address_trace {

struct place {
    std::string function;     ///< from a symbol, or "object+0x123"
    std::string object;       ///< path of its file; empty: no object is known there
    std::uint64_t start = 0;  ///< where the function begins in its file; without a symbol, the site
    std::string file{};       ///< path of the source; empty: unknown
    int line = 0;             ///< for the innermost inlined function; 0: the compiler did not give
                              ///< a line

    /// "file:line" of the innermost function outside the headers of the system and the compiler.
    std::string own_line{};

    /// "file:line", the file without its folders; empty: unknown.
    [[nodiscard]] std::string where() const {
        return file.empty() ? "" : symbols::file_name(file) + ':' + std::to_string(line);
    }
};

/// Called once for each site.
using place_of = std::function<place(std::uint64_t site)>;

/// The objects of one process, added in the order of loading. A site belongs to the last object
/// that was loaded at its address.
class loaded_objects {
public:
    /// Adds an object from an event `module`.
    void add(std::uint64_t start, std::uint64_t end, std::uint64_t bias,
             std::span<const std::uint8_t> build_id, std::string_view path) {
        map_.add(start, end, bias,
                 table_.intern({std::string(path), std::string(build_id.begin(), build_id.end())}));
    }

    [[nodiscard]] place find(std::uint64_t site) {
        const heap::frame at = map_.find(site);
        const auto& found = names_.find(table_, at);
        const heap::symbol &inner = found.front(), &outer = found.back();
        place out;
        out.function = outer.name();
        out.object = table_.object(at.object).path;
        out.start = outer.function.empty() ? at.address : at.address - outer.offset;
        const auto own = std::ranges::find_if(found, [](const heap::symbol& each) {
            return !each.file.empty() && !is_of_system(each.file);
        });
        if (own != found.end()) out.own_line = own->where();
        if (inner.file.empty()) return out;
        out.file = one_path(inner.file);
        out.line = inner.line;
        return out;
    }

    /// Paths of the files that provide no names, with the reason.
    [[nodiscard]] const std::map<std::string, std::string>& problems() const noexcept {
        return names_.problems();
    }

private:
    [[nodiscard]] static bool is_of_system(std::string_view file) {
        return file.starts_with("/usr/include/") || file.starts_with("/usr/lib/") ||
               file.find("/include/c++/") != file.npos;
    }
    /// Units compiled in different folders name a header by different paths: this returns one path
    /// for each existing file. Its last component is not resolved, even if it is a symbolic link.
    [[nodiscard]] const std::string& one_path(const std::string& of) {
        const auto [at, is_new] = paths_.try_emplace(of, of);
        if (!is_new) return at->second;
        namespace fs = std::filesystem;
        std::error_code error;
        const fs::path path(of);
        if (!fs::exists(path, error)) return at->second;
        const fs::path folder =
            fs::canonical(path.has_parent_path() ? path.parent_path() : ".", error);
        if (!error) at->second = (folder / path.filename()).string();
        return at->second;
    }

    heap::code_map map_;
    heap::stack_table table_;
    heap::symbolizer names_;
    std::map<std::string, std::string> paths_;  // by the paths in debug information
};

}  // namespace address_trace
