// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Which lines are in one cache: set-associative, with one of several ways to choose the line of a
/// set that leaves.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cache_shape.hpp"

namespace address_trace {

class cache {
public:
    explicit cache(const cache_shape& shape)
        : lines_(static_cast<std::size_t>(shape.entries()), looked_up::empty),
          // The generator's state, or a word of bits for each set.
          state_(shape.leaves == replacement::plru ? static_cast<std::size_t>(shape.sets) : 1,
                 shape.leaves == replacement::random ? shape.seed : 0),
          is_{lines_.data(),  state_.data(), std::has_single_bit(shape.sets) ? 0 : shape.sets,
              shape.sets - 1, shape.ways,    static_cast<unsigned>(std::countr_zero(shape.line)),
              shape.leaves} {}
    cache(cache&&) noexcept = default;

    /// The cache as a loop holds it in registers; valid as long as the cache.
    struct looked_up {
        /// Whether all of [address, address + size) was there. Now it is: written, too, is
        /// allocated.
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
        std::uint64_t* state;
        std::uint64_t modulo;  // the number of sets, if that is no power of two
        std::uint64_t mask;
        std::uint32_t ways;
        unsigned shift;
        replacement leaves;

        // With lru the lines of a set are sorted, the one used last first: most references find it
        // there. A reference to the line of the set that was used last changes nothing with any
        // replacement (line_moves).
        [[nodiscard, gnu::always_inline]] bool touch(std::uint64_t line) const noexcept {
            const std::uint64_t set = modulo == 0 ? line & mask : line % modulo;
            std::uint64_t* const first = lines + static_cast<std::size_t>(set) * ways;
            if (leaves != replacement::lru) [[unlikely]]
                return touch_otherwise(*this, first, set, line);
            return *first == line || touch_deep(first, ways, line);
        }
        [[nodiscard, gnu::noinline]] static bool touch_otherwise(looked_up in, std::uint64_t* set,
                                                                 std::uint64_t number,
                                                                 std::uint64_t line) noexcept {
            std::uint32_t way = 0;
            while (way < in.ways && set[way] != line && set[way] != empty) ++way;
            const bool there = way < in.ways && set[way] == line;
            if (in.leaves == replacement::plru) {
                std::uint64_t& bits = in.state[number];
                if (way == in.ways) way = pointed_to(bits, in.ways);
                point_away(bits, in.ways, way);
            } else if (!there && way == in.ways) {
                // First in, first out: the lines of a set are sorted, the first one first.
                way = in.leaves == replacement::random ? next_random(*in.state) % in.ways : 0;
                if (in.leaves == replacement::fifo) {
                    for (std::uint32_t i = 0; i + 1 < in.ways; ++i) set[i] = set[i + 1];
                    way = in.ways - 1;
                }
            }
            set[way] = line;
            return there;
        }
        // A tree of bits, its root number 1: a bit that is set points to the upper half.
        [[nodiscard]] static std::uint32_t pointed_to(std::uint64_t bits,
                                                      std::uint32_t ways) noexcept {
            std::uint32_t node = 1;
            while (node < ways) node = node * 2 + static_cast<std::uint32_t>(bits >> node & 1);
            return node - ways;
        }
        static void point_away(std::uint64_t& bits, std::uint32_t ways,
                               std::uint32_t way) noexcept {
            for (std::uint32_t node = way + ways; node > 1; node /= 2) {
                const std::uint64_t parent = std::uint64_t{1} << node / 2;
                bits = node % 2 == 0 ? bits | parent : bits & ~parent;
            }
        }
        // Marsaglia's xorshift.
        [[nodiscard]] static std::uint32_t next_random(std::uint64_t& state) noexcept {
            auto x = static_cast<std::uint32_t>(state);
            x ^= x << 13;
            x ^= x >> 17;
            x ^= x << 5;
            state = x;
            return x;
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
    std::vector<std::uint64_t> lines_, state_;
    looked_up is_;
};

}  // namespace address_trace
