// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Levels of caches with everything that --cache has words for. cache_misses keeps a faster way for
/// a first level that has none.
///
/// A reference that lies on several lines is one, and a miss if any of them was missing. Then the
/// next level is asked for the whole reference. A level that is inclusive or exclusive is asked
/// for each line that was missing, before the line has a place in the level in front of it.
///
/// | a line | inclusive level | exclusive level |
/// |---|---|---|
/// | missing in all | comes into it, too | does not come into it |
/// | found there | stays | moves to the level before it, and dirty if it was |
/// | leaves the level before it | | comes into it, unless the other half of a split level has it |
/// | leaves | leaves all levels before it | |
///
/// A store makes a line of the first level dirty. A dirty line that leaves is written to the next
/// level, and makes its line dirty there. If the next level does not have the line, the bytes go
/// past it, without a place in it, to the first level behind that has it, or to memory; they count
/// as written by each level that they go past. So the last level's bytes are those that memory
/// gets, and no level's misses depend on which lines are dirty.
///
/// A prefetcher brings the line behind the last one of a reference that missed, when the reference
/// has been served. It asks the next level as a reference does, but counts neither as a reference
/// nor as a use. If several levels prefetch, the first level does so first.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cache_result.hpp"
#include "cache_sets.hpp"
#include "cache_shape.hpp"
#include "site_table.hpp"

namespace address_trace {

/// What a cache is asked for.
struct cache_request {
    enum class kind : std::uint8_t { load, store, fetch };

    kind is = kind::load;
    site_id site = 0;
    std::uint64_t address = 0;
    std::uint64_t size = 0;  ///< in bytes, not 0
};

class cache_hierarchy {
public:
    /// The levels from number `begin` on, as parse_cache_levels returns them.
    explicit cache_hierarchy(const cache_levels& levels, std::size_t begin = 0);

    /// Sites' numbers in requests are less.
    void expect_sites(site_id all);
    /// Constant time on average; a set is searched through one way at a time.
    void request(const cache_request& each);
    /// Counts references that the first level has, and that change nothing.
    void add_hits(std::uint64_t loads, std::uint64_t stores, std::uint64_t fetches);

    /// By levels, those that share one beside each other.
    [[nodiscard]] std::vector<cache_result> results() const;

private:
    static constexpr std::size_t memory = ~std::size_t{0};  // what is behind the last level

    struct member {
        explicit member(const cache_shape& of);

        cache_shape shape;
        unsigned shift;
        cache_sets lines;
        std::size_t data_next = memory, code_next = memory;  // asked when a line is missing here
        std::size_t outer = memory;                          // takes what leaves
        std::vector<std::size_t> inner;   // what an inclusive level contains, the first level first
        std::vector<std::size_t> before;  // has no line that this one has, if it is exclusive
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
    /// Whether it is asked line by line: it is inclusive or exclusive.
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
    cache_request request_;     // the one that is being served
    std::uint64_t number_ = 0;  // of it
    bool is_prefetch_ = false;
};

}  // namespace address_trace
