// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The entries of a System/370 DAS trace table from the oldest to the newest, by its three control
/// words alone. For readers of tables that no processor traces into any more.
/// @code
///   first                    current                     last
///   |  ...  | second newest | newest | oldest | ...  |   |
/// @endcode

#include <cstdint>

#include <trace_ring/das/controls.hpp>

namespace trace_ring::inline v1::das {

/// The entries that tracing uses in turn, from the first-entry control until the wrap test leads
/// back to it. Whether an entry has ever been used is not recorded in a table. Constant time.
class table_entries {
public:
    using controls = claim::controls<std::uint32_t>;  ///< the control words, by value

    /// Entries of the table with these control words.
    constexpr explicit table_entries(const controls& of) noexcept
        : first_(of.first), count_(count_of(of.first, of.last)) {
        const auto distance = of.current - of.first;
        has_newest_ =
            distance % claim::das_entry_bytes == 0 && distance / claim::das_entry_bytes < count_;
        oldest_ = has_newest_ ? distance / claim::das_entry_bytes + 1 : 0;
    }

    /// From 1 to 2^27. If last is not above first, there is one entry, at first: tracing wraps to
    /// it each time.
    [[nodiscard]] constexpr std::uint32_t count() const noexcept { return count_; }
    /// Current is one of the entries, so it is the newest. Otherwise the table is unused, or
    /// a program has changed current: then the entries come by address.
    [[nodiscard]] constexpr bool has_newest() const noexcept { return has_newest_; }
    /// The control word of an entry, by its number from the oldest, 0, to count() - 1.
    [[nodiscard]] constexpr std::uint32_t control(std::uint32_t number) const noexcept {
        const auto index = static_cast<std::uint32_t>((std::uint64_t{oldest_} + number) % count_);
        return first_ + claim::das_entry_bytes * index;
    }

private:
    /// The number of entries in [from, to).
    [[nodiscard]] static constexpr std::uint32_t between(std::uint32_t from,
                                                         std::uint32_t to) noexcept {
        return from < to ? (to - from - 1) / claim::das_entry_bytes + 1 : 0;
    }
    [[nodiscard]] static constexpr std::uint32_t count_of(std::uint32_t first,
                                                          std::uint32_t last) noexcept {
        constexpr std::uint32_t all = std::uint32_t{1} << 27;
        const std::uint64_t used = first < last ? between(first, last) : 1;
        // The addition drops its carry, so the wrap test may not see that an entry lies past last.
        if (first + used * claim::das_entry_bytes <= ~std::uint32_t{0})
            return static_cast<std::uint32_t>(used);
        return first < last ? all : 1 + between(first % claim::das_entry_bytes, last);
    }

    std::uint32_t first_, count_, oldest_ = 0;
    bool has_newest_ = false;
};

}  // namespace trace_ring::inline v1::das
