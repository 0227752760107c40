// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The lanes of a trace that wait while one of them is read, in a heap: the next one in front.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace trace_ring::inline v1::reduce {

class lane_reader;

class lane_queue {
public:
    /// A lane in the order of reading: by the time of its next item, then by its number. Both
    /// ascend; a backward reader inverts both.
    struct place {
        std::uint64_t key = 0;
        std::uint32_t rank = 0;
        lane_reader* lane = nullptr;

        [[nodiscard]] bool before(const place& other) const noexcept {
            return key != other.key ? key < other.key : rank < other.rank;
        }
    };

    [[nodiscard]] bool empty() const noexcept { return heap_.empty(); }
    void clear() noexcept { heap_.clear(); }

    void push(const place& one) {
        heap_.push_back(one);
        std::push_heap(heap_.begin(), heap_.end(), later);
    }
    /// Takes the first. The queue must not be empty.
    [[nodiscard]] place pop() {
        std::pop_heap(heap_.begin(), heap_.end(), later);
        const place first = heap_.back();
        heap_.pop_back();
        return first;
    }
    /// Takes the first and adds another, in one step. The queue must not be empty.
    [[nodiscard]] place replace_first(const place& other) noexcept {
        const place first = heap_.front();
        std::size_t at = 0;
        for (std::size_t child = 1; child < heap_.size(); child = 2 * at + 1) {
            if (child + 1 < heap_.size() && heap_[child + 1].before(heap_[child])) ++child;
            if (!heap_[child].before(other)) break;
            heap_[at] = heap_[child];
            at = child;
        }
        heap_[at] = other;
        return first;
    }
    /// True if this one comes before all that wait.
    [[nodiscard]] bool precedes(const place& one) const noexcept {
        return heap_.empty() || one.before(heap_.front());
    }
    /// The greatest key with which a lane of this rank, which was the first, still comes before all
    /// that wait.
    [[nodiscard]] std::uint64_t limit(std::uint32_t rank) const noexcept {
        if (heap_.empty()) return ~std::uint64_t{0};
        const place& other = heap_.front();
        return other.rank < rank ? other.key - 1 : other.key;
    }

private:
    static constexpr auto later = [](const place& a, const place& b) { return b.before(a); };

    std::vector<place> heap_{};
};

}  // namespace trace_ring::inline v1::reduce
