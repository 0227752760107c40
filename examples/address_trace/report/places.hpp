// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Where a site is in the source, as the symbol tables and debug information of its object say.

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include <heap_recorder/report/stacks.hpp>
#include <heap_recorder/report/symbols.hpp>

namespace address_trace {

struct place {
    std::string function;     ///< the one that has a symbol, or "object+0x123"
    std::string object;       ///< the file's name; empty: none is known to lie there
    std::uint64_t start = 0;  ///< where the function begins, in its file; without a symbol the site
    std::string line{};       ///< "file:line", of the innermost inlined function; empty: unknown
    std::string own_line{};   ///< the same, but not in a header of the system or the compiler
};

/// Asked once for each site.
using place_of = std::function<place(std::uint64_t site)>;

/// The objects of one process, added as they are loaded. A site belongs to what lay there last.
class loaded_objects {
public:
    /// What an event `module` says.
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
        out.object = outer.object;
        out.start = outer.function.empty() ? at.address : at.address - outer.offset;
        if (!inner.file.empty()) out.line = inner.where();
        for (const heap::symbol& each : found) {
            if (each.file.empty() || is_of_system(each.file)) continue;
            out.own_line = each.where();
            break;
        }
        return out;
    }

    /// Paths of the files that give no names, and why.
    [[nodiscard]] const std::map<std::string, std::string>& problems() const noexcept {
        return names_.problems();
    }

private:
    [[nodiscard]] static bool is_of_system(std::string_view file) {
        return file.starts_with("/usr/include/") || file.starts_with("/usr/lib/") ||
               file.find("/include/c++/") != file.npos;
    }

    heap::code_map map_;
    heap::stack_table table_;
    heap::symbolizer names_;
};

}  // namespace address_trace
