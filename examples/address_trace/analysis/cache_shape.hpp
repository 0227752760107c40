// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file The shapes of simulated caches: names, sizes, and the order of levels.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace address_trace {

/// Selects the line of a full set that leaves.
enum class replacement : std::uint8_t {
    lru,     ///< the one that was used least recently
    fifo,    ///< the one that was placed first
    random,  ///< any, by a generator with a seed
    plru     ///< the one that a tree of bits points to; each use turns its bits away
};

/// The relation of a level's lines to those of the levels before it.
enum class inclusion : std::uint8_t {
    neither,    ///< independent
    inclusive,  ///< all: a line that leaves it leaves the levels before it, too
    exclusive   ///< none: it holds lines that have left the level before it
};

/// A set-associative cache, or TLB: then a line is a page.
struct cache_shape {
    std::string name;
    std::uint64_t sets = 0;
    std::uint64_t line = 0;  ///< bytes, a power of two
    std::uint32_t ways = 0;
    replacement leaves = replacement::lru;
    std::uint32_t seed = 1;  ///< for replacement::random
    inclusion holds = inclusion::neither;
    bool writes_back = false;   ///< counts the bytes that dirty lines write
    bool fetches_next = false;  ///< a reference that misses brings the next line, too

    [[nodiscard]] std::uint64_t entries() const noexcept { return sets * ways; }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return entries() * line; }
    [[nodiscard]] bool is_tlb() const noexcept { return name.ends_with("TLB"); }
    /// The name determines what it takes: loads and stores if it begins with D, code if it begins
    /// with I, otherwise both.
    [[nodiscard]] bool takes_data() const noexcept { return !name.starts_with('I'); }
    [[nodiscard]] bool takes_code() const noexcept { return !name.starts_with('D'); }
    /// Whether it has no word except a replacement.
    [[nodiscard]] bool is_plain() const noexcept {
        return holds == inclusion::neither && !writes_back && !fetches_next;
    }

    friend bool operator==(const cache_shape&, const cache_shape&) = default;
};

/// One cache, or two halves of a split level.
using cache_level = std::vector<cache_shape>;

/// Levels from the processor outwards: a miss in one goes to the next.
struct cache_levels {
    std::vector<cache_level> all;

    /// Whether no cache has a word except a replacement.
    [[nodiscard]] bool are_plain() const noexcept;
    /// Whether all of them count written bytes: at least one is not plain, and no cache is a TLB.
    [[nodiscard]] bool count_writes() const noexcept;
    [[nodiscard]] bool any(bool (*is)(const cache_shape&)) const noexcept;

    friend bool operator==(const cache_levels&, const cache_levels&) = default;
};

/// What `--cache` is given:
///
///     D1=32K,64,8                            name=size,line,ways
///     L1=48K,64,12+L2=2M,64,16               levels
///     D1=32K,64,8/I1=32K,64,8+L2=1M,64,8     the first of them split
///     TLB=64,4096,4                          name=entries,page,ways; of any name that ends in TLB
///     D1=32K,64,8,plru                       another replacement: fifo, plru, random[:SEED]
///     D1=32K,64,8+L2=1M,64,8,fifo,exclusive  also inclusive, write-back, next
///
/// The words come in any order. `inclusive` and `exclusive` are for a level behind another one.
/// `write-back`, on any cache, counts the bytes that all of them write; so do `inclusive`,
/// `exclusive` and `next`, which is a prefetcher.
///
/// Sizes may end in K, M or G. The number of sets need not be a power of two.
///
/// Throws std::invalid_argument that says what is wrong with which part.
[[nodiscard]] cache_levels parse_cache_levels(std::string_view text);

/// The same shape as text: "32 KiB, 64-byte lines, 8 ways", "64 pages of 4 KiB, 4 ways, fifo,
/// next".
[[nodiscard]] std::string describe(const cache_shape& shape);

}  // namespace address_trace
