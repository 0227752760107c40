// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The misses of caches: one analysis for each `--cache`, all of them in the same pass.
///
/// As cachegrind counts: a reference that lies on several lines is one, and a miss if any of them
/// was missing. Then the whole reference is asked of the next level. What is written is allocated,
/// too. All threads share the caches, in the order of the runs. cache_hierarchy has the rules of
/// levels with more words than a replacement.
///
/// A block is one reference of one byte, where its code begins: how long it is, is not known. So
/// code that goes on to another line without a branch is not fetched there, and misses of code are
/// a lower bound.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cache.hpp"
#include "cache_hierarchy.hpp"
#include "cache_result.hpp"
#include "cache_shape.hpp"
#include "run.hpp"

namespace address_trace {

class cache_misses final : public analysis {
public:
    explicit cache_misses(cache_levels levels);

    /// Constant time for each reference, on average; a set is searched through one way at a time.
    void take(const sited_run& run) override;
    [[nodiscard]] bool asks_for_moves() const override { return asks_for_moves_; }

    /// By levels, those that share one beside each other.
    [[nodiscard]] std::vector<cache_result> results() const;
    [[nodiscard]] const cache_levels& levels() const noexcept { return levels_; }

private:
    struct simulated {
        explicit simulated(const cache_shape& of) : lines(of) {}
        cache lines;
        std::array<miss_counts, 3> by_kind;  // of loads, stores, blocks
        std::vector<std::uint64_t> by_site;
    };
    static constexpr std::size_t none = ~std::size_t{0};

    void take_moves(const sited_run& run);
    template <bool Data, bool Code>
    void take_first(std::span<const sited_reference> run);
    void missed(const sited_reference& each);

    cache_levels levels_;
    // The caches of the first level, if `cache` can be each of them, and the numbers of those that
    // take data and code. The other levels are the hierarchy; without a fast level, all are.
    std::vector<simulated> fast_;
    std::size_t data_ = none, code_ = none;
    cache_hierarchy others_;
    bool asks_for_moves_ = false;
};

}  // namespace address_trace
