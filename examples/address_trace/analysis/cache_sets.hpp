// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file The lines of one set-associative cache with any replacement, and the state of each line.
/// Lines are added and removed one at a time, as a cache_hierarchy requires.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cache_shape.hpp"

namespace address_trace {

class cache_sets {
public:
    /// A place for a line. Lines have 8 bytes at least, so 62 bits are enough for their numbers.
    struct way {
        static constexpr std::uint64_t nothing = (std::uint64_t{1} << 62) - 1;

        std::uint64_t line : 62 = nothing;
        bool dirty : 1 = false;
        bool prefetched : 1 = false;  // and not used since

        [[nodiscard]] bool is_empty() const noexcept { return line == nothing; }
    };
    static_assert(sizeof(way) == 8);

    explicit cache_sets(const cache_shape& shape)
        : all_(static_cast<std::size_t>(shape.entries())),
          state_(shape.leaves == replacement::plru ? static_cast<std::size_t>(shape.sets) : 1,
                 shape.leaves == replacement::random ? shape.seed : 0),
          modulo_(std::has_single_bit(shape.sets) ? 0 : shape.sets),
          mask_(shape.sets - 1),
          ways_(shape.ways),
          leaves_(shape.leaves) {}

    [[nodiscard]] std::span<const way> all() const noexcept { return all_; }

    /// The line's place; null: not cached. Does not count as a use.
    [[nodiscard]] way* find(std::uint64_t line) noexcept {
        way* const set = set_of(line);
        way* const at =
            std::find_if(set, set + ways_, [line](way one) { return one.line == line; });
        return at == set + ways_ ? nullptr : at;
    }
    /// The same, and counts as a use.
    [[nodiscard]] way* use(std::uint64_t line) noexcept {
        way* const at = find(line);
        if (at == nullptr) return nullptr;
        if (leaves_ == replacement::lru) return to_front(at);
        if (leaves_ == replacement::plru) point_away(at);
        return at;
    }
    /// The place for a line that is not cached. The line in it must leave; `put` must follow.
    [[nodiscard]] way& choose(std::uint64_t line) noexcept {
        way* const set = set_of(line);
        if (is_sorted()) return set[ways_ - 1];
        way* const empty = std::find_if(set, set + ways_, [](way one) { return one.is_empty(); });
        if (empty != set + ways_) return *empty;
        return set[leaves_ == replacement::plru ? pointed_to(set) : next_random() % ways_];
    }
    void put(way& chosen, way made) noexcept {
        chosen = made;
        if (is_sorted()) to_front(&chosen);
        if (leaves_ == replacement::plru) point_away(&chosen);
    }
    /// Removes a line and returns its state; empty: not cached.
    way take_out(std::uint64_t line) noexcept {
        way* at = find(line);
        if (at == nullptr) return {};
        const way was = *at;
        way* const end = set_of(line) + ways_;
        if (is_sorted()) at = std::move(at + 1, end, at);
        *at = {};
        return was;
    }

private:
    // With lru the lines of a set are sorted, the one used last first; with fifo the one that came
    // last is the first. Empty places are behind them.
    [[nodiscard]] bool is_sorted() const noexcept {
        return leaves_ == replacement::lru || leaves_ == replacement::fifo;
    }
    [[nodiscard]] std::size_t number_of(std::uint64_t line) const noexcept {
        return static_cast<std::size_t>(modulo_ == 0 ? line & mask_ : line % modulo_);
    }
    [[nodiscard]] way* set_of(std::uint64_t line) noexcept {
        return all_.data() + number_of(line) * ways_;
    }
    way* to_front(way* at) noexcept {
        way* const first = set_of(at->line);
        const way moved = *at;
        std::move_backward(first, at, at + 1);
        *first = moved;
        return first;
    }

    // A tree of bits, its root number 1: a bit that is set points to the upper half.
    [[nodiscard]] std::uint32_t pointed_to(const way* set) const noexcept {
        const std::uint64_t bits = state_[static_cast<std::size_t>(set - all_.data()) / ways_];
        std::uint32_t node = 1;
        while (node < ways_) node = node * 2 + static_cast<std::uint32_t>(bits >> node & 1);
        return node - ways_;
    }
    void point_away(const way* at) noexcept {
        const auto number = static_cast<std::size_t>(at - all_.data());
        std::uint64_t& bits = state_[number / ways_];
        for (std::size_t node = number % ways_ + ways_; node > 1; node /= 2) {
            const std::uint64_t parent = std::uint64_t{1} << node / 2;
            bits = node % 2 == 0 ? bits | parent : bits & ~parent;
        }
    }
    // Marsaglia's xorshift.
    [[nodiscard]] std::uint32_t next_random() noexcept {
        auto x = static_cast<std::uint32_t>(state_.front());
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        state_.front() = x;
        return x;
    }

    std::vector<way> all_;
    std::vector<std::uint64_t> state_;  // a word of bits for each set, or the generator's
    std::uint64_t modulo_;              // the number of sets, if that is no power of two
    std::uint64_t mask_;
    std::uint32_t ways_;
    replacement leaves_;
};

}  // namespace address_trace
