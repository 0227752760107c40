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
/// A block fetches its instructions, each of which is a reference.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "../coverage/code_layout.hpp"
#include "cache.hpp"
#include "cache_hierarchy.hpp"
#include "cache_result.hpp"
#include "cache_shape.hpp"
#include "run.hpp"

namespace address_trace {

class cache_misses final : public analysis {
public:
    /// Returns the code of the block of a site, if it is known. Called until it is.
    using code_of = std::function<std::optional<block_code>(std::uint64_t site)>;

    explicit cache_misses(cache_levels levels, code_of code = {});

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
        std::array<miss_counts, 3> by_kind;  // of loads, stores, fetches
        std::vector<std::uint64_t> by_site;
    };
    static constexpr std::size_t none = ~std::size_t{0};

    void take_moves(const sited_run& run);
    template <bool Data, bool Code>
    void take_first(std::span<const sited_reference> run);
    void missed(const cache_request& what);
    /// The code of a site's block; a single byte, which is counted, if it is unknown.
    [[nodiscard]] const block_code& code_at(const sited_reference& block);
    void fetch(const sited_reference& block);

    cache_levels levels_;
    code_of code_of_;
    std::vector<block_code> code_by_site_;
    block_code unknown_;
    std::uint64_t unknown_blocks_ = 0;
    // The caches of the first level, if `cache` can be each of them, and the numbers of those that
    // take data and code. The other levels are the hierarchy; without a fast level, all are.
    std::vector<simulated> fast_;
    std::size_t data_ = none, code_ = none;
    cache_hierarchy others_;
    bool asks_for_moves_ = false;
};

}  // namespace address_trace
