// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Names for the frames of call stacks, each looked up once.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <symbols/symbols.hpp>

#include "stacks.hpp"

namespace heap {

using symbols::symbol;
using symbols::without_arguments;

class symbolizer {
public:
    /// For a return address: of the call before it, the innermost function first.
    [[nodiscard]] const std::vector<symbol>& find(const stack_table& table, const frame& place) {
        if (const auto at = known_.find(place); at != known_.end()) return at->second;
        std::vector<symbol> found(1);
        found[0].offset = place.address;
        if (place.object != 0) {
            auto& from = objects_[place.object];
            if (!from) {
                const object_file& file = table.object(place.object);
                from = std::make_unique<symbols::object>(file.path, file.build_id);
                if (!from->problem().empty()) problems_[file.path] = from->problem();
            }
            found = from->before(place.address);
        }
        return known_.emplace(place, std::move(found)).first->second;
    }

    /// Paths of the files that have changed since, or are gone.
    [[nodiscard]] const std::map<std::string, std::string>& problems() const noexcept {
        return problems_;
    }

private:
    struct key_hash {
        std::size_t operator()(const frame& f) const noexcept {
            return static_cast<std::size_t>((f.address ^ std::uint64_t{f.object} << 48) *
                                            0x9E3779B97F4A7C15);
        }
    };
    std::unordered_map<object_id, std::unique_ptr<symbols::object>> objects_;
    std::unordered_map<frame, std::vector<symbol>, key_hash> known_;
    std::map<std::string, std::string> problems_;
};

}  // namespace heap
