// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Levels of caches, with every word of --cache. cache_misses has a faster path for a first level
/// without such words.
///
/// A reference that lies on several lines counts once, and is a miss if any of the lines is
/// missing. The whole reference then goes to the next level. A level that is inclusive or exclusive
/// is queried for each missing line, before the line is placed in the level in front of it.
///
/// | a line | inclusive level | exclusive level |
/// |---|---|---|
/// | missing in all | is also placed in it | is not placed in it |
/// | found there | stays | moves to the level before it, and stays dirty |
/// | leaves the level before it | | is placed in it, unless the other half of a split level has it |
/// | leaves | leaves all levels before it | |
///
/// A store makes a line of the first level dirty. A dirty line that leaves is written to the next
/// level, and its line there becomes dirty. If the next level does not have the line, the bytes
/// bypass it, without being placed in it, to the first level behind it that has the line, or to
/// memory. They count as written by each level that they bypass. So the last level's bytes are
/// those that memory receives, and no level's misses depend on which lines are dirty.
///
/// A prefetcher fetches the line after the last one of a reference that missed, once the reference
/// has been served. It accesses the next level as a reference does, but counts neither as a
/// reference nor as a use. If several levels prefetch, the first level does so first.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cache_result.hpp"
#include "cache_sets.hpp"
#include "cache_shape.hpp"
#include "site_table.hpp"

namespace address_trace {

/// A request to a cache.
struct cache_request {
    enum class kind : std::uint8_t { load, store, fetch };

    kind is = kind::load;
    site_id site = 0;
    std::uint64_t address = 0;
    std::uint64_t size = 0;  ///< in bytes, not 0
};

class cache_hierarchy {
public:
    /// The levels from index `begin` on, as parse_cache_levels returns them.
    explicit cache_hierarchy(const cache_levels& levels, std::size_t begin = 0);

    /// The site numbers in requests are below `all`.
    void expect_sites(site_id all);
    /// Constant time on average; a set is searched through one way at a time.
    void request(const cache_request& each);
    /// Counts references that hit the first level and change nothing.
    void add_hits(std::uint64_t loads, std::uint64_t stores, std::uint64_t fetches);

    /// The results by level; the two halves of a split level follow each other.
    [[nodiscard]] std::vector<cache_result> results() const;

private:
    static constexpr std::size_t memory = ~std::size_t{0};  // what is behind the last level

    struct member {
        explicit member(const cache_shape& of);

        cache_shape shape;
        unsigned shift;
        cache_sets lines;
        std::size_t data_next = memory, code_next = memory;  // accessed when a line is missing here
        std::size_t outer = memory;                          // receives the lines that leave
        std::vector<std::size_t> inner;       // levels that an inclusive level contains, the first
                                              // level first
        std::vector<std::size_t> before;      // levels whose lines an exclusive level does not have
        std::uint64_t asked = 0, missed = 0;  // the numbers of the last requests
        std::array<miss_counts, 3> by_kind;   // of loads, stores, fetches
        std::vector<std::uint64_t> by_site;
        written_bytes written;
        prefetch_counts prefetched;
        std::uint64_t invalidated = 0;
    };

    /// Returns the first one that is asked.
    std::size_t link(bool (cache_shape::*takes)() const noexcept, std::size_t member::*next);
    [[nodiscard]] std::size_t next_of(const member& of) const noexcept {
        return request_.is == cache_request::kind::fetch ? of.code_next : of.data_next;
    }
    /// Whether it is accessed line by line: it is inclusive or exclusive.
    [[nodiscard]] bool is_tied(std::size_t at) const noexcept {
        return at != memory && all_[at].shape.holds != inclusion::neither;
    }
    bool ask(std::size_t at, std::uint64_t address, std::uint64_t size);
    void prefetch(std::size_t at, std::uint64_t line);
    void insert(std::size_t at, std::uint64_t line, bool dirty, bool prefetched);
    void leave(std::size_t at, cache_sets::way& leaving);
    void write_out(std::size_t from, std::uint64_t address, std::uint64_t size);
    /// Whether a cache before an exclusive level, other than `from`, has the line.
    [[nodiscard]] bool is_before(const member& level, std::uint64_t line, std::size_t from);
    void note_reference(member& of);
    void note_miss(member& of);

    std::vector<member> all_;
    bool counts_writes_;
    std::size_t first_data_ = memory, first_code_ = memory;
    cache_request request_;     // the request that is being served
    std::uint64_t number_ = 0;  // its number
    bool is_prefetch_ = false;
};

}  // namespace address_trace
