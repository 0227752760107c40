// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A cache for each thread, kept coherent by the MESI protocol: so what sharing costs is told in
/// misses, invalidations, and bytes that are written back.
///
/// | a thread | and its line is | then |
/// |---|---|---|
/// | loads  | modified, exclusive, shared | hit |
/// | loads  | invalid | miss; who has it modified writes it back; all that have it share it |
/// | stores | modified, exclusive | hit, modified |
/// | stores | shared | hit; the others' are invalidated |
/// | stores | invalid | miss; who has it modified writes it back; the others' are invalidated |
///
/// A miss of a line that was there until another thread stored to it is a *coherence miss*; a
/// larger cache would have it, too. Atomic updates and compares that fail take the line as stores
/// do. A modified line that has to leave, least recently used first, is written back.
///
/// Runs come in the order of time, but there is no other thread within one: where threads take a
/// line away from each other side by side, what is told is a lower bound.

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "cache_shape.hpp"
#include "run.hpp"

namespace address_trace {

/// What one thread's cache had to do.
struct coherence_counts {
    std::uint32_t thread = 0;
    std::uint64_t references = 0;  ///< of lines: one that lies on two counts twice
    std::uint64_t misses = 0;
    std::uint64_t coherence_misses = 0;  ///< of these
    std::uint64_t invalidated = 0;       ///< lines that others took away
    std::uint64_t written_back = 0;      ///< lines
};
/// What was taken away most.
struct contended_line {
    std::uint64_t address = 0;
    std::uint64_t invalidations = 0, coherence_misses = 0;
    site_id site = 0;  ///< of the last store that took it away
};

class coherent_caches final : public analysis {
public:
    /// Threads that have a cache; what others reference is not looked at, but counted.
    static constexpr std::size_t most_threads = 256;

    /// One shape, with lru. Throws std::invalid_argument otherwise.
    explicit coherent_caches(const cache_levels& shape);

    /// Constant time for each reference that hits; else linear in the threads.
    void take(const sited_run& run) override;

    [[nodiscard]] const cache_shape& shape() const noexcept { return shape_; }
    [[nodiscard]] std::vector<coherence_counts> results() const;
    /// The most invalidated first.
    [[nodiscard]] std::vector<contended_line> contended(std::size_t most) const;
    /// References of threads beyond the first ones.
    [[nodiscard]] std::uint64_t left_out() const noexcept { return left_out_; }
    /// Lines that were forgotten as they had been taken less than others.
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
    /// The others' lines: true, somebody has it.
    bool take_from_others(const own_cache& own, std::uint64_t line, const sited_reference& each);

    cache_shape shape_;
    unsigned shift_;
    std::vector<own_cache> all_;
    std::unordered_map<std::uint32_t, std::size_t> number_of_;
    std::unordered_map<std::uint64_t, contended_line> contended_;
    std::uint64_t now_ = 0, left_out_ = 0, forgotten_ = 0;
};

}  // namespace address_trace
