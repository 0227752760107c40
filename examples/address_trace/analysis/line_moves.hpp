// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file Finds references that are certain hits in all caches with 64-byte lines and a multiple of
/// 64 sets: loads and stores of the line that was last used in its part, a 64th of all lines. All
/// lines of a set are in one part, so this line is also its set's last one: it is cached, and
/// nothing changes. Most references are of this kind.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cache_shape.hpp"
#include "site_table.hpp"

namespace address_trace {

class line_moves {
public:
    static constexpr std::uint64_t line = 64, parts = 64;

    /// Whether a cache for loads and stores alone can skip the other references.
    [[nodiscard]] static bool serve(const cache_shape& shape) noexcept {
        return shape.line == line && shape.sets % parts == 0 && !shape.takes_code();
    }

    line_moves() { last_.fill(~std::uint64_t{0}); }

    struct result {
        std::uint64_t loads = 0, stores = 0;    ///< all of them
        std::span<const std::uint32_t> moving;  ///< the indexes of the references that may change
                                                ///< something
    };
    /// Computes this for the references of a run. Linear.
    template <class References>
    [[nodiscard]] result find(const References& all) {
        if (moving_.size() < all.size()) moving_.resize(all.size());
        result out;
        std::uint32_t* to = moving_.data();
        std::uint32_t number = 0;
        for (const auto& each : all) {
            if (each.is_data()) {
                out.stores += each.is_store();
                out.loads += !each.is_store();
                const std::uint64_t at = each.address / line;
                const bool is_within = each.address % line + each.size <= line;
                std::uint64_t& last = last_[at % parts];
                *to = number;
                to += last != at || !is_within;
                last = at;
                if (!is_within) [[unlikely]]
                    note_lines(at + 1, (each.address % line + each.size - 1) / line);
            }
            ++number;
        }
        out.moving = {moving_.data(), to};
        return out;
    }

private:
    [[gnu::noinline]] void note_lines(std::uint64_t first, std::uint64_t count) noexcept {
        const std::uint64_t begin = count > parts ? first + (count - parts) : first;
        for (std::uint64_t at = begin; at != first + count; ++at) last_[at % parts] = at;
    }

    std::array<std::uint64_t, parts> last_{};
    std::vector<std::uint32_t> moving_;
};

}  // namespace address_trace
