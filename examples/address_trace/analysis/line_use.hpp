// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Which cache lines are used most, and which of them threads share.
///
/// Memory is bounded. When twice as many lines are known as are to be kept, the median of their
/// weights is taken off each weight, and those that have none left are forgotten. (A line's weight
/// is one for each reference to it.) So a line with more than 1 / kept of all references is known;
/// what may have been missed of a line before it was known is told.
///
/// Lines that one thread stores to and another touches are followed closely. They are not forgotten
/// as the others are, but have a limit of their own: beyond it the half that was handed over least
/// is.
///
/// Runs are to come in the order of time. Within a run there is no other thread, so a thread that
/// takes a line away from another one a hundred times while these run side by side is seen to do
/// so once: hand-overs are a lower bound, and there is an upper bound beside it.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "line_sharing.hpp"
#include "run.hpp"

namespace address_trace {

struct used_line {
    std::uint64_t address = 0;
    std::uint64_t loads = 0, stores = 0;
    std::uint64_t missed = 0;  ///< at most so many more, before it was known

    [[nodiscard]] std::uint64_t references() const noexcept { return loads + stores; }
};

struct shared_line {
    std::uint64_t address = 0;
    std::uint64_t references = 0;       ///< of all threads, and as many as were forgotten
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
    /// Whether no line was forgotten: else a line that is not known may have had as many references
    /// as `missed`, which is at most 1 / kept of all.
    [[nodiscard]] bool complete() const noexcept { return missed_ == 0; }
    [[nodiscard]] std::uint64_t missed() const noexcept { return missed_; }

    /// The `most` that were used most, those first.
    [[nodiscard]] std::vector<used_line> hottest(std::size_t most) const;
    /// Lines where threads that touch other bytes took the line from each other, the most handed
    /// over first; and those where all touch the same bytes.
    [[nodiscard]] std::vector<shared_line> false_sharing() const;
    [[nodiscard]] std::vector<shared_line> true_sharing() const;
    /// Shared lines that were forgotten, and how often one of these was handed over at most.
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
