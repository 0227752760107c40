// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// One sub-buffer, decoded: its records in an array, and between them notes of what is not there or
/// not right. Which way the array is read is the reader's choice, at the same price.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include <trace_ring/loss.hpp>
#include <trace_ring/reduce/item.hpp>
#include <trace_ring/reduce/tables.hpp>
#include <trace_ring/ring/sub_buffer.hpp>

namespace trace_ring::inline v1::reduce {

class entry_list {
public:
    [[nodiscard]] bool empty() const noexcept { return whats_.empty(); }
    [[nodiscard]] std::size_t size() const noexcept { return whats_.size(); }
    [[nodiscard]] std::uint64_t time(std::size_t i) const noexcept { return times_[i]; }
    [[nodiscard]] bool is_record(std::size_t i) const noexcept {
        return (whats_[i] & note_bit) == 0;
    }
    /// The sub-buffer's header, as it was copied last.
    [[nodiscard]] const sub_buffer_copy& head() const noexcept { return head_; }
    [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }

    /// Forgets the entries, and keeps the memory for the next sub-buffer.
    void clear() noexcept {
        times_.clear();
        whats_.clear();
        notes_.clear();
        latest_.clear();
        owners_.clear();
    }

    /// Copies the sub-buffer in `slot`; entries stay as they are.
    [[nodiscard]] copy_result copy(const tables& in, std::uint64_t slot) {
        words_.resize(in.plan().sub_buffer_bytes / 8);
        offset_ = in.plan().bytes_for(slot);
        return in.bytes().copy(offset_, words_, head_);
    }

    void add(const loss_item& loss) { note(loss.time, loss); }
    void add(const clock_jump& jump) { note(jump.time, jump); }

    struct walked {
        std::uint32_t records;  ///< that make sense
        std::uint64_t last_time;
        bool sound;  ///< all of it does
    };
    /// Adds the records of the copied sub-buffer from number `from` on. The first of the sub-buffer
    /// has position `first` in the lane; the record before `from` has time `last_time`.
    [[nodiscard]] walked walk(const tables& in, const lane_info& lane, position first,
                              std::uint32_t from, std::uint64_t last_time) {
        std::uint32_t count = 0;
        const auto owned = [&](const owner_record& who) {
            const bool by_first = who.thread == lane.thread && who.depth == lane.depth;
            owners_.push_back({whats_.size(), by_first ? &lane : &in.guest_of(lane, who)});
        };
        std::uint32_t flags = 0;
        const std::uint32_t broken = walk_records(
            words_, head_,
            [&](std::uint32_t word, std::uint64_t time, std::uint32_t header) {
                if (count++ < from) return;
                flags |= record_word::flags(header);
                if (time < last_time) {
                    add(clock_jump{&lane, first + count - 1, last_time, time,
                                   offset_ + std::uint64_t{word} * 8});
                }
                last_time = time;
                times_.push_back(time);
                whats_.push_back(word);
            },
            owned);
        if ((flags & record_word::interval) != 0) bound();
        if (broken != 0) {
            add(loss_item{loss_cause::damaged, head_.records - count, first + count, &lane,
                          last_time, offset_ + broken,
                          broken >= head_.bytes ? "fewer records than the sub-buffer counts"
                                                : "a record of impossible length"});
        }
        return {count, last_time, broken == 0};
    }

    /// Entry `i` as an item; `at` is the position in the lane if it is a record.
    void get(std::size_t i, const tables& in, const lane_info* lane, position at, item& out) const {
        const std::uint32_t what = whats_[i];
        if ((what & note_bit) != 0) {
            const auto& note = notes_[what & ~note_bit];
            if (const auto* loss = std::get_if<loss_item>(&note)) {
                out.emplace<loss_item>(*loss);
            } else {
                out.emplace<clock_jump>(std::get<clock_jump>(note));
            }
            return;
        }
        const auto header = static_cast<std::uint32_t>(words_[what] >> 32);
        out.emplace<record_view>(
            std::span<const std::uint64_t>{words_.data() + what, record_word::bytes(header) / 8},
            times_[i], at, owner_of(i, *lane), in.type_of(*lane, record_word::id(header)),
            offset_ + std::uint64_t{what} * 8, latest_.empty() ? times_[i] : latest_[i]);
    }

private:
    static constexpr std::uint32_t note_bit = std::uint32_t{1} << 31;
    using note_type = std::variant<loss_item, clock_jump>;

    struct owned_from {
        std::size_t entry;
        const lane_info* lane;
    };
    [[nodiscard]] const lane_info& owner_of(std::size_t i, const lane_info& lane) const noexcept {
        auto at = std::upper_bound(owners_.begin(), owners_.end(), i,
                                   [](std::size_t e, const owned_from& o) { return e < o.entry; });
        return at == owners_.begin() ? lane : *(at - 1)->lane;
    }
    [[nodiscard]] bool is_interval(std::size_t i) const noexcept {
        const auto header = static_cast<std::uint32_t>(words_[whats_[i]] >> 32);
        return (record_word::flags(header) & record_word::interval) != 0;
    }
    /// Finds, for records that share a reading of the clock, the next reading: that of a record, or
    /// of the end of the sub-buffer if it was closed.
    void bound() {
        latest_ = times_;
        std::uint64_t next = head_.end_time != 0 ? head_.end_time : ~std::uint64_t{0};
        for (std::size_t i = whats_.size(); i-- > 0;) {
            if (!is_record(i)) continue;
            if (is_interval(i)) {
                latest_[i] = std::max(next, times_[i]);
            } else {
                next = times_[i];
            }
        }
    }
    void note(std::uint64_t time, const note_type& what) {
        times_.push_back(time);
        if (!latest_.empty()) latest_.push_back(time);
        whats_.push_back(note_bit | static_cast<std::uint32_t>(notes_.size()));
        notes_.push_back(what);
    }

    std::vector<std::uint64_t> words_;
    std::vector<std::uint64_t> times_;   // of each entry
    std::vector<std::uint64_t> latest_;  // that it may be of; empty: no interval among them
    std::vector<std::uint32_t> whats_;  // a record: where it begins, in words; else a note's number
    std::vector<note_type> notes_;
    std::vector<owned_from> owners_;  // where other threads than the lane's first go on
    sub_buffer_copy head_;
    std::uint64_t offset_ = 0;
};

}  // namespace trace_ring::inline v1::reduce
