// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Which sub-buffers a trace file holds, sorted into lanes. A look at every header, or at the dense
/// index, which is 1/128 of the file; no record is read. What is damaged is kept in its place, so
/// that reading can name it there.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <trace_ring/position.hpp>
#include <trace_ring/recorder/file/layout.hpp>
#include <trace_ring/reduce/tables.hpp>
#include <trace_ring/ring/sub_buffer.hpp>

namespace trace_ring::inline v1::reduce {

/// One sub-buffer as the first look found it; in a live file it may be another by now.
struct chain_link {
    position pos = no_position;
    std::uint64_t slot = 0;
    std::uint64_t base_time = 0;
    std::uint64_t last_time = 0;   ///< at its close; the greatest number if it was not closed
    bool positions_known = false;  ///< the next two are: a header was looked at
    std::uint64_t first = 0;       ///< position in the lane of its first record
    std::uint32_t records = 0;
    std::uint32_t refused = 0;  ///< as the header counts
    std::uint32_t too_long = 0;
    std::uint32_t nested = 0;
    bool readable = true;
    std::string_view fault;  ///< what is wrong with it; empty if nothing
    std::uint64_t fault_offset = 0;
};

/// The sub-buffers of one lane, oldest first.
struct chain {
    std::uint32_t lane = 0;
    std::vector<chain_link> links;
    bool cut_begin = false;  ///< trimmed: there were links before the first
    bool cut_end = false;
    std::optional<position> start{};  ///< where the first link's records should begin, if known
};

struct chain_list {
    std::vector<chain> chains;  ///< by lane number
    /// Damaged sub-buffers of which not even the lane can be told.
    std::vector<chain_link> strays;
};

/// The stray that lies where the sub-buffer at `pos` did; null if there is none.
[[nodiscard]] inline const chain_link* find_stray(const std::vector<chain_link>& strays,
                                                  position pos, std::uint64_t limit) noexcept {
    if (pos == no_position) return nullptr;
    const auto found = std::find_if(strays.begin(), strays.end(), [&](const chain_link& stray) {
        return stray.slot == slot_of(pos, limit);
    });
    return found == strays.end() ? nullptr : &*found;
}

/// Whether to look at headers, which are the truth, or at the index, which is quicker by the number
/// of pages touched. In a file that nobody damaged both say the same: the index entry is written
/// before the sub-buffer opens.
enum class look_at { headers, index };

class chain_scan {
public:
    explicit chain_scan(const tables& in) noexcept : in_(in) {}

    /// `wanted(lane number, position)` tells what is worth listing. Linear in the sub-buffers, and
    /// the sorting.
    template <class Wanted>
    [[nodiscard]] chain_list scan(look_at where, const Wanted& wanted) const {
        chain_list out;
        std::vector<found> all;
        const std::uint64_t present = in_.present();
        const std::uint64_t stride = in_.plan().sub_buffer_bytes;
        // A file cut inside its last sub-buffer: what is there of it is worth a look.
        const std::uint64_t slots =
            std::min(in_.plan().sub_buffer_limit,
                     present + (in_.bytes().size() > in_.plan().bytes_for(present) ? 1 : 0));
        std::vector<std::uint64_t> index;
        std::vector<std::uint64_t> again;
        constexpr std::uint64_t batch = 8192;
        for (std::uint64_t slot = 0; slot < slots; ++slot) {
            found one;
            bool told = false;
            if (where == look_at::index) {
                if (slot % batch == 0) {
                    const std::uint64_t at = in_.plan().index + slot * sizeof(layout::index_entry);
                    index.assign(
                        static_cast<std::size_t>(std::min(batch, slots - slot)) * index_words, 0);
                    again.assign(index.size(), 0);
                    (void)in_.bytes().read(at, index.data(), index.size() * 8);
                    // An entry that is written just now would be a mixture: its position differs.
                    // order: index.look:A pairs with index.write:A
                    thread_fence(acquire);
                    (void)in_.bytes().read(at, again.data(), again.size() * 8);
                }
                const auto word = static_cast<std::size_t>(slot % batch) * index_words;
                told = index[word] == again[word] &&
                       by_index({index.data() + word, index_words}, slot, one);
                if (told && !wanted(one.lane, one.link.pos)) continue;
            }
            if (!told) {
                const std::uint64_t offset = in_.plan().bytes_for(slot);
                const std::uint64_t data = in_.bytes().next_data(offset);
                if (data > offset + stride) {  // a hole in the file: nothing but zeros
                    const std::uint64_t skip = (data - offset) / stride;
                    if (skip >= slots - slot) break;
                    if (where == look_at::headers) slot += skip - 1;
                    continue;
                }
                if (!by_header(offset, slot, one)) continue;
                if (one.lane == 0) {
                    out.strays.push_back(one.link);
                    continue;
                }
                if (!wanted(one.lane, one.link.pos)) continue;
            }
            all.push_back(one);
        }
        std::sort(all.begin(), all.end(), [](const found& a, const found& b) {
            if (a.lane != b.lane) return a.lane < b.lane;
            if (a.link.pos != b.link.pos) return a.link.pos < b.link.pos;
            return a.link.slot < b.link.slot;
        });
        for (auto& each : all) {
            if (out.chains.empty() || out.chains.back().lane != each.lane) {
                out.chains.emplace_back().lane = each.lane;
            }
            auto& links = out.chains.back().links;
            if (!links.empty() && links.back().pos == each.link.pos) {
                each.link.readable = false;
                each.link.fault = "a second sub-buffer at the same position";
                each.link.fault_offset = state_offset(in_.plan().bytes_for(each.link.slot));
                out.strays.push_back(each.link);
                continue;
            }
            links.push_back(each.link);
        }
        return out;
    }

    /// Looks at a link's header again, this time by the protocol that gives a consistent answer
    /// also while it is written. False if it is another sub-buffer by now.
    [[nodiscard]] bool complete(std::uint32_t lane, chain_link& link) const noexcept {
        const std::uint64_t offset = in_.plan().bytes_for(link.slot);
        const auto still_there = [&] {
            std::uint64_t state = 0;
            (void)in_.bytes().read(state_offset(offset), &state, 8);
            const auto now = stamped::from(state);
            return now.pos == link.pos &&
                   now.state != static_cast<unsigned>(sub_buffer_state::free) &&
                   now.state != static_cast<unsigned>(sub_buffer_state::reset);
        };
        if (!still_there()) return false;
        // order: chain.look:A pairs with claim:B, close:A, reclaim.close:A
        thread_fence(acquire);
        sub_buffer_copy head;
        std::uint32_t magic = 0;
        if (!in_.bytes().peek(offset, head, magic)) return false;
        // order: chain.look:B pairs with claim:A
        thread_fence(acquire);
        if (!still_there() || magic != sub_buffer_magic || head.lane != lane) return false;
        take(head, link);
        return true;
    }

    /// Leaves out of a chain what has nothing in [from, to], by binary search: within a lane time
    /// does not go back.
    void trim(chain& what, std::uint64_t from, std::uint64_t to) const {
        auto& links = what.links;
        const auto after = [](std::uint64_t time, const chain_link& l) {
            return time < l.base_time;
        };
        const auto last = std::upper_bound(links.begin(), links.end(), to, after);
        what.cut_end = last != links.end();
        links.erase(last, links.end());
        auto first = std::upper_bound(links.begin(), links.end(), from, after);
        if (first != links.begin()) --first;
        what.cut_begin = first != links.begin();
        if (what.cut_begin) {
            auto& before = *(first - 1);
            if (before.positions_known || complete(what.lane, before)) {
                what.start = before.first + before.records;
            }
        }
        links.erase(links.begin(), first);
        for (auto& link : links) {
            if (link.positions_known || !link.readable) continue;
            link.positions_known = complete(what.lane, link);
        }
    }

private:
    static constexpr std::size_t index_words = sizeof(layout::index_entry) / 8;

    struct found {
        std::uint32_t lane = 0;
        chain_link link;
    };

    [[nodiscard]] static std::uint64_t state_offset(std::uint64_t sub_buffer) noexcept {
        return sub_buffer + offsetof(sub_buffer_header, state);
    }
    /// Growing files count by the limit, those that could not grow so far by what they have.
    [[nodiscard]] bool right_slot(position pos, std::uint64_t slot) const noexcept {
        if (pos == no_position) return false;
        if (slot_of(pos, in_.plan().sub_buffer_limit) == slot) return true;
        const std::uint64_t capacity = in_.ring().capacity;
        return capacity != 0 && slot_of(pos, capacity) == slot;
    }
    static void take(const sub_buffer_copy& head, chain_link& link) noexcept {
        link.base_time = head.base_time;
        const bool closed = head.state.state != static_cast<unsigned>(sub_buffer_state::active);
        link.last_time = closed && head.end_time != 0 ? head.end_time : ~std::uint64_t{0};
        link.positions_known = true;
        link.first = head.first_position;
        link.records = head.records;
        link.refused = head.refused;
        link.too_long = head.too_long;
        link.nested = head.nested;
    }

    /// False: the index does not tell, the header must.
    [[nodiscard]] bool by_index(std::span<const std::uint64_t> entry, std::uint64_t slot,
                                found& out) const noexcept {
        out.lane = static_cast<std::uint32_t>(entry[3]);
        out.link.pos = entry[0];
        out.link.slot = slot;
        out.link.base_time = entry[1];
        out.link.last_time = entry[2] != 0 ? entry[2] : ~std::uint64_t{0};
        return out.lane != 0 && right_slot(out.link.pos, slot);
    }

    /// False: there is nothing. Otherwise what there is; lane 0 if it is damaged and the index does
    /// not know it either.
    [[nodiscard]] bool by_header(std::uint64_t offset, std::uint64_t slot,
                                 found& out) const noexcept {
        sub_buffer_copy head;
        std::uint32_t magic = 0;
        auto& link = out.link;
        link.slot = slot;
        if (!in_.bytes().peek(offset, head, magic)) return false;
        const auto state = static_cast<sub_buffer_state>(head.state.state);
        if (state == sub_buffer_state::free || state == sub_buffer_state::reset) return false;
        out.lane = head.lane;
        link.pos = head.state.pos;
        take(head, link);
        const auto wrong = [&](std::size_t at, std::string_view what) {
            link.fault = what;
            link.fault_offset = offset + at;
        };
        if (head.state.state > static_cast<unsigned>(sub_buffer_state::reading)) {
            wrong(offsetof(sub_buffer_header, state), "a sub-buffer in no known state");
        } else if (!right_slot(head.state.pos, slot) || beyond_cursor(head.state.pos, slot)) {
            wrong(offsetof(sub_buffer_header, state), "a sub-buffer at an impossible position");
        } else if (magic != sub_buffer_magic) {
            wrong(offsetof(sub_buffer_header, magic), "not a sub-buffer");
        } else if (head.bytes < sizeof(sub_buffer_header) || head.bytes % 8 != 0 ||
                   head.bytes > in_.plan().sub_buffer_bytes) {
            wrong(offsetof(sub_buffer_header, commit), "a sub-buffer of impossible length");
        }
        const bool unlisted =
            in_.find_lane(head.lane) == nullptr || !in_.find_lane(head.lane)->listed;
        if (link.fault.empty() && !unlisted) return true;
        // Damaged, or of a lane that the table does not have, which may be damage or a lane long
        // gone: the index may know better.
        found other;
        std::uint64_t entry[index_words] = {};
        (void)in_.bytes().read(in_.plan().index + slot * sizeof(layout::index_entry), entry,
                               sizeof entry);
        const bool told = by_index(entry, slot, other);
        if (link.fault.empty()) {
            const auto* named = told && other.link.pos == link.pos && other.lane != out.lane
                                    ? in_.find_lane(other.lane)
                                    : nullptr;
            if (out.lane == 0 || (named != nullptr && named->listed)) {
                wrong(offsetof(sub_buffer_header, lane), "a sub-buffer of no known lane");
                out.lane = named != nullptr && named->listed ? other.lane : 0;
            }
            return true;
        }
        link.readable = false;
        link.positions_known = false;
        if (told) {
            out.lane = other.lane;
            link.pos = other.link.pos;
            link.base_time = other.link.base_time;
            link.last_time = other.link.last_time;
        } else if (unlisted || !right_slot(link.pos, slot)) {
            out.lane = 0;
        }
        return true;
    }

    /// A position that was never claimed. Both the ring's word and the index must say so: one may
    /// be damaged, or older than the header, as in a copy taken while recording went on.
    [[nodiscard]] bool beyond_cursor(position pos, std::uint64_t slot) const noexcept {
        if (pos <= in_.ring().cursor) return false;
        std::uint64_t cursor = 0;
        std::uint64_t indexed = 0;
        (void)in_.bytes().read(in_.plan().ring + offsetof(layout::ring_state, cursor), &cursor, 8);
        (void)in_.bytes().read(in_.plan().index + slot * sizeof(layout::index_entry), &indexed, 8);
        return pos > cursor && pos > indexed;
    }

    const tables& in_;
};

}  // namespace trace_ring::inline v1::reduce
