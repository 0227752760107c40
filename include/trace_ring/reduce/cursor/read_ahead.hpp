// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Copies the sub-buffers of a trace some at a time, in the order in which a cursor will ask for
/// them. A cursor uses it by itself where reading in a row saves system calls; a program may derive
/// its own from it, for example to copy by other threads (filter::ahead).
/// @code
///   cursor                     read_ahead
///   the sub-buffers of a lane  add           to the plan, which is cut into parts
///   all lanes are added        start
///   the next sub-buffer        take          fetch: copies the part that it lies in
///                                            release: all of that part was taken
/// @endcode
/// Losses between sub-buffers, merging, and the whole filter but its condition stay with the
/// cursor. It copies and decodes by itself what it does not get here, so its items are the same.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <trace_ring/reduce/cursor/batch.hpp>
#include <trace_ring/reduce/file/chain.hpp>

namespace trace_ring::inline v1::reduce {

/// For one cursor. A sub-buffer that it does not have is no loss: the cursor copies that alone.
/// Memory: eight batches of at most 64 KiB, and 32 bytes for each sub-buffer.
class read_ahead {
public:
    read_ahead(const tables& in, merging order)
        : in_(in), order_(order), size_(batch::size_for(in.plan())) {}
    read_ahead(const read_ahead&) = delete;
    read_ahead& operator=(const read_ahead&) = delete;
    virtual ~read_ahead() = default;

    /// The sub-buffers of a lane that will be read. For all lanes before `start`.
    void add(const chain& what, const lane_info& lane) {
        for (const auto& link : what.links) {
            if (!link.readable || link.fault != link_fault::none) continue;
            plan_.push_back({link.pos, link.slot, what.lane, link.commit, &lane});
        }
    }
    /// Before the first `take`. Linear, and sorting if there are several lanes.
    virtual void start() { set_up(8); }

    /// Moves a copied, decoded sub-buffer into `into`. False: there is no copy. Throws
    /// std::bad_alloc.
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
        std::size_t number = none;  ///< of the part; none: free
        std::uint64_t used = 0;
        std::size_t left = 0;  ///< not yet asked for
    };

    /// A part of the plan, copied; null: not copied, and the cursor copies the sub-buffers itself.
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
    /// All sub-buffers of the part were asked for.
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
    /// False if too little of the last copies was used: otherwise lanes that are read in many
    /// places at once would copy everything again and again.
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
    /// Its index in the plan; the plan's size if it is not there.
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
