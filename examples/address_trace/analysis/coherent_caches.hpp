// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// One cache per thread, kept coherent by the MESI protocol. Shows the cost of sharing as misses,
/// invalidations, and written-back bytes.
///
/// | a thread | and its line is | then |
/// |---|---|---|
/// | loads  | modified, exclusive, shared | hit |
/// | loads  | invalid | miss; a modified copy is written back; all copies become shared |
/// | stores | modified, exclusive | hit, modified |
/// | stores | shared | hit; other copies are invalidated |
/// | stores | invalid | miss; a modified copy is written back; other copies are invalidated |
///
/// A miss of a line that another thread's store has removed is a *coherence miss*; a larger cache
/// would not avoid it. Atomic updates and failed compares take the line as stores do. A modified
/// line that leaves (least recently used first) is written back.
///
/// Runs are ordered by time, but a run has only one thread. If threads take a line from each other
/// while their runs overlap in time, the result is a lower bound.

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "cache_shape.hpp"
#include "run.hpp"

namespace address_trace {

/// The work of one thread's cache.
struct coherence_counts {
    std::uint32_t thread = 0;
    std::uint64_t references = 0;  ///< per line: a reference on two lines counts twice
    std::uint64_t misses = 0;
    std::uint64_t coherence_misses = 0;  ///< included in the misses
    std::uint64_t invalidated = 0;       ///< lines that other threads' stores removed
    std::uint64_t written_back = 0;      ///< lines
};
/// The line that other threads took away most often.
struct contended_line {
    std::uint64_t address = 0;
    std::uint64_t invalidations = 0, coherence_misses = 0;
    site_id site = 0;  ///< of the last store that took it away
};

class coherent_caches final : public analysis {
public:
    /// Threads with a cache. References of further threads are counted, but not simulated.
    static constexpr std::size_t most_threads = 256;

    /// One shape, with lru. Throws std::invalid_argument otherwise.
    explicit coherent_caches(const cache_levels& shape);

    /// Constant time for each reference that hits; otherwise linear in the threads.
    void take(const sited_run& run) override;

    [[nodiscard]] const cache_shape& shape() const noexcept { return shape_; }
    [[nodiscard]] std::vector<coherence_counts> results() const;
    /// The most invalidated first.
    [[nodiscard]] std::vector<contended_line> contended(std::size_t most) const;
    /// References of threads beyond the first ones.
    [[nodiscard]] std::uint64_t left_out() const noexcept { return left_out_; }
    /// Lines that were dropped because they were taken less often than others.
    [[nodiscard]] std::uint64_t forgotten() const noexcept { return forgotten_; }

private:
    enum class state : std::uint8_t { invalid, shared, exclusive, modified };
    struct way {
        std::uint64_t line = ~std::uint64_t{0};
        std::uint64_t used = 0;
        state is = state::invalid;
        bool was_taken = false;  // it is invalid because another thread stored to it
    };
    struct own_cache {
        coherence_counts counts;
        std::vector<way> ways;
    };

    static constexpr std::size_t most_contended = std::size_t{1} << 16;

    void forget_contended();
    [[nodiscard]] own_cache* cache_of(std::uint32_t thread);
    [[nodiscard]] way* find(own_cache& in, std::uint64_t line) noexcept;
    void use(own_cache& own, std::uint64_t line, const sited_reference& each);
    void miss(own_cache& own, std::uint64_t line, const sited_reference& each);
    /// Updates the other threads' copies. Returns true if there is one.
    bool take_from_others(const own_cache& own, std::uint64_t line, const sited_reference& each);

    cache_shape shape_;
    unsigned shift_;
    std::vector<own_cache> all_;
    std::unordered_map<std::uint32_t, std::size_t> number_of_;
    std::unordered_map<std::uint64_t, contended_line> contended_;
    std::uint64_t now_ = 0, left_out_ = 0, forgotten_ = 0;
};

}  // namespace address_trace
