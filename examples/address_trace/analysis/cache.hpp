// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file A fast model of the lines in one set-associative cache with LRU replacement. cache_sets
/// supports more, and is slower.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cache_shape.hpp"

namespace address_trace {

class cache {
public:
    /// Whether this model supports such a cache.
    [[nodiscard]] static bool serves(const cache_shape& shape) noexcept {
        return shape.leaves == replacement::lru && shape.is_plain();
    }

    explicit cache(const cache_shape& shape)
        : lines_(static_cast<std::size_t>(shape.entries()), looked_up::empty),
          is_{lines_.data(), std::has_single_bit(shape.sets) ? 0 : shape.sets, shape.sets - 1,
              shape.ways, static_cast<unsigned>(std::countr_zero(shape.line))} {}
    cache(cache&&) noexcept = default;

    /// The cache as a loop holds it in registers; valid as long as the cache.
    struct looked_up {
        /// Returns whether all of [address, address + size) was cached. It is cached afterwards:
        /// stores allocate, too.
        [[nodiscard, gnu::always_inline]] bool reference(std::uint64_t address,
                                                         unsigned size) const noexcept {
            const std::uint64_t line = address >> shift;
            const std::uint64_t in_line = address & ((std::uint64_t{1} << shift) - 1);
            bool there = touch(line);
            if (in_line + size > std::uint64_t{1} << shift) [[unlikely]]
                there = touch_all(*this, line + 1, (in_line + size - 1) >> shift) && there;
            return there;
        }

        static constexpr std::uint64_t empty = ~std::uint64_t{0};  // no line has this number
        std::uint64_t* lines;
        std::uint64_t modulo;  // the number of sets, if that is no power of two
        std::uint64_t mask;
        std::uint32_t ways;
        unsigned shift;

        // The lines of a set are ordered by their last use, because most references find the first
        // one.
        [[nodiscard, gnu::always_inline]] bool touch(std::uint64_t line) const noexcept {
            const std::uint64_t set = modulo == 0 ? line & mask : line % modulo;
            std::uint64_t* const first = lines + static_cast<std::size_t>(set) * ways;
            return *first == line || touch_deep(first, ways, line);
        }
        [[nodiscard, gnu::noinline]] static bool touch_deep(std::uint64_t* set, std::uint32_t ways,
                                                            std::uint64_t line) noexcept {
            std::uint64_t moved = line;
            for (std::uint32_t way = 0; way < ways; ++way) {
                const std::uint64_t before = set[way];
                set[way] = moved;
                if (before == line) return true;
                moved = before;
            }
            return false;
        }
        [[nodiscard, gnu::noinline]] static bool touch_all(looked_up in, std::uint64_t first,
                                                           std::uint64_t count) noexcept {
            bool there = true;
            for (std::uint64_t i = 0; i < count; ++i) there = in.touch(first + i) && there;
            return there;
        }
    };
    [[nodiscard]] looked_up look_up() const noexcept { return is_; }

private:
    std::vector<std::uint64_t> lines_;
    looked_up is_;
};

}  // namespace address_trace
