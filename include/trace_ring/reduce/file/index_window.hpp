// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Finds the entries of the dense index that a range of time needs: a binary search for the edges
/// of the range, then entries on either side until each lane is known.
/// @code
///   position   oldest  . . A B . A C A | B A C B A | . . C A . B . .  newest
///                          `-----------'  in range `-------'
///                    back until each lane was met   on until each lane was met
/// @endcode
/// The search may err. Sub-buffers are claimed in the order of positions and usually opened at
/// once, but a thread may claim some ahead, or sleep in between. So the search only says where to
/// begin. A lane is known when the window has one of its sub-buffers that begins before the range,
/// and one that begins after it, because positions and times of one lane ascend together. A lane
/// without a sub-buffer near the range records little: it is followed from its newest sub-buffer,
/// whose position the lane table has, through a few headers.
///
/// Some ranges need the whole index, which is 1/128 of the file by default, but never other headers
/// and no records: a range that reaches back to overwritten sub-buffers of a lane, lanes that left
/// the table, quotas, a clock that jumped, or entries that contradict each other.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <unordered_map>
#include <vector>

#include <trace_ring/atomic.hpp>
#include <trace_ring/reduce/file/chains.hpp>

namespace trace_ring::inline v1::reduce {

class index_window {
public:
    /// For the sub-buffers that begin before, in or after [from, to].
    index_window(const tables& in, std::uint64_t from, std::uint64_t to) noexcept
        : in_(in), order_(in), from_(from), to_(to) {}

    /// The slots to look at for the lanes for which `wants(lane_info)` is true, in ascending
    /// ranges. Logarithmic in the number of sub-buffers, and linear in those of the range, in the
    /// lanes, and in those opened since the least busy lane opened its own; at most in the index.
    template <class Wants>
    [[nodiscard]] std::vector<slot_range> find(const Wants& wants) {
        std::vector<slot_range> all{{0, in_.plan().sub_buffer_limit}};
        const bool unbounded = from_ == 0 && to_ == ~std::uint64_t{0};
        if (unbounded || from_ > to_ || order_.size() < least || in_.ring().folded_lanes != 0 ||
            !in_.time().consistent()) {
            return all;
        }
        constexpr std::uint64_t margin = 8;
        const std::uint64_t size = order_.size();
        begin_ = search(from_);
        end_ = to_ == ~std::uint64_t{0} ? size : search(to_ + 1);
        begin_ -= (std::min)(begin_, margin);
        end_ = (std::max)(begin_, (std::min)(end_ + margin, size));
        if (end_ - begin_ > size / 2) return all;
        look(begin_, end_);
        for (const auto& lane : in_.lanes()) {
            if (lane.listed && wants(lane) && concerns(lane)) needed_.push_back({&lane});
        }
        for (auto& each : needed_) {
            if (!look_at_newest(each)) return all;
        }
        for (;;) {
            bool back = false;
            bool on = false;
            for (auto& each : needed_) {
                judge(each);
                if (!each.low || !each.high) (void)walk(each);
                if (!each.high) {
                    chase(each);
                    if (each.high && !each.low) (void)walk(each);
                }
                if (each.low && each.high) continue;
                back = back || !each.low;
                on = on || !each.high;
            }
            if (!back && !on) break;
            const std::uint64_t more = std::max<std::uint64_t>(end_ - begin_, 64);
            if ((back && begin_ == 0) || (on && end_ == size)) return all;
            if (back) look(begin_ - (std::min)(begin_, more), begin_);
            if (on) look(end_, (std::min)(end_ + more, size));
            if (back) begin_ -= (std::min)(begin_, more);
            if (on) end_ = (std::min)(end_ + more, size);
            if (end_ - begin_ > size / 2) return all;
        }
        return disordered() ? all : ranges();
    }

    /// Entries of the index looked at so far.
    [[nodiscard]] std::uint64_t looked_at() const noexcept { return looked_at_; }

private:
    /// An index with fewer entries is one page or two: all of it is read.
    static constexpr std::uint64_t least = 256;

    struct need {
        const lane_info* lane = nullptr;
        bool low = false;         ///< no earlier sub-buffer than the known ones matters
        bool high = false;        ///< no later one does
        bool all_known = false;   ///< both, whatever the window
        bool high_known = false;  ///< those after the window begin after the range
    };

    /// Whether the lane existed within the range.
    [[nodiscard]] bool concerns(const lane_info& lane) const noexcept {
        const bool gone = lane.state == layout::presence::departed && lane.ended != 0;
        return lane.newest != no_position && lane.began <= to_ && !(gone && lane.ended < from_);
    }

    /// Reads an entry. False: it does not hold position `pos`.
    [[nodiscard]] bool read(std::uint64_t slot, position pos, index_row& out) {
        ++looked_at_;
        one_.read(in_, slot, 1);
        return one_.get(0, out) && out.pos == pos && out.lane != 0;
    }
    void note(const index_row& row) { seen_[row.lane].push_back(row); }

    /// The first place that begins at `time` or later, if times ascend with places.
    [[nodiscard]] std::uint64_t search(std::uint64_t time) {
        std::uint64_t low = 0;
        std::uint64_t high = order_.size();
        while (low < high) {
            const std::uint64_t middle = low + (high - low) / 2;
            // Skips places without an entry: some in a row may have been drawn ahead and not used.
            std::uint64_t at = middle;
            index_row row;
            bool told = false;
            for (int tries = 0; at < high && tries < 64 && !told; ++tries) {
                told = read(order_.slot(at), order_.at(at), row);
                if (!told) ++at;
            }
            if (told) probes_.push_back(row);
            if (told && row.first_time < time) {
                low = at + 1;
            } else {
                high = middle;
            }
        }
        return low;
    }

    /// Visits the entries of the places from `begin` to before `end` that hold their position.
    template <class Visit>
    void for_each(std::uint64_t begin, std::uint64_t end, const Visit& visit) {
        while (begin < end) {
            const std::uint64_t slot = order_.slot(begin);
            // One read for slots in a row: up to where the ring wraps round.
            std::uint64_t count = std::min<std::uint64_t>(end - begin, 4096);
            if (order_.slot(begin + count - 1) < slot) count -= order_.slot(begin + count - 1) + 1;
            many_.read(in_, slot, as_size(count));
            looked_at_ += count;
            for (std::uint64_t i = 0; i < count; ++i) {
                index_row row;
                if (many_.get(as_size(i), row) && row.lane != 0 &&
                    row.pos == order_.at(begin + i)) {
                    visit(row);
                }
            }
            begin += count;
        }
    }
    void look(std::uint64_t begin, std::uint64_t end) {
        for_each(begin, end, [this](const index_row& row) { note(row); });
    }

    /// Notes the lane's newest sub-buffer, wherever it is. False: it was overwritten. Older ones
    /// may still exist, which only the index can tell: not every one is overwritten in its turn.
    [[nodiscard]] bool look_at_newest(need& of) {
        const position pos = of.lane->newest;
        const std::uint64_t slot = slot_of(pos, in_.plan().sub_buffer_limit);
        index_row row;
        if (read(slot, pos, row) && row.lane == of.lane->number) {
            note(row);
            extra_.push_back(slot);
            of.high = true;
            of.low = row.first_time < from_;
            newest_[of.lane->number] = row;
            return true;
        }
        return false;
    }

    /// Sets `low` and `high` by the entries within the window.
    void judge(need& of) {
        const index_row& newest = newest_.at(of.lane->number);
        if (newest.first_time < from_ || of.all_known) return;
        of.low = false;
        of.high = of.high_known || has(newest.pos);
        for (const auto& row : seen_.at(of.lane->number)) {
            if (!has(row.pos)) continue;
            of.low = of.low || row.first_time < from_;
            of.high = of.high || row.first_time > to_;
        }
    }
    /// Whether this position lies in the window.
    [[nodiscard]] bool has(position pos) const noexcept {
        const std::uint64_t place = order_.place_of(pos);
        return place >= begin_ && place < end_;
    }

    /// The lane's entry before `of`, as the header says. False if it is not known or overwritten.
    [[nodiscard]] bool previous(const index_row& of, index_row& out, bool& first) {
        const std::uint64_t limit = in_.plan().sub_buffer_limit;
        sub_buffer_copy head;
        std::uint32_t magic = 0;
        first = false;
        if (!in_.bytes().peek(in_.plan().bytes_for(slot_of(of.pos, limit)), head, magic) ||
            !is_sub_buffer_magic(magic) || head.state.pos != of.pos || head.lane != of.lane ||
            head.previous >= of.pos) {
            return false;
        }
        first = head.previous == no_position;
        return !first && read(slot_of(head.previous, limit), head.previous, out) &&
               out.lane == of.lane;
    }
    void keep(const index_row& row) {
        extra_.push_back(slot_of(row.pos, in_.plan().sub_buffer_limit));
        note(row);
    }

    /// Follows the headers back: from the newest, if few steps lead to before the range, or from
    /// the lane's first entry in the window to its beginning. True: the rest of the lane is known.
    [[nodiscard]] bool walk(need& of) {
        constexpr int most = 4;
        index_row here = newest_.at(of.lane->number);
        if (of.high) {  // all later than its first in the window are known
            for (const auto& row : seen_.at(of.lane->number)) {
                if (row.pos < here.pos && (has(row.pos) || row.first_time < from_)) here = row;
            }
        }
        std::vector<index_row> found;
        for (int step = 0; step < most; ++step) {
            index_row before;
            bool first = false;
            if (previous(here, before, first)) {
                found.push_back(before);
                here = before;
            } else if (!first) {
                return false;
            }
            if (!first && here.first_time >= from_) continue;
            for (const auto& row : found) keep(row);
            of.low = of.high = of.all_known = true;
            return true;
        }
        return false;
    }

    /// For a lane that was silent for a while: looks after the window for the sub-buffer that
    /// directly follows the known ones. The search doubles its steps, then halves them. It may find
    /// a later one; the header of that says which came before, so the result is never wrong.
    void chase(need& of) {
        constexpr int rounds = 6;
        constexpr std::uint64_t few = 16;
        const std::uint32_t lane = of.lane->number;
        const std::uint64_t size = order_.size();
        position last = no_position;  // in the window
        for (const auto& row : seen_.at(lane)) {
            if (has(row.pos)) last = (std::max)(last, row.pos);
        }
        index_row found = newest_.at(lane);
        std::uint64_t high = order_.place_of(found.pos);   // of `found`
        const auto look_near = [&](std::uint64_t place) {  // for an entry of the lane
            index_row first;
            for_each(place, (std::min)(place + few, high), [&](const index_row& row) {
                if (row.lane == lane && first.lane == 0) first = row;
            });
            if (first.lane == 0) return false;
            found = first;
            high = order_.place_of(found.pos);
            return true;
        };
        for (int round = 0; round < rounds; ++round) {
            std::uint64_t low = end_;
            for (std::uint64_t step = 0; low + step < high; step = 2 * step + few) {
                if (look_near(low + step)) break;
                low += step + few;
            }
            while (low + few < high) {
                const std::uint64_t middle = low + (high - low) / 2;
                if (!look_near(middle)) low = (std::min)(middle + few, high);
            }
            if (low < high) (void)look_near(low);
            index_row before;
            bool first = false;
            if (found.first_time <= to_ || !previous(found, before, first)) return;
            if (last != no_position ? before.pos == last : before.first_time < from_) {
                keep(found);
                of.high_known = true;
                if (last == no_position) {
                    keep(before);
                    of.low = of.all_known = true;
                }
                of.high = true;
                return;
            }
            found = before;
            high = order_.place_of(found.pos);
            if (high <= end_ || high == size) return;
        }
    }

    /// Whether some lane has entries whose times do not ascend with their positions.
    [[nodiscard]] bool disordered() {
        for (const auto& row : probes_) note(row);
        for (auto& [lane, rows] : seen_) {
            const lane_info* const whose = in_.find_lane(lane);
            if (whose == nullptr || !whose->listed) return true;
            std::sort(rows.begin(), rows.end(),
                      [](const index_row& a, const index_row& b) { return a.pos < b.pos; });
            position pos = no_position;
            std::uint64_t last = 0;
            for (const auto& row : rows) {
                if (row.pos == pos) continue;  // met twice
                pos = row.pos;
                if (row.first_time < last || row.first_time < whose->began) return true;
                last = row.last_time != 0 ? row.last_time : row.first_time;
                if (last < row.first_time) return true;
            }
        }
        return false;
    }

    [[nodiscard]] std::vector<slot_range> ranges() const {
        std::vector<slot_range> out;
        if (begin_ < end_) {
            const std::uint64_t first = order_.slot(begin_);
            const std::uint64_t last = order_.slot(end_ - 1);
            if (first <= last) {
                out.push_back({first, last + 1});
            } else {  // the ring wraps round in it
                out.push_back({0, last + 1});
                out.push_back({first, first + (end_ - begin_) - (last + 1)});
            }
        }
        const auto covered = [&out](std::uint64_t slot) {
            return std::any_of(out.begin(), out.end(), [slot](const slot_range& range) {
                return slot >= range.begin && slot < range.end;
            });
        };
        std::vector<std::uint64_t> extra;
        std::copy_if(extra_.begin(), extra_.end(), std::back_inserter(extra),
                     [&](std::uint64_t slot) { return !covered(slot); });
        std::sort(extra.begin(), extra.end());
        extra.erase(std::unique(extra.begin(), extra.end()), extra.end());
        for (const std::uint64_t slot : extra) out.push_back({slot, slot + 1});
        std::sort(out.begin(), out.end(),
                  [](const slot_range& a, const slot_range& b) { return a.begin < b.begin; });
        return out;
    }

    const tables& in_;
    sub_buffer_order order_;
    std::uint64_t from_;
    std::uint64_t to_;
    std::uint64_t begin_ = 0;  // of the window, as a place
    std::uint64_t end_ = 0;
    std::unordered_map<std::uint32_t, std::vector<index_row>> seen_{};  // in no order
    std::unordered_map<std::uint32_t, index_row> newest_{};  // of the lanes that are needed
    std::vector<need> needed_{};
    std::vector<std::uint64_t> extra_{};
    std::vector<index_row> probes_{};
    index_rows one_{};
    index_rows many_{};
    std::uint64_t looked_at_ = 0;
};

}  // namespace trace_ring::inline v1::reduce
