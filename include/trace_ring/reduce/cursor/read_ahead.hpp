// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Sub-buffers of a trace, copied some at a time in the order in which a cursor will ask for them:
/// what a cursor does by itself where reading in a row saves system calls, and what a program may
/// do its own way, such as by other threads (filter::ahead).
/// @code
///   cursor                     read_ahead
///   what there is of a lane    add           the plan: so many parts
///   all is known               start
///   the next sub-buffer        take          fetch: the part that it lies in, copied
///                                            release: all of that part was taken
/// @endcode
/// What is missing between sub-buffers, merging, and all but a condition stays with the cursor,
/// which copies and decodes what it does not get here: so what is read is the same.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <trace_ring/position.hpp>
#include <trace_ring/reduce/cursor/batch.hpp>
#include <trace_ring/reduce/entries/entry_list.hpp>
#include <trace_ring/reduce/file/chain.hpp>
#include <trace_ring/reduce/filter.hpp>
#include <trace_ring/reduce/tables.hpp>

namespace trace_ring::inline v1::reduce {

/// For one cursor. What it does not have is no loss: the cursor copies it alone. Memory: eight
/// batches of at most 64 KiB, and 32 bytes for each sub-buffer.
class read_ahead {
public:
    read_ahead(const tables& in, merging order)
        : in_(in), order_(order), size_(batch::size_for(in.plan())) {}
    read_ahead(const read_ahead&) = delete;
    read_ahead& operator=(const read_ahead&) = delete;
    virtual ~read_ahead() = default;

    /// What is going to be read of a lane. All of them before `start`.
    void add(const chain& what, const lane_info& lane) {
        for (const auto& link : what.links) {
            if (!link.readable || link.fault != link_fault::none) continue;
            plan_.push_back({link.pos, link.slot, what.lane, link.commit, &lane});
        }
    }
    /// Before the first `take`. Linear, and sorting if there are several lanes.
    virtual void start() { set_up(8); }

    /// Takes over the copy of a sub-buffer, and what it was decoded to. False: there is none.
    /// Throws std::bad_alloc.
    [[nodiscard]] bool take(std::uint32_t lane, position pos, entry_list& into) {
        const std::size_t at = find(lane, pos);
        if (at == plan_.size()) return false;
        held* const from = fetch(at / size_);
        if (from == nullptr) return false;
        batch::one& one = from->copies[at % size_];
        const bool copied = std::exchange(one.copied, false);
        if (copied) {
            into.take_copy(one.list);
            credit_ = (std::min)(credit_ + 2, most_credit_);
        }
        if (--from->left == 0) release(*from);
        return copied;
    }

protected:
    static constexpr std::size_t none = ~std::size_t{0};

    /// Room for one part of the plan.
    struct held {
        batch copies;
        std::size_t number = none;  ///< of the part
        std::uint64_t used = 0;
        std::size_t left = 0;  ///< not yet asked for
    };

    /// The part, copied; null: it is not, and the cursor copies what it needs of it.
    [[nodiscard]] virtual held* fetch(std::size_t number) {
        for (held& each : held_) {
            if (each.number == number) return use(each);
        }
        if (held_.empty() || !may_copy(number)) return nullptr;
        held& place =
            *std::min_element(held_.begin(), held_.end(), [](const auto& a, const auto& b) {
                return (a.number == none ? 0 : a.used) < (b.number == none ? 0 : b.used);
            });
        begin(place, number);
        try {
            place.copies.fill(in_, part(number));
        } catch (...) {
            place.number = none;
            throw;
        }
        return use(place);
    }
    /// All of the part was asked for.
    virtual void release(held& place) { place.number = none; }

    void set_up(std::size_t places) {
        const auto before = [this](const planned_copy& a, const planned_copy& b) {
            return key(a.lane, a.pos) < key(b.lane, b.pos);
        };
        if (!std::is_sorted(plan_.begin(), plan_.end(), before)) {
            std::sort(plan_.begin(), plan_.end(), before);
        }
        most_credit_ = 8 * size_;
        credit_ = most_credit_ / 2;
        held_ = std::vector<held>((std::min)(places, parts()));
    }
    [[nodiscard]] std::size_t parts() const noexcept { return (plan_.size() + size_ - 1) / size_; }
    [[nodiscard]] std::span<const planned_copy> part(std::size_t number) const noexcept {
        return std::span(plan_).subspan(number * size_,
                                        (std::min)(size_, plan_.size() - number * size_));
    }
    /// Not, so that lanes which are read in many places at once do not make everything be copied
    /// again and again, if of what was copied lately too little was used.
    [[nodiscard]] bool may_copy(std::size_t number) noexcept {
        if (credit_ < part(number).size()) {
            ++credit_;
            return false;
        }
        credit_ -= part(number).size();
        return true;
    }
    void begin(held& place, std::size_t number) noexcept {
        place.number = number;
        place.left = part(number).size();
    }
    [[nodiscard]] held* use(held& place) noexcept {
        place.used = ++now_;
        return &place;
    }
    [[nodiscard]] const tables& in() const noexcept { return in_; }
    [[nodiscard]] std::span<held> places() noexcept { return held_; }

private:
    [[nodiscard]] std::tuple<std::uint32_t, position> key(std::uint32_t lane,
                                                          position pos) const noexcept {
        return {order_ == merging::by_lane ? lane : 0, pos};
    }
    /// Where it is in the plan; its end if it is not there.
    [[nodiscard]] std::size_t find(std::uint32_t lane, position pos) noexcept {
        const auto is_here = [&](std::size_t at) {
            return at < plan_.size() && plan_[at].pos == pos && plan_[at].lane == lane;
        };
        for (const std::size_t beside : {last_ + 1, last_ - 1}) {
            if (is_here(beside)) return last_ = beside;
        }
        const auto found = std::lower_bound(
            plan_.begin(), plan_.end(), key(lane, pos),
            [this](const planned_copy& a, const auto& b) { return key(a.lane, a.pos) < b; });
        const auto at = static_cast<std::size_t>(found - plan_.begin());
        return is_here(at) ? last_ = at : plan_.size();
    }

    const tables& in_;
    merging order_;
    std::size_t size_;  // sub-buffers in a part
    std::vector<planned_copy> plan_;
    std::size_t last_ = 0;
    std::size_t credit_ = 0;
    std::size_t most_credit_ = 0;
    std::vector<held> held_;
    std::uint64_t now_ = 0;
};

}  // namespace trace_ring::inline v1::reduce
