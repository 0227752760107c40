// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Lists the sub-buffers of a trace file, sorted into lanes. It reads every header, or the dense
/// index, which is 1/128 of the file, and no records. A damaged sub-buffer keeps its place, so that
/// the reader can name it there.
///
/// Slots are looked at one after the other, while writers claim them. A lane may claim a slot that
/// was passed already and then one that lies ahead: only the later sub-buffer would be found, and
/// the earlier one would seem overwritten. So sub-buffers that a lane claimed after the tables were
/// read are left to the next scan.
/// @code
///   tables read            lane.newest = 3     slots   3 . .
///   scan: slot of 4        empty                       3 . .
///   the lane claims both   lane.newest = 5             3 4 5
///   scan: slot of 5        found, left out             3 4 5
/// @endcode
/// A lane stores `newest` before it claims, and publishes each sub-buffer before it claims the next
/// one. So the scan finds all sub-buffers before the one that the tables name as newest, unless
/// they were overwritten. It waits for nobody, so a dead writer stops no reader.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include <trace_ring/atomic.hpp>
#include <trace_ring/reduce/file/chain.hpp>
#include <trace_ring/reduce/file/index_rows.hpp>
#include <trace_ring/reduce/filter.hpp>

namespace trace_ring::inline v1::reduce {

/// Whether to read the headers, which are the truth, or the index, which touches fewer pages. In a
/// file without damage both say the same: the index entry is written before the sub-buffer opens.
enum class look_at { headers, index };

class chain_scan {
public:
    explicit chain_scan(const tables& in) noexcept : in_(in) {}

    /// Lists the sub-buffers for which `wanted(lane number, position)` is true. Linear in their
    /// number, plus sorting. Read the tables just before: the scan leaves out a lane's sub-buffers
    /// that are newer than the tables.
    ///
    /// Of the sub-buffers that lie entirely outside `within`, it may keep only those that `trim`
    /// needs. So the memory for a short time in a long trace does not depend on the trace's length.
    template <class Wanted>
    [[nodiscard]] chain_list scan(look_at where, Wanted wanted, tick_range within = {}) const {
        chain_list out;
        collected all(in_, within);
        scan_slots(where, wanted, all, out.strays);
        out.chains = std::move(all.chains);
        std::sort(out.chains.begin(), out.chains.end(),
                  [](const chain& a, const chain& b) { return a.lane < b.lane; });
        for (auto& each : out.chains) {
            put_in_order(each.links, out.strays);
            leave_later(each);
            raise(each, in_.time().eras());
        }
        std::erase_if(out.chains, [](const chain& each) { return each.links.empty(); });
        return out;
    }
    /// Reads a link's header again, by a protocol that is consistent also while the header is
    /// written. False if another sub-buffer has replaced it.
    [[nodiscard]] bool complete(std::uint32_t lane, chain_link& link) const noexcept {
        sub_buffer_copy head;
        std::uint32_t magic = 0;
        if (!read_whole(in_.plan().bytes_for(link.slot), link.pos, head, magic)) return false;
        if (!is_sub_buffer_magic(magic) || head.lane != lane) return false;
        take(head, link);
        raise(link, in_.time().eras());
        return true;
    }

    /// Whether a link is still the same sub-buffer and holds more than `records` records.
    [[nodiscard]] bool has_more(std::uint32_t lane, chain_link link,
                                std::uint32_t records) const noexcept {
        return complete(lane, link) && link.records > records;
    }

    /// Leaves out of a chain the sub-buffers that have nothing in [from, to], by binary search.
    /// Where the clock's readings or the lane's times show that time went back, it keeps all. A
    /// clock that went back and on again within one sub-buffer may not show: then some are missed.
    void trim(chain& what, std::uint64_t from, std::uint64_t to) const {
        auto& links = what.links;
        if (!in_.time().consistent() || !in_order_of_time(links)) return;
        const auto after = [](std::uint64_t time, const chain_link& l) {
            return time < l.base_time;
        };
        const auto last = std::upper_bound(links.begin(), links.end(), to, after);
        what.cut_end = last != links.end();
        links.erase(last, links.end());
        // The sub-buffer before one that begins at `from` may end with records of that same time.
        auto first = std::lower_bound(
            links.begin(), links.end(), from,
            [](const chain_link& l, std::uint64_t time) { return l.base_time < time; });
        if (first != links.begin()) --first;
        what.cut_begin = first != links.begin();
        if (what.cut_begin) {
            auto& before = *(first - 1);
            if (before.positions_known || complete(what.lane, before)) {
                what.start = before.first + before.records;
            }
        }
        links.erase(links.begin(), first);
    }
    /// Leaves out the sub-buffers without any of these positions, by binary search, which reads a
    /// logarithmic number of the lane's headers. Keeps all if one of those cannot be read.
    void trim(chain& what, const position_range& range) const {
        auto& links = what.links;
        bool known = true;
        const auto first_after = [&](position pos) {
            std::size_t low = 0;
            for (std::size_t high = links.size(); known && low < high;) {
                const std::size_t middle = low + (high - low) / 2;
                auto& link = links[middle];
                known = link.positions_known || complete(what.lane, link);
                link.first <= pos ? low = middle + 1 : high = middle;
            }
            return low;
        };
        const std::size_t end = range.to == ~position{0} ? links.size() : first_after(range.to);
        const std::size_t after = first_after(range.from);
        if (!known || end < after) return;
        const std::size_t begin = std::max<std::size_t>(after, 1) - 1;
        what.cut_end = what.cut_end || end != links.size();
        links.erase(links.begin() + static_cast<std::ptrdiff_t>(end), links.end());
        if (begin == 0) return;
        what.cut_begin = true;
        const auto& before = links[begin - 1];
        what.start.reset();
        if (before.positions_known) what.start = before.first + before.records;
        links.erase(links.begin(), links.begin() + static_cast<std::ptrdiff_t>(begin));
    }

private:
    /// How often a header is read that is being replaced.
    static constexpr int most_tries = 8;

    struct found {
        std::uint32_t lane = 0;
        chain_link link{};
    };

    /// Whether `next` begins after `link` ends, and `link` after it begins.
    [[nodiscard]] static bool follows(const chain_link& link, const chain_link& next) noexcept {
        const bool open = link.last_time == ~std::uint64_t{0};
        const std::uint64_t end = open ? link.base_time : link.last_time;
        return end >= link.base_time && next.base_time >= end;
    }
    [[nodiscard]] static bool in_order_of_time(const std::vector<chain_link>& links) noexcept {
        const auto goes_back = [](const chain_link& a, const chain_link& b) {
            return !follows(a, b);
        };
        return links.empty() ||
               (links.back().last_time >= links.back().base_time &&
                std::adjacent_find(links.begin(), links.end(), goes_back) == links.end());
    }

    /// Chains in the order in which their lanes were found.
    class collected {
    public:
        /// Times that went back, and lanes that the table lacks, need all sub-buffers.
        collected(const tables& in, tick_range within) noexcept
            : in_(in),
              within_(in.time().consistent() && in.ring().folded_lanes == 0 ? within
                                                                            : tick_range{}) {}

        void add(std::uint32_t lane, const chain_link& link) {
            if (lane != last_) {
                const auto [at, is_new] = by_lane_.emplace(lane, chains.size());
                if (is_new) {
                    chains.emplace_back().lane = lane;
                    const lane_info* const known = in_.find_lane(lane);
                    thin_.push_back(known != nullptr && known->listed);
                }
                last_ = lane;
                last_at_ = at->second;
            }
            auto& links = chains[last_at_].links;
            links.push_back(link);
            if (thin_[last_at_]) thin_out(links);
        }

        std::vector<chain> chains{};

    private:
        /// Removes a link in the middle of four in a row that lie on the same side of the wanted
        /// time, if they are in the order of positions and times. `trim` needs the last two before
        /// the time and the first after it. The others show whether the lane's time goes back.
        void thin_out(std::vector<chain_link>& links) const {
            if (links.size() < 4) return;
            const auto four = std::span(links).last(4);
            const bool before = four[3].base_time < within_.from;
            if (!before && four[0].base_time <= within_.to) return;
            for (std::size_t i = 0; i < 4; ++i) {
                if (four[i].fault != link_fault::none || !four[i].readable) return;
                if (i != 0 && (four[i].pos <= four[i - 1].pos || !follows(four[i - 1], four[i])))
                    return;
            }
            links.erase(links.end() - (before ? 3 : 2));
        }

        const tables& in_;
        tick_range within_;
        std::unordered_map<std::uint32_t, std::size_t> by_lane_{};
        std::vector<bool> thin_{};  // by chain
        std::uint32_t last_ = 0;
        std::size_t last_at_ = 0;
    };

    /// Slots that may hold a sub-buffer. In a file that was cut, the part of the last one counts.
    [[nodiscard]] std::uint64_t slot_count() const noexcept {
        const std::uint64_t present = in_.present();
        return (std::min)(in_.plan().sub_buffer_limit,
                          present + (in_.bytes().size() > in_.plan().bytes_for(present) ? 1 : 0));
    }
    template <class Wanted>
    void scan_slots(look_at where, Wanted& wanted, collected& all,
                    std::vector<chain_link>& strays) const {
        const std::uint64_t count = slot_count();
        std::uint32_t listed = 0;
        const std::uint64_t stride = in_.plan().sub_buffer_bytes;
        index_rows index;
        constexpr std::uint64_t batch = 8192;
        constexpr std::uint64_t ahead = 16;  // headers fetched while one is looked at
        constexpr std::size_t head = sizeof(sub_buffer_header);
        for (std::uint64_t slot = 0; slot < count; ++slot) {
            found one;
            bool known = false;
            if (where == look_at::index) {
                const auto row = as_size(slot % batch);
                if (row == 0) {
                    index.read(in_, slot,
                               static_cast<std::size_t>((std::min)(batch, count - slot)));
                }
                index_row entry;
                known = index.get(row, entry) && by_index(entry, slot, one);
                if (known && !wanted(one.lane, one.link.pos)) continue;
            }
            if (!known) {
                const std::uint64_t offset = in_.plan().bytes_for(slot);
                const std::uint64_t data = in_.bytes().next_data(offset);
                if (data > offset + stride) {  // a hole in the file: nothing but zeros
                    const std::uint64_t skip = (data - offset) / stride;
                    if (skip >= count - slot) break;
                    if (where == look_at::headers) slot += skip - 1;
                    continue;
                }
                in_.bytes().prefetch(offset + ahead * stride, head).fetch(head);
                if (!by_header(offset, slot, listed, one)) continue;
                if (one.lane == 0) {
                    strays.push_back(one.link);
                    continue;
                }
                if (!wanted(one.lane, one.link.pos)) continue;
            }
            all.add(one.lane, one.link);
        }
    }

    /// Sorts links, which are in the order of slots, by position: an undamaged ring has newer ones,
    /// then older ones. A second link at a position becomes a stray.
    static void put_in_order(std::vector<chain_link>& links, std::vector<chain_link>& strays) {
        const auto before = [](const chain_link& a, const chain_link& b) {
            return a.pos != b.pos ? a.pos < b.pos : a.slot < b.slot;
        };
        const auto oldest = std::is_sorted_until(links.begin(), links.end(), before);
        if (oldest != links.end()) {
            std::rotate(links.begin(), oldest, links.end());
            if (!std::is_sorted(links.begin(), links.end(), before)) {
                std::sort(links.begin(), links.end(), before);
            }
        }
        const auto same = [](const chain_link& a, const chain_link& b) { return a.pos == b.pos; };
        auto kept = std::adjacent_find(links.begin(), links.end(), same);
        if (kept == links.end()) return;
        for (auto each = kept + 1; each != links.end(); ++each) {
            if (each->pos != kept->pos) {
                *++kept = *each;
                continue;
            }
            each->readable = false;
            each->fault = link_fault::twice;
            strays.push_back(*each);
        }
        links.erase(kept + 1, links.end());
    }

    /// Leaves out the sub-buffers that the lane claimed after the tables were read. If the lane has
    /// claimed none since, its entry is damaged, and all of them are kept. A lane that has left the
    /// table claims no more, so its sub-buffers are kept, too.
    void leave_later(chain& what) const {
        const lane_info* const lane = in_.find_lane(what.lane);
        if (lane == nullptr || !lane->listed || in_.is_gone(*lane)) return;
        const auto is_later = [lane](const chain_link& link) {
            return link.pos > lane->claimed && link.fault == link_fault::none;
        };
        auto& links = what.links;
        const bool any = std::any_of(links.begin(), links.end(), is_later);
        if (any && in_.has_claimed(*lane)) std::erase_if(links, is_later);
    }

    [[nodiscard]] static std::uint64_t state_offset(std::uint64_t sub_buffer) noexcept {
        return sub_buffer + offsetof(sub_buffer_header, state);
    }
    [[nodiscard]] bool right_slot(position pos, std::uint64_t slot) const noexcept {
        return pos != no_position && slot_of(pos, in_.plan().sub_buffer_limit) == slot;
    }
    static void take(const sub_buffer_copy& head, chain_link& link) noexcept {
        link.base_time = head.base_time;
        const bool closed = head.state.state != static_cast<unsigned>(sub_buffer_state::active);
        link.last_time = closed && head.end_time != 0 ? head.end_time : ~std::uint64_t{0};
        link.positions_known = true;
        link.first = head.first_position;
        link.records = head.records;
        link.commit = closed ? commit_word::pack(head.records, head.bytes) : 0;
        link.refused = head.refused;
        link.too_long = head.too_long;
        link.nested = head.nested;
    }

    /// False: the index has no usable entry, so the header must be read.
    [[nodiscard]] bool by_index(const index_row& entry, std::uint64_t slot,
                                found& out) const noexcept {
        out.lane = entry.lane;
        out.link.pos = entry.pos;
        out.link.slot = slot;
        out.link.base_time = entry.first_time;
        out.link.last_time = entry.last_time != 0 ? entry.last_time : ~std::uint64_t{0};
        return out.lane != 0 && right_slot(out.link.pos, slot);
    }

    [[nodiscard]] stamped state_at(std::uint64_t offset) const noexcept {
        std::uint64_t word = 0;  // if it cannot be read: vacant
        (void)in_.bytes().read(state_offset(offset), &word, 8);
        return stamped::from(word);
    }
    [[nodiscard]] static bool is_vacant(stamped now) noexcept {
        return now.state == static_cast<unsigned>(sub_buffer_state::free) ||
               now.state == static_cast<unsigned>(sub_buffer_state::reset);
    }
    /// Reads the header of the sub-buffer at `pos`, all words of which belong to it. False if the
    /// sub-buffer is not there, or is replaced during the read.
    [[nodiscard]] bool read_whole(std::uint64_t offset, position pos, sub_buffer_copy& head,
                                  std::uint32_t& magic) const noexcept {
        const auto still_there = [&] {
            const stamped now = state_at(offset);
            return now.pos == pos && !is_vacant(now);
        };
        if (!still_there()) return false;
        // order: chain.look:A pairs with writer.begin:A, writer.end:A, reclaim.close:A,
        // here.free:A, here.ready:A, here.close:A, here.free:B, reclaim.close:B
        thread_fence(acquire);
        if (!in_.bytes().peek(offset, head, magic)) return false;
        // order: chain.look:B pairs with claim:A, here.claim:A
        thread_fence(acquire);
        return still_there();
    }
    /// Whether a first look at a header may have seen words from before and after a claim: a
    /// sub-buffer that began while it was looked at is open, or newer than the tables.
    [[nodiscard]] bool may_be_mixed(const sub_buffer_copy& head) const noexcept {
        return head.state.state == static_cast<unsigned>(sub_buffer_state::active) ||
               head.state.pos > in_.ring().cursor;
    }
    [[nodiscard]] link_fault fault_of(const sub_buffer_copy& head, std::uint32_t magic,
                                      std::uint64_t slot) const noexcept {
        if (head.state.state > static_cast<unsigned>(sub_buffer_state::reading))
            return link_fault::state;
        if (!right_slot(head.state.pos, slot) || beyond_cursor(head.state.pos, slot))
            return link_fault::position;
        if (!is_sub_buffer_magic(magic)) return link_fault::magic;
        const bool sane = head.bytes >= sizeof(sub_buffer_header) && head.bytes % 8 == 0 &&
                          head.bytes <= in_.plan().sub_buffer_bytes;
        return sane ? link_fault::none : link_fault::length;
    }

    /// False: the slot is empty. `out.lane` becomes 0 if the sub-buffer is damaged and the index
    /// does not know its lane either. `listed`: the last lane that was found in the table.
    [[nodiscard]] bool by_header(std::uint64_t offset, std::uint64_t slot, std::uint32_t& listed,
                                 found& out) const noexcept {
        sub_buffer_copy head;
        std::uint32_t magic = 0;
        auto& link = out.link;
        link.slot = slot;
        if (!in_.bytes().peek(offset, head, magic) || is_vacant(head.state)) return false;
        link.fault = fault_of(head, magic, slot);
        for (int tries = 0; link.fault != link_fault::none || may_be_mixed(head); ++tries) {
            // One that is being claimed, or was replaced each time, is like a vacant one: what it
            // held has been overwritten.
            const stamped now = state_at(offset);
            if (tries == most_tries || is_vacant(now)) return false;
            const bool whole = read_whole(offset, now.pos, head, magic);
            link.fault = fault_of(head, magic, slot);
            if (whole) break;
        }
        out.lane = head.lane;
        link.pos = head.state.pos;
        take(head, link);
        bool unlisted = head.lane == 0 || head.lane != listed;
        if (unlisted) {
            const auto* lane = in_.find_lane(head.lane);
            unlisted = lane == nullptr || !lane->listed;
            if (!unlisted) listed = head.lane;
        }
        if (link.fault == link_fault::none && !unlisted) return true;
        // Damaged, or of a lane that the table lacks, by damage or because the lane is long gone:
        // the index may know better.
        found other;
        layout::index_entry entry{};
        (void)in_.bytes().read(in_.plan().index_at(slot), static_cast<void*>(&entry), sizeof entry);
        const bool known = by_index(index_rows::row_of(entry), slot, other);
        if (link.fault == link_fault::none) {
            const auto* named = known && other.link.pos == link.pos && other.lane != out.lane
                                    ? in_.find_lane(other.lane)
                                    : nullptr;
            if (out.lane == 0 || (named != nullptr && named->listed)) {
                link.fault = link_fault::lane;
                out.lane = named != nullptr && named->listed ? other.lane : 0;
            }
            return true;
        }
        link.readable = false;
        link.positions_known = false;
        if (known) {
            out.lane = other.lane;
            link.pos = other.link.pos;
            link.base_time = other.link.base_time;
            link.last_time = other.link.last_time;
        } else if (unlisted || !right_slot(link.pos, slot)) {
            out.lane = 0;
        }
        return true;
    }

    /// Whether the position was never claimed. Both the ring's word and the index must say so: one
    /// may be damaged, or older than the header, as in a copy made during recording.
    [[nodiscard]] bool beyond_cursor(position pos, std::uint64_t slot) const noexcept {
        if (pos <= in_.ring().cursor) return false;
        std::uint64_t cursor = 0;
        std::uint64_t indexed = 0;
        (void)in_.bytes().read(in_.plan().ring + offsetof(layout::ring_state, cursor), &cursor, 8);
        (void)in_.bytes().read(in_.plan().index_at(slot), &indexed, 8);
        return pos > cursor && pos > indexed;
    }

    const tables& in_;
};

}  // namespace trace_ring::inline v1::reduce
