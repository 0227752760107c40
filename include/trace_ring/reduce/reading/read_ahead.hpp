// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Sub-buffers of a trace, copied some at a time in the order in which a cursor will ask for them.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include <trace_ring/position.hpp>
#include <trace_ring/reduce/file/chain.hpp>
#include <trace_ring/reduce/file/entry_list.hpp>
#include <trace_ring/reduce/filter.hpp>
#include <trace_ring/reduce/reading/batch.hpp>
#include <trace_ring/reduce/tables.hpp>

namespace trace_ring::inline v1::reduce {

/// For one cursor, and by its thread. What it does not have is no loss: the cursor copies it alone.
/// Memory: eight batches of at most 64 KiB, and 24 bytes for each sub-buffer.
class read_ahead {
public:
    read_ahead(const tables& in, merging order)
        : in_(in), order_(order), size_(batch::size_for(in.plan())) {}

    /// What is going to be read of a lane. All of them before the first `take`.
    void add(const chain& what) {
        for (const auto& link : what.links) {
            if (!link.readable || link.fault != link_fault::none) continue;
            plan_.push_back({link.pos, link.slot, what.lane, link.commit});
        }
    }
    /// Linear, and sorting if there are several lanes.
    void start() {
        const auto before = [this](const planned_copy& a, const planned_copy& b) {
            return key(a.lane, a.pos) < key(b.lane, b.pos);
        };
        if (!std::is_sorted(plan_.begin(), plan_.end(), before)) {
            std::sort(plan_.begin(), plan_.end(), before);
        }
        most_credit_ = 8 * size_;
        credit_ = most_credit_ / 2;
    }

    /// The copy of a sub-buffer, to be taken over at once; null: there is none. Throws
    /// std::bad_alloc.
    [[nodiscard]] entry_list* take(std::uint32_t lane, position pos) {
        const std::size_t at = find(lane, pos);
        if (at == plan_.size()) return nullptr;
        const std::size_t number = at / size_;
        held* found = nullptr;
        for (held& each : held_) {
            if (each.number == number) found = &each;
        }
        if (found == nullptr) found = load(number);
        if (found == nullptr) return nullptr;
        found->used = ++now_;
        batch::one& one = found->copies[at % size_];
        if (!one.copied) return nullptr;
        one.copied = false;
        credit_ = std::min(credit_ + 2, most_credit_);
        return &one.list;
    }

private:
    static constexpr std::size_t none = ~std::size_t{0};

    struct held {
        batch copies;
        std::size_t number = none;  // of the part of the plan
        std::uint64_t used = 0;
    };

    [[nodiscard]] std::tuple<std::uint32_t, position> key(std::uint32_t lane,
                                                          position pos) const noexcept {
        return {order_ == merging::by_lane ? lane : 0, pos};
    }
    /// Where it is in the plan; its end if it is not there.
    [[nodiscard]] std::size_t find(std::uint32_t lane, position pos) noexcept {
        const auto is_here = [&](std::size_t at) {
            return at < plan_.size() && plan_[at].pos == pos && plan_[at].lane == lane;
        };
        for (const std::size_t near : {last_ + 1, last_ - 1}) {
            if (is_here(near)) return last_ = near;
        }
        const auto found = std::lower_bound(
            plan_.begin(), plan_.end(), key(lane, pos),
            [this](const planned_copy& a, const auto& b) { return key(a.lane, a.pos) < b; });
        const auto at = static_cast<std::size_t>(found - plan_.begin());
        return is_here(at) ? last_ = at : plan_.size();
    }

    /// Copies a part of the plan in the place of the one that was used the longest time ago. Not,
    /// so that lanes which are read in many places at once do not make everything be copied again
    /// and again, if of what was copied lately too little was used.
    [[nodiscard]] held* load(std::size_t number) {
        const auto part = std::span(plan_).subspan(number * size_,
                                                   std::min(size_, plan_.size() - number * size_));
        if (credit_ < part.size()) {
            ++credit_;
            return nullptr;
        }
        credit_ -= part.size();
        if (held_.size() < most_held) held_.resize(most_held);
        held& oldest =
            *std::min_element(held_.begin(), held_.end(),
                              [](const held& a, const held& b) { return a.used < b.used; });
        oldest.number = none;
        oldest.copies.fill(in_, part);
        oldest.number = number;
        return &oldest;
    }

    static constexpr std::size_t most_held = 8;

    const tables& in_;
    merging order_;
    std::size_t size_;  // sub-buffers in a batch
    std::vector<planned_copy> plan_;
    std::size_t last_ = 0;
    std::vector<held> held_;
    std::uint64_t now_ = 0;
    std::size_t credit_ = 0;
    std::size_t most_credit_ = 0;
};

}  // namespace trace_ring::inline v1::reduce
