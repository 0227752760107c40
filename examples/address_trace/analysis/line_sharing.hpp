// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file How threads share one cache line: which bytes each touches, and how often the line is
/// handed over.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "run.hpp"

namespace address_trace {

inline constexpr unsigned shared_line_bits = 6;  ///< 64 bytes: a bit of a word for each

/// Bytes of a line: bit n is byte n.
using line_bytes = std::uint64_t;

/// One thread's use of a line.
struct line_sharer {
    std::uint32_t thread = 0;
    site_id site = no_site;  ///< the site of most of its hand-overs, if one site dominates
    std::uint64_t loads = 0, stores = 0;
    line_bytes touched = 0;  ///< ever
    line_bytes written = 0;

    [[nodiscard]] std::uint64_t references() const noexcept { return loads + stores; }

    static constexpr site_id no_site = ~site_id{0};
};

/// One line that threads share, as a coherent cache per thread would see it: a store takes the line
/// from all other threads that have it, and a load takes it from the thread that has stored to it.
/// Each of these is a hand-over. A hand-over is *false* if the bytes are disjoint from those that
/// the other thread has touched, or stored, since it got the line: if these bytes were on two
/// lines, there would be no hand-over.
class line_sharing {
public:
    static constexpr std::size_t most_sharers = 8;

    /// `owner` has had the line alone so far.
    explicit line_sharing(const line_sharer& owner) noexcept {
        sharer& first = all_[count_++];
        first.known = owner;
        first.touched_now = owner.touched;
        first.written_now = owner.written;
        first.has_it = true;
    }

    void note(std::uint32_t thread, site_id site, line_bytes bytes, bool stores) noexcept {
        sharer* const me = find(thread);
        if (me == nullptr) {
            ++others_;
            return;
        }
        ++(stores ? me->known.stores : me->known.loads);
        if (stores) {
            take_away(*me, site, bytes);
        } else if (!me->has_it) {
            get(*me, site, bytes);
        }
        me->has_it = true;
        me->touched_now |= bytes;
        me->known.touched |= bytes;
        if (stores) {
            me->written_now |= bytes;
            me->known.written |= bytes;
        }
        if (me->known.site == line_sharer::no_site) me->known.site = site;
    }

    /// Whether threads that touch different bytes took the line from each other.
    [[nodiscard]] bool is_false() const noexcept {
        for (std::size_t i = 0; i < count_; ++i) {
            for (std::size_t k = 0; k < count_; ++k) {
                if ((all_[i].false_with >> k & 1) != 0 &&
                    all_[i].known.touched != all_[k].known.touched)
                    return true;
            }
        }
        return false;
    }
    [[nodiscard]] std::uint64_t false_hand_overs() const noexcept { return false_; }
    [[nodiscard]] std::uint64_t hand_overs() const noexcept { return false_ + true_; }
    /// The maximum number of hand-overs for any order of the references, if the line had `all`
    /// references.
    [[nodiscard]] std::uint64_t most_hand_overs(std::uint64_t all) const noexcept {
        std::uint64_t busiest = 0;
        for (std::size_t i = 0; i < count_; ++i)
            busiest = std::max(busiest, all_[i].known.references());
        return std::max(hand_overs(), std::min(all, 2 * (all - std::min(all, busiest))));
    }
    /// References that are in the counts of the first threads.
    [[nodiscard]] std::uint64_t attributed() const noexcept {
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < count_; ++i) sum += all_[i].known.references();
        return sum;
    }

    [[nodiscard]] std::size_t size() const noexcept { return count_; }
    [[nodiscard]] const line_sharer& operator[](std::size_t i) const noexcept {
        return all_[i].known;
    }
    /// References of threads beyond the first ones.
    [[nodiscard]] std::uint64_t others() const noexcept { return others_; }

private:
    struct sharer {
        line_sharer known;
        line_bytes touched_now = 0, written_now = 0;  // since it got the line
        std::uint32_t votes = 0;
        std::uint8_t false_with = 0;  // a bit for each sharer
        bool has_it = false;
    };
    static_assert(most_sharers <= 8);

    [[nodiscard]] sharer* find(std::uint32_t thread) noexcept {
        for (std::size_t i = 0; i < count_; ++i) {
            if (all_[i].known.thread == thread) return &all_[i];
        }
        if (count_ == most_sharers) return nullptr;
        all_[count_].known.thread = thread;
        return &all_[count_++];
    }
    [[nodiscard]] unsigned number_of(const sharer& each) const noexcept {
        return static_cast<unsigned>(&each - all_.data());
    }

    void take_away(sharer& me, site_id site, line_bytes bytes) noexcept {
        bool from_others = false, same_bytes = false;
        std::uint8_t from = 0;
        for (std::size_t i = 0; i < count_; ++i) {
            sharer& each = all_[i];
            if (&each == &me || !each.has_it) continue;
            from_others = true;
            same_bytes = same_bytes || (each.touched_now & bytes) != 0;
            from = static_cast<std::uint8_t>(from | 1u << i);
            each.has_it = false;
            each.touched_now = each.written_now = 0;
        }
        if (from_others) handed_over(me, site, same_bytes, from);
    }
    void get(sharer& me, site_id site, line_bytes bytes) noexcept {
        for (std::size_t i = 0; i < count_; ++i) {
            sharer& each = all_[i];
            if (&each == &me || each.written_now == 0) continue;
            handed_over(me, site, (each.written_now & bytes) != 0,
                        static_cast<std::uint8_t>(1u << i));
            each.written_now = 0;
        }
    }
    void handed_over(sharer& to, site_id site, bool same_bytes, std::uint8_t from) noexcept {
        ++(same_bytes ? true_ : false_);
        if (!same_bytes) to.false_with |= from;
        if (to.known.site == site) {
            ++to.votes;
        } else if (to.votes == 0) {
            to.known.site = site;
            to.votes = 1;
        } else {
            --to.votes;
        }
    }

    std::array<sharer, most_sharers> all_{};
    std::size_t count_ = 0;
    std::uint64_t false_ = 0, true_ = 0, others_ = 0;
};

}  // namespace address_trace
