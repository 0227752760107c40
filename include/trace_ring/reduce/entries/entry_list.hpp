// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// One sub-buffer, decoded: its records in stretches, and between them notes of losses and damage.
/// It can be read in both directions at the same cost.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include <trace_ring/reduce/entries/unpacking.hpp>

namespace trace_ring::inline v1::reduce {

class entry_list {
public:
    /// There are neither records nor notes.
    [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }
    /// The time of the last entry. The list must not be empty.
    [[nodiscard]] std::uint64_t newest_time() const noexcept {
        const entry& last = entries_.back();
        return last.is_note() ? note_time(last) : time(last, last.count - 1);
    }
    /// The sub-buffer's header, as it was copied last.
    [[nodiscard]] const sub_buffer_copy& head() const noexcept { return head_; }
    [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }

    /// The sub-buffer was being written when it was copied, by this or by a snapshot.
    [[nodiscard]] bool was_open() const noexcept {
        return head_.end_time == 0 ||
               head_.state.state == static_cast<unsigned>(sub_buffer_state::active);
    }

    /// Removes the entries, and keeps the memory for the next sub-buffer.
    void clear() noexcept {
        entries_.clear();
        notes_.clear();
        at_ = 0;
        done_ = 0;
    }

    /// Copies the sub-buffer in `slot`; does not change the entries.
    [[nodiscard]] copy_result copy(const tables& in, std::uint64_t slot) {
        words_.resize(in.plan().sub_buffer_bytes / 8);
        offset_ = in.plan().bytes_for(slot);
        ahead_.there = false;
        return in.bytes().copy(offset_, words_, head_);
    }

    /// Raises the times of the copied sub-buffer to this era of the trace's clock.
    void be_of(const clock_eras& eras, std::size_t era) noexcept {
        const std::size_t last = eras.next(era, head_.base_time, head_.end_time);
        era_ = era;
        head_.base_time += eras.shift(era);
        if (head_.end_time != 0) head_.end_time += eras.shift(last);
    }

    /// Memory for the words of a sub-buffer that the caller copies; it then calls `copied`.
    [[nodiscard]] std::span<std::uint64_t> room(const tables& in) {
        words_.resize(in.plan().sub_buffer_bytes / 8);
        return words_;
    }
    void copied(std::uint64_t offset, std::uint32_t commit) noexcept {
        offset_ = offset;
        ahead_.there = false;
        head_.tell(words_, commit);
    }
    /// Exchanges the copied sub-buffer with another list's; does not change the entries.
    void take_copy(entry_list& other) noexcept {
        words_.swap(other.words_);
        std::swap(unpacked_, other.unpacked_);
        std::swap(ahead_, other.ahead_);
        std::swap(head_, other.head_);
        std::swap(offset_, other.offset_);
    }

    void add(const note_type& what) {
        entry next;
        next.begin = static_cast<std::uint32_t>(notes_.size());
        entries_.push_back(next);
        notes_.push_back(what);
    }

    /// Adds the records of the copied sub-buffer from number `from` on. The sub-buffer's first
    /// record has position `first` in the lane; the record before `from` has time `last_time`.
    /// While it works, it fetches an equal part of `next_one` into the caches. `unpack`: packed
    /// records replace the records that pack them.
    [[nodiscard]] walked walk(const tables& in, const lane_info& lane, position first,
                              std::uint32_t from, std::uint64_t last_time, prefetcher next_one,
                              bool unpack) {
        if (std::exchange(ahead_.there, false) && from == 0 && first == head_.first_position &&
            last_time == head_.base_time) {
            return adopt();
        }
        first_ = first;
        const std::size_t known_entries = entries_.size();
        std::uint32_t count = 0;
        const lane_info* owner = nullptr;
        const auto owned = [&](const owner_record& who) {
            const bool by_first = who.thread == lane.thread && who.depth == lane.depth;
            owner = by_first ? nullptr : &in.guest_of(lane, who);
        };
        std::uint32_t flags = 0;
        const clock_eras& eras = in.time().eras();
        std::size_t era = era_;
        std::uint64_t raised = eras.shift(era);
        sub_buffer_copy head = head_;  // with the file's time
        head.base_time -= raised;
        const auto visit = [&](const stretch& found) {
            entry next{found, 0, owner, count};
            next.high += raised;
            count += found.count;
            if (count <= from) return;
            if (const std::uint32_t known = found.count - (std::min)(found.count, count - from);
                known != 0) {
                next.begin += known * found.stride();
                next.number += known;
                next.count -= known;
            }
            flags |= record_word::flags(found.word);
            std::uint64_t begins = time(next, 0);
            if (begins < last_time && eras.has(era + 1)) {  // the next era begins here
                next.high -= raised;
                raised = eras.shift(++era);
                next.high += raised;
                begins = time(next, 0);
            }
            if (begins < last_time) {
                add(clock_jump{&lane, first + count - next.count, last_time, begins,
                               offset_ + std::uint64_t{next.begin} * 8, 0, false});
            }
            last_time = time(next, next.count - 1);
            entries_.push_back(next);
        };
        constexpr std::size_t ahead = 128;
        const auto meanwhile = [&next_one](std::size_t words) {
            next_one.fetch(words * 8 + ahead);
        };
        const std::uint32_t broken = walk_stretches(words_, head, visit, meanwhile, owned);
        if ((flags & record_word::interval) != 0) bound();
        if (broken != 0) {
            add(loss_item{loss_cause::damaged, head_.records - count, first + count, &lane,
                          last_time, offset_ + broken,
                          broken >= head_.bytes ? "fewer records than the sub-buffer counts"
                                                : "a record of impossible length"});
        }
        unpacked_.clear();
        if (unpack && in.events().packs()) unpack_from(known_entries, in, lane);
        return {count, last_time, broken == 0};
    }

    /// Does the work of the next `walk` ahead of time; the entries are empty afterwards.
    /// `select(entries, words, head, offset, out)` moves the entries to keep, with all notes, to
    /// `out`. Throws its exceptions.
    template <class Select>
    void walk_ahead(const tables& in, const lane_info& lane, bool unpack, Select&& select) {
        clear();
        ahead_.result = walk(in, lane, head_.first_position, 0, head_.base_time, {}, unpack);
        ahead_.entries.clear();
        select(entries_, all(), head_, offset_, ahead_.entries);
        ahead_.notes.swap(notes_);
        clear();
        ahead_.there = true;
    }

    // Reading on from the last place. All but `rewind` and `ready` need an entry to be ready.

    void rewind(direction way) noexcept {
        forward_ = way == direction::forward;
        at_ = forward_ ? 0 : entries_.size();
        done_ = 0;
    }
    /// Unpacks what is left to be read: for types that the tables know only since `walk`.
    void unpack(const tables& in, const lane_info& lane) {
        entry& next = entries_[forward_ ? at_ : at_ - 1];
        if (forward_) {
            next.begin += done_ * next.stride();
            next.number += done_;
        } else {
            entries_.resize(at_);
        }
        next.count -= std::exchange(done_, 0);
        unpack_from(forward_ ? at_ : 0, in, lane);
        if (!forward_) at_ = entries_.size();
    }
    [[nodiscard]] bool ready() const noexcept { return forward_ ? at_ < entries_.size() : at_ > 0; }
    /// True if the next entry is records, false if it is a note.
    [[nodiscard]] bool records_next() const noexcept { return !entry_().is_note(); }
    /// Whether the condition was checked for the next records, and holds.
    [[nodiscard]] bool chosen_next() const noexcept {
        return entry_().asked == entry::answer::wanted;
    }
    /// Skips the next records if they are known to be unwanted. False: they are not.
    bool pass_unwanted() noexcept {
        if (entry_().asked != entry::answer::unwanted) return false;
        take(entry_().count);
        return true;
    }
    /// The time of the next record or note.
    [[nodiscard]] std::uint64_t next_time() const noexcept {
        const entry& next = entry_();
        if (next.asked == entry::answer::unwanted) return next.latest;
        return next.is_note() ? note_time(next) : time(next, place(next, 0));
    }
    /// Takes the next note.
    void take_note(item& out) {
        const auto& note = notes_[entry_().begin];
        if (const auto* loss = std::get_if<loss_item>(&note)) {
            out.emplace<loss_item>(*loss);
        } else {
            out.emplace<clock_jump>(std::get<clock_jump>(note));
        }
        pass();
    }
    /// How many of the next records, all of one stretch, lie within a time: up to it forward, from
    /// it on backward. Logarithmic in the result.
    [[nodiscard]] std::uint32_t count_within(std::uint64_t limit) const noexcept {
        const entry& next = entry_();
        const std::uint32_t count = next.count - done_;
        const auto within = [&](std::uint32_t i) {
            const std::uint64_t its = time(next, place(next, i));
            return forward_ ? its <= limit : its >= limit;
        };
        if (within(count - 1)) return count;
        std::uint32_t low = 0;  // this many are within
        std::uint32_t high = 1;
        while (high < count && within(high - 1)) {
            low = high;
            high *= 2;
        }
        high = (std::min)(high, count) - 1;  // this one is not, counted from 0
        while (low < high) {
            const std::uint32_t middle = low + (high - low) / 2;
            within(middle) ? low = middle + 1 : high = middle;
        }
        return low;
    }
    /// Of a number of next records: how many come before the first with a wanted position, and
    /// how many are wanted from that one on.
    struct wanted_positions {
        std::uint32_t skip;
        std::uint32_t keep;
    };
    [[nodiscard]] wanted_positions count_within(const position_range& range,
                                                std::uint32_t count) const noexcept {
        const entry& next = entry_();
        if (next.packed != 0) {
            const bool wanted = range.has_any(first_ + next.number, 1);
            return {wanted ? 0 : count, wanted ? count : 0};
        }
        // The lowest of them.
        const position first = first_ + next.number + place(next, forward_ ? 0 : count - 1);
        const position low = std::clamp(range.from, first, first + count);
        const position high = std::clamp(range.to, low, first + count);
        const position skip = forward_ ? low - first : first + count - high;
        return {static_cast<std::uint32_t>(skip), static_cast<std::uint32_t>(high - low)};
    }
    /// The thread that made the next records, as this lane or a guest of it.
    [[nodiscard]] const lane_info& owner(const lane_info& lane) const noexcept {
        const lane_info* const owner = entry_().owner;
        return owner != nullptr ? *owner : lane;
    }
    /// The event id of the next records.
    [[nodiscard]] std::uint32_t next_word() const noexcept { return entry_().word; }
    /// Whether they come from records that were unpacked, or could not be.
    [[nodiscard]] bool unpacked_next() const noexcept { return entry_().packed != 0; }
    /// The distance from one of them to the one read after it, in words.
    [[nodiscard]] std::ptrdiff_t stride() const noexcept {
        const auto words = static_cast<std::ptrdiff_t>(entry_().stride());
        return forward_ ? words : -words;
    }
    /// From one of them to the one read after it, in positions.
    [[nodiscard]] std::ptrdiff_t positions() const noexcept {
        if (entry_().packed != 0) return 0;
        return forward_ ? 1 : -1;
    }
    /// The first of them, as a record of this lane and type.
    [[nodiscard]] record_view view(const lane_info* lane, const event_type* type) const noexcept {
        const entry& next = entry_();
        const std::uint32_t i = place(next, 0);
        return {next.shared(lane, type, offset_, all()), next.at(all(), i),
                first_ + next.number_of(i)};
    }
    /// Goes past `count` of them.
    void take(std::uint32_t count) noexcept {
        done_ += count;
        if (done_ == entry_().count) pass();
    }
    /// Goes back before the `count` records that were taken last.
    void give_back(std::uint32_t count) noexcept {
        if (count == 0) return;
        if (done_ == 0) {
            forward_ ? --at_ : ++at_;
            done_ = entry_().count;
        }
        done_ -= count;
    }

private:
    [[nodiscard]] walked adopt() {
        if (entries_.empty()) {
            entries_.swap(ahead_.entries);
            notes_.swap(ahead_.notes);
        } else {
            for (entry each : ahead_.entries) {
                if (each.is_note()) each.begin += static_cast<std::uint32_t>(notes_.size());
                entries_.push_back(each);
            }
            notes_.insert(notes_.end(), ahead_.notes.begin(), ahead_.notes.end());
        }
        first_ = head_.first_position;
        return ahead_.result;
    }

    void pass() noexcept {
        forward_ ? ++at_ : --at_;
        done_ = 0;
    }
    [[nodiscard]] std::uint64_t note_time(const entry& what) const noexcept {
        const auto& note = notes_[what.begin];
        const auto* loss = std::get_if<loss_item>(&note);
        return loss != nullptr ? loss->time : jump_in(note).time;
    }
    [[nodiscard]] record_words all() const noexcept { return {words_.data(), unpacked_.data()}; }
    [[nodiscard]] std::uint64_t time(const entry& in, std::uint32_t i) const noexcept {
        return in.time(all(), i);
    }
    [[nodiscard]] const entry& entry_() const noexcept {
        return entries_[forward_ ? at_ : at_ - 1];
    }
    /// The index in the stretch of the record that is `i` after the next.
    [[nodiscard]] std::uint32_t place(const entry& in, std::uint32_t i) const noexcept {
        return forward_ ? done_ + i : in.count - 1 - done_ - i;
    }

    void unpack_from(std::size_t entry, const tables& in, const lane_info& lane) {
        unpacking(in, lane, head_, offset_, first_, words_)
            .make(entries_, entry, notes_, unpacked_);
    }

    /// For records that share a reading of the clock: finds the next reading, of a record or of the
    /// closed sub-buffer's end.
    void bound() {
        std::uint64_t next = head_.end_time != 0 ? head_.end_time : ~std::uint64_t{0};
        for (std::size_t i = entries_.size(); i-- > 0;) {
            entry& each = entries_[i];
            if (each.is_note()) continue;
            if ((record_word::flags(each.word) & record_word::interval) != 0) {
                each.latest = next;
            } else {
                next = time(each, 0);
            }
        }
    }

    std::vector<std::uint64_t> words_{};
    unpacked_words unpacked_{};
    std::vector<entry> entries_{};
    std::vector<note_type> notes_{};
    walked_ahead ahead_{};
    sub_buffer_copy head_{};
    std::uint64_t offset_ = 0;
    std::size_t era_ = 0;
    position first_ = 0;      // in the lane, of the sub-buffer's first record
    bool forward_ = true;     // the direction of reading
    std::size_t at_ = 0;      // forward: the entry read next; backward: one behind it
    std::uint32_t done_ = 0;  // records of it that were read
};

}  // namespace trace_ring::inline v1::reduce
