// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Caches as they are asked for: their names, sizes, and how they lie behind one another.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace address_trace {

/// Which line of a full set leaves for another one.
enum class replacement : std::uint8_t {
    lru,     ///< the one that was used least recently
    fifo,    ///< the one that came first
    random,  ///< any, by a generator with a seed
    plru     ///< as a tree of bits has it, each of which points away from what was used last
};

/// What a level holds of the lines that the levels before it hold.
enum class inclusion : std::uint8_t {
    neither,    ///< some of them, as it happens
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
    std::uint32_t seed = 1;  ///< of replacement::random
    inclusion holds = inclusion::neither;
    bool writes_back = false;   ///< asks for the bytes that dirty lines write
    bool fetches_next = false;  ///< a reference that misses brings the next line, too

    [[nodiscard]] std::uint64_t entries() const noexcept { return sets * ways; }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return entries() * line; }
    [[nodiscard]] bool is_tlb() const noexcept { return name.ends_with("TLB"); }
    /// What it takes, by its name: one that begins with D loads and stores, one with I code, others
    /// both.
    [[nodiscard]] bool takes_data() const noexcept { return !name.starts_with('I'); }
    [[nodiscard]] bool takes_code() const noexcept { return !name.starts_with('D'); }
    /// Whether it has no word but a replacement.
    [[nodiscard]] bool is_plain() const noexcept {
        return holds == inclusion::neither && !writes_back && !fetches_next;
    }

    friend bool operator==(const cache_shape&, const cache_shape&) = default;
};

/// One cache, or two that share the work.
using cache_level = std::vector<cache_shape>;

/// Levels from the processor outwards: what one misses, the next one is asked for.
struct cache_levels {
    std::vector<cache_level> all;

    /// Whether no cache has a word but a replacement.
    [[nodiscard]] bool are_plain() const noexcept;
    /// Whether written bytes are counted, in all of them: one is not plain, and none is a TLB.
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
