// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file The result of simulating one cache.

#include <cstdint>
#include <optional>
#include <vector>

#include "cache_shape.hpp"

namespace address_trace {

struct miss_counts {
    std::uint64_t references = 0, misses = 0;

    friend bool operator==(const miss_counts&, const miss_counts&) = default;
};

struct written_bytes {
    std::uint64_t back = 0;         ///< bytes written outwards, from lines that left or past this
                                    ///< cache
    std::uint64_t still_dirty = 0;  ///< bytes in lines that were still dirty at the end

    friend bool operator==(const written_bytes&, const written_bytes&) = default;
};

/// Lines that a cache's prefetcher fetched.
struct prefetch_counts {
    std::uint64_t lines = 0;
    std::uint64_t used = 0;  ///< lines that a reference used before they left

    friend bool operator==(const prefetch_counts&, const prefetch_counts&) = default;
};

struct cache_result {
    cache_shape shape;
    miss_counts loads, stores, fetches;
    /// Executions of blocks with unknown code: each counts in `fetches` as one instruction of one
    /// byte.
    std::uint64_t unknown_blocks = 0;
    std::vector<std::uint64_t> by_site{};  ///< misses; a site that is not in it has none
    std::optional<written_bytes> written{};
    /// Lines that left because they left the inclusive level behind; only if there is such a level.
    std::optional<std::uint64_t> invalidated{};
    std::optional<prefetch_counts> prefetched{};

    [[nodiscard]] miss_counts all() const noexcept {
        return {loads.references + stores.references + fetches.references,
                loads.misses + stores.misses + fetches.misses};
    }
};

}  // namespace address_trace
