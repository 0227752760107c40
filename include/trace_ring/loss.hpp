// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Loss by cause. A trace either holds a record or says that it is missing, how often and why.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <trace_ring/position.hpp>

namespace trace_ring::inline v1 {

/// Why a record is missing. Who counts it is part of the meaning: the ring counts `overwritten`,
/// each reader its own `overrun`, the writer the others.
enum class loss_cause : std::uint8_t {
    overwritten,  ///< replaced by newer records, whether it was read or not
    overrun,      ///< replaced while, or just before, this reader copied it
    refused,      ///< no room, and the `full` policy discards; or no lane or sub-buffer is free
    too_long,     ///< longer than a sub-buffer can hold
    nested,       ///< begun inside four records that were still open on the same thread
    abandoned,    ///< reserved and never committed by a writer that died or was stopped
    damaged,      ///< there, but its bytes contradict themselves: a reader's verdict
};
inline constexpr std::size_t loss_cause_count = 7;  ///< the number of causes

/// The cause in words, for messages.
[[nodiscard]] constexpr std::string_view to_string(loss_cause cause) noexcept {
    constexpr std::array<std::string_view, loss_cause_count> names{
        "overwritten", "overrun", "refused", "too long", "nested", "abandoned", "damaged"};
    return names[static_cast<std::size_t>(cause)];
}

/// Whether the record had been written; one lost for another cause never was.
[[nodiscard]] constexpr bool was_written(loss_cause cause) noexcept {
    return cause == loss_cause::overwritten || cause == loss_cause::overrun ||
           cause == loss_cause::damaged;
}

/// One gap in a sequence: `count` records are missing from position `at` on, for one cause.
struct loss {
    position at = no_position;                   ///< position of the first missing record
    std::uint64_t count = 0;                     ///< how many are missing
    loss_cause cause = loss_cause::overwritten;  ///< why they are missing

    friend constexpr bool operator==(const loss&, const loss&) noexcept = default;
};

/// Totals, one for each cause. A sum beyond 2^64 - 1, of counts in a damaged trace, stays there.
class loss_counts {
public:
    /// The total of one cause.
    [[nodiscard]] constexpr std::uint64_t operator[](loss_cause cause) const noexcept {
        return counts_[static_cast<std::size_t>(cause)];
    }
    /// Adds to one cause.
    constexpr void add(loss_cause cause, std::uint64_t count) noexcept {
        std::uint64_t& sum = counts_[static_cast<std::size_t>(cause)];
        sum = added(sum, count);
    }
    /// Adds each cause.
    constexpr loss_counts& operator+=(const loss_counts& other) noexcept {
        for (std::size_t i = 0; i < loss_cause_count; ++i)
            counts_[i] = added(counts_[i], other.counts_[i]);
        return *this;
    }
    /// The sum of all causes.
    [[nodiscard]] constexpr std::uint64_t total() const noexcept {
        std::uint64_t sum = 0;
        for (const auto count : counts_) sum = added(sum, count);
        return sum;
    }
    friend constexpr bool operator==(const loss_counts&, const loss_counts&) noexcept = default;

private:
    [[nodiscard]] static constexpr std::uint64_t added(std::uint64_t a, std::uint64_t b) noexcept {
        return a + b < a ? ~std::uint64_t{0} : a + b;
    }

    std::array<std::uint64_t, loss_cause_count> counts_{};
};

}  // namespace trace_ring::inline v1
