// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The misses of caches: one analysis for each `--cache`, all in the same pass.
///
/// Counts as cachegrind does: a reference that lies on several lines counts once, and is a miss if
/// any of the lines is missing. The whole reference then goes to the next level. Stores allocate.
/// All threads share the caches, in the order of the runs. cache_hierarchy documents levels with
/// more words than a replacement.
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
    /// Returns the code of a site's block if it is known. Called again until it is.
    using code_of = std::function<std::optional<block_code>(std::uint64_t site)>;

    explicit cache_misses(cache_levels levels, code_of code = {});

    /// Constant time for each reference, on average; a set is searched through one way at a time.
    void take(const sited_run& run) override;
    [[nodiscard]] bool asks_for_moves() const override { return asks_for_moves_; }

    /// The results by level; the two halves of a split level follow each other.
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
    /// The code of a site's block; if unknown, a single byte, which is counted as unknown.
    [[nodiscard]] const block_code& code_at(const sited_reference& block);
    void fetch(const sited_reference& block);

    cache_levels levels_;
    code_of code_of_;
    std::vector<block_code> code_by_site_;
    block_code unknown_;
    std::uint64_t unknown_blocks_ = 0;
    // The caches of the first level if `cache` supports each of them, and the numbers of those that
    // take data and code. The hierarchy has the other levels, or all levels if the first one is not
    // fast.
    std::vector<simulated> fast_;
    std::size_t data_ = none, code_ = none;
    cache_hierarchy others_;
    bool asks_for_moves_ = false;
};

}  // namespace address_trace
