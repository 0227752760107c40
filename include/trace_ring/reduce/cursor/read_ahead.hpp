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

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <trace_ring/reduce/entries/entry_list.hpp>
#include <trace_ring/reduce/file/chain.hpp>

namespace trace_ring::inline v1::reduce {

struct planned_copy {
    position pos = no_position;
    std::uint64_t slot = 0;
    std::uint32_t lane = 0;
    std::uint32_t commit = 0;  ///< as an earlier look saw it, followed by a fence; 0: not seen
    const lane_info* owner = nullptr;  ///< the lane, for decoding
};

/// Copies sub-buffers together: one system call for those that lie in a row, and one more for all
/// of them. Only closed sub-buffers are copied. One that is open, overwritten at this moment or
/// damaged is rare: the reader copies it alone and judges it then.
/// @code
///  writers                                     the thread that copies
///  record  bytes, commit word   --release-->   the commit word, by an earlier look; acquire fence
///                                              all of it; acquire fence
///  claim   a ring's cursor                     the rings' cursors: was a position drawn that lies
///          state = (p, reset)                  in the same slot? Else its own state, by one more
///          release fence; bytes                system call
/// @endcode
/// The kernel copies the bytes of one read in any order. So the bytes are known to belong to the
/// commit word only if that word was seen before the read, and known not to be the next claimer's
/// only if nothing was claimed by the time after it. A thread draws a position before anything of
/// the sub-buffer changes, so one look at the cursors is as good as one at each state.
class batch {
public:
    /// Sub-buffers in a batch, fewer if they are large: a batch fits into the level 2 cache.
    static constexpr std::size_t most = 16;
    static constexpr std::size_t most_bytes = 64 * 1024;
    [[nodiscard]] static std::size_t size_for(const layout::plan& plan) noexcept {
        return std::clamp<std::size_t>(most_bytes / plan.sub_buffer_bytes, 1, most);
    }

    struct one {
        entry_list list{};
        bool copied = false;
    };
    [[nodiscard]] one& operator[](std::size_t i) noexcept { return all_[i]; }

    /// Copies `what`, at most `most` sub-buffers. Throws std::bad_alloc.
    void fill(const tables& in, std::span<const planned_copy> what) {
        for (one& each : all_) each.copied = false;
        if (!in.bytes().reads_rows()) return fill_singly(in, what);
        for (std::size_t begin = 0; begin < what.size();) {
            std::size_t end = begin + 1;
            while (end < what.size() && what[end].slot == what[end - 1].slot + 1) ++end;
            read_run(in, what, begin, end);
            begin = end;
        }
        // order: batch.read:B pairs with claim:A, here.claim:A
        thread_fence(acquire);
        const position newest = newest_claimed(in);
        for (std::size_t i = 0; i < what.size(); ++i) {
            if (got_[i] && is_sound(in, what[i], i, newest)) {
                all_[i].list.copied(in.plan().bytes_for(what[i].slot), seen_[i]);
                all_[i].copied = true;
            }
        }
    }

private:
    void fill_singly(const tables& in, std::span<const planned_copy> what) {
        for (std::size_t i = 0; i < what.size(); ++i) {
            entry_list& list = all_[i].list;
            all_[i].copied = list.copy(in, what[i].slot) == copy_result::copied &&
                             list.head().state.pos == what[i].pos &&
                             list.head().lane == what[i].lane && is_closed(list.head().state);
        }
    }

    [[nodiscard]] static bool is_closed(stamped now) noexcept {
        return now.state == static_cast<unsigned>(sub_buffer_state::closed) ||
               now.state == static_cast<unsigned>(sub_buffer_state::reading);
    }
    [[nodiscard]] static std::uint32_t commit_of(std::span<const std::uint64_t> words) noexcept {
        return static_cast<std::uint32_t>(words[offsetof(sub_buffer_header, commit) / 8]);
    }
    [[nodiscard]] static stamped state_of(std::span<const std::uint64_t> words) noexcept {
        return stamped::from(words[offsetof(sub_buffer_header, state) / 8]);
    }

    /// Reads `what[begin]` to before `what[end]`, with slots in a row.
    void read_run(const tables& in, std::span<const planned_copy> what, std::size_t begin,
                  std::size_t end) {
        std::array<iovec, most> rows;
        bool seen = true;
        for (std::size_t i = begin; i < end; ++i) {
            words_[i] = all_[i].list.room(in);
            rows[i] = {words_[i].data(), words_[i].size_bytes()};
            seen_[i] = what[i].commit;
            seen = seen && what[i].commit != 0;
        }
        const auto here = std::span<const iovec>(rows).subspan(begin, end - begin);
        const std::uint64_t offset = in.plan().bytes_for(what[begin].slot);
        const std::size_t stride = in.plan().sub_buffer_bytes;
        if (!seen) {
            const std::size_t there = in.bytes().read_rows(offset, here) / stride;
            for (std::size_t i = begin; i < end; ++i) {
                const bool closed = i - begin < there && is_closed(state_of(words_[i]));
                seen_[i] = closed ? commit_of(words_[i]) : 0;
            }
        }
        // Pairs also with the looks at commit words of the first scan, whichever thread made it.
        // order: batch.read:A pairs with writer.end:A, reclaim.close:A, reclaim.close:B,
        // here.close:A, writer.commit:A, writer.note:A, here.note:A, here.record:A
        thread_fence(acquire);
        const std::size_t there = in.bytes().read_rows(offset, here) / stride;
        for (std::size_t i = begin; i < end; ++i) got_[i] = i - begin < there;
    }

    /// Whether the bytes read for number `i` are those committed at the time of the earlier look.
    [[nodiscard]] bool is_sound(const tables& in, const planned_copy& what, std::size_t i,
                                position newest) const noexcept {
        const auto words = words_[i];
        const stamped state = state_of(words);
        const std::uint32_t bytes = commit_word::offset(seen_[i]);
        if (seen_[i] == 0 || commit_of(words) != seen_[i] || !is_closed(state) ||
            state.pos != what.pos || !is_sub_buffer_magic(static_cast<std::uint32_t>(words[0])) ||
            static_cast<std::uint32_t>(words[0] >> 32) != what.lane ||
            bytes < sizeof(sub_buffer_header) || bytes % 8 != 0 || bytes > words.size_bytes()) {
            return false;
        }
        if (newest - what.pos < in.plan().sub_buffer_limit && newest >= what.pos) return true;
        std::uint64_t again = 0;
        const std::uint64_t at =
            in.plan().bytes_for(what.slot) + offsetof(sub_buffer_header, state);
        if (in.bytes().read(at, &again, 8) != 8) return false;
        const auto now = stamped::from(again);
        return now.pos == what.pos && now.state != static_cast<unsigned>(sub_buffer_state::reset);
    }

    /// The last position that was drawn, of all rings. The greatest number if that cannot be read.
    [[nodiscard]] static position newest_claimed(const tables& in) noexcept {
        using layout::ring_state;
        std::array<std::uint64_t, sizeof(ring_state) / 8> words{};
        if (in.bytes().read(in.plan().ring, words.data(), sizeof words) != sizeof words) {
            return ~position{0};
        }
        position newest = words[offsetof(ring_state, cursor) / 8];
        for (std::size_t i = 0; i + 1 < layout::max_rings; ++i) {
            const std::size_t quota =
                (offsetof(ring_state, quotas) + i * sizeof(ring_state::quota)) / 8;
            newest = (std::max)(newest, words[quota + offsetof(ring_state::quota, cursor) / 8]);
        }
        return newest;
    }

    std::array<one, most> all_{};
    std::array<std::span<std::uint64_t>, most> words_{};
    std::array<std::uint32_t, most> seen_{};  // commit words
    std::array<bool, most> got_{};
};

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
        batch copies{};
        std::size_t number = none;  ///< of the part; none: free
        std::uint64_t used = 0;
        std::size_t left = 0;  ///< sub-buffers that `take` has not returned
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
    /// Called when `take` has asked for all sub-buffers of the part.
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
    /// False if too little of the last copies was used. Otherwise a reader that alternates between
    /// many places would copy everything again and again.
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
    std::vector<planned_copy> plan_{};
    std::size_t last_ = 0;
    std::size_t credit_ = 0;
    std::size_t most_credit_ = 0;
    std::vector<held> held_{};
    std::uint64_t now_ = 0;
};

}  // namespace trace_ring::inline v1::reduce
