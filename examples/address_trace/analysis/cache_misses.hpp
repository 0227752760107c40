// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The misses of caches: one analysis for each `--cache`, all of them in the same pass.
///
/// As cachegrind counts: a reference that lies on several lines is one, and a miss if any of them
/// was missing. Then the whole reference is asked of the next level. What is written is allocated,
/// too. All threads share the caches, in the order of the runs.
///
/// A block fetches each line of its code once. Its references are its instructions, and its misses
/// the lines that were missing, as cachegrind counts them.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "../coverage/code_layout.hpp"
#include "cache.hpp"
#include "cache_shape.hpp"
#include "run.hpp"

namespace address_trace {

struct miss_counts {
    std::uint64_t references = 0, misses = 0;

    friend bool operator==(const miss_counts&, const miss_counts&) = default;
};

/// What came of one cache.
struct cache_result {
    cache_shape shape;
    miss_counts loads, stores, fetches;
    /// Blocks whose code is not known: each is in `fetches` as one instruction of one byte.
    std::uint64_t unknown_blocks = 0;
    std::vector<std::uint64_t> by_site;  ///< misses; a site that is not in it has none

    [[nodiscard]] miss_counts all() const noexcept {
        return {loads.references + stores.references + fetches.references,
                loads.misses + stores.misses + fetches.misses};
    }
};

class cache_misses final : public analysis {
public:
    /// Tells the code of the block of a site, if it is known. Asked once for each site.
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
    // The numbers in all_ of what a level has; none: it is not asked.
    struct taken_by {
        std::size_t data, code;
    };
    static constexpr std::size_t none = ~std::size_t{0};
    enum kind : std::size_t { load, store, fetch };
    /// One site's, or the part of it that was missing.
    struct missing {
        kind is;
        site_id site;
        std::uint64_t address;
        unsigned bytes;
    };

    void take_moves(const sited_run& run);
    template <bool Data, bool Code>
    void take_first(std::span<const sited_reference> run);
    void missed(const missing& what, std::size_t level);
    [[nodiscard]] static missing missing_data(const sited_reference& each) noexcept {
        return {each.is_store() ? store : load, each.site, each.address, each.size};
    }
    /// The code of a site's block; asked for the first time, if it is not known yet.
    [[nodiscard]] const block_code& code_at(const sited_reference& block);

    cache_levels levels_;
    code_of code_;
    std::vector<block_code> code_by_site_;
    block_code unknown_;
    std::uint64_t unknown_blocks_ = 0;
    std::vector<simulated> all_;
    std::vector<taken_by> by_level_;
    bool asks_for_moves_ = false;
};

}  // namespace address_trace
