// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Finds the cache lines that are used most, and those that threads share.
///
/// Memory is bounded. When twice as many lines are known as are to be kept, the median of their
/// weights is subtracted from each weight, and lines without remaining weight are dropped. (A
/// line's weight is one for each reference to it.) So every line with more than 1 / kept of all
/// references is known. The result includes the number of references that a line may have had
/// before it was known.
///
/// Lines that one thread stores to and another touches are tracked separately, with a separate
/// limit. Beyond it, the half with the fewest hand-overs is dropped.
///
/// Runs must be ordered by time. A run has only one thread, so if a thread takes a line from
/// another one a hundred times while their runs overlap in time, this counts once: hand-overs are a
/// lower bound, and there is also an upper bound.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "line_sharing.hpp"
#include "run.hpp"

namespace address_trace {

struct used_line {
    std::uint64_t address = 0;
    std::uint64_t loads = 0, stores = 0;
    std::uint64_t missed = 0;  ///< the maximum number of further references, before it was known

    [[nodiscard]] std::uint64_t references() const noexcept { return loads + stores; }
};

struct shared_line {
    std::uint64_t address = 0;
    std::uint64_t references = 0;       ///< by all threads, including dropped ones
    const line_sharing* how = nullptr;  ///< valid until the next run

    [[nodiscard]] std::uint64_t most_hand_overs() const noexcept {
        return how->most_hand_overs(references);
    }
};

class line_use final : public analysis {
public:
    static constexpr std::size_t default_kept = std::size_t{1} << 15;
    static constexpr std::size_t default_shared = std::size_t{1} << 12;

    /// `kept`: a power of two.
    explicit line_use(std::size_t kept = default_kept, std::size_t most_shared = default_shared);

    /// Constant time for each reference, on average.
    void take(const sited_run& run) override;

    /// Loads and stores; one on two lines is counted at both.
    [[nodiscard]] std::uint64_t references() const noexcept { return references_; }
    /// Whether no line was dropped. Otherwise an unknown line may have had as many references as
    /// `missed`, which is at most 1 / kept of all.
    [[nodiscard]] bool complete() const noexcept { return missed_ == 0; }
    [[nodiscard]] std::uint64_t missed() const noexcept { return missed_; }

    /// The `most` that were used most, those first.
    [[nodiscard]] std::vector<used_line> hottest(std::size_t most) const;
    /// Lines that threads touching different bytes took from each other, with the most hand-overs
    /// first; then those where all touch the same bytes.
    [[nodiscard]] std::vector<shared_line> false_sharing() const;
    [[nodiscard]] std::vector<shared_line> true_sharing() const;
    /// Shared lines that were dropped, and the maximum number of hand-overs of any of them.
    [[nodiscard]] std::uint64_t shared_forgotten() const noexcept { return shared_forgotten_; }
    [[nodiscard]] std::uint64_t most_forgotten_hand_overs() const noexcept {
        return most_forgotten_hand_overs_;
    }

private:
    struct entry {
        std::uint64_t line = no_line;
        std::uint64_t loads = 0, stores = 0;
        std::uint64_t missed = 0;
        std::uint64_t taken_off = 0;                        // of its weight
        line_bytes touched = 0, written = 0;                // by its only thread
        std::uint64_t loads_before = 0, stores_before = 0;  // by others, who had it before
        std::uint32_t thread = 0;
        site_id site = line_sharer::no_site;  // the first one of its only thread
        std::uint32_t shared = 0;             // its number in shared_, and one; 0: not shared

        [[nodiscard]] std::uint64_t weight() const noexcept { return loads + stores - taken_off; }
    };
    static constexpr std::uint64_t no_line = ~std::uint64_t{0};
    struct followed {
        std::uint64_t line;
        line_sharing how;
    };

    void note(std::uint64_t line, line_bytes bytes, const sited_reference& each,
              std::uint32_t thread);
    void note_other(entry& at, line_bytes bytes, const sited_reference& each, std::uint32_t thread);
    [[nodiscard]] entry& find(std::uint64_t line);
    [[nodiscard]] std::size_t slot_of(std::uint64_t line) const noexcept;
    void forget();
    void forget_shared();
    [[nodiscard]] std::vector<shared_line> shared(bool is_false) const;

    std::size_t kept_, most_shared_;
    unsigned shift_;
    std::vector<entry> entries_;  // a hash table, at most half full
    std::size_t known_ = 0;       // entries that are not shared
    entry* last_;
    std::vector<followed> shared_;
    std::uint64_t references_ = 0, missed_ = 0;
    std::uint64_t shared_forgotten_ = 0, most_forgotten_hand_overs_ = 0;
};

}  // namespace address_trace
