// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Reads a trace: of a running program, of one that ended or was killed, or of this program. This
/// header has everything that reading needs.
/// @code
///   auto trace = trace_ring::reduce::trace_file::open("orders.trace");
///   for (auto cursor = trace.forward(); const auto* item = cursor.next();) {
///       if (const auto* record = std::get_if<trace_ring::reduce::record_view>(item)) {
///           use(record->name(), record->field("id").u64(), trace.realtime_ns(record->time()));
///       } else if (const auto* loss = std::get_if<trace_ring::reduce::loss_item>(item)) {
///           complain(loss->count, loss->cause);
///       }
///   }
/// @endcode

#include <trace_ring/format/records.hpp>
#include <trace_ring/fwd.hpp>

#if __cplusplus >= 202002L

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <trace_ring/reduce/seek/range.hpp>
#include <trace_ring/reduce/statistics.hpp>

namespace trace_ring::inline v1::reduce {

struct unfinished_record {
    const lane_info* lane = nullptr;  ///< null: the file no longer lists it
    position at = 0;                  ///< in the lane, if it were committed
    std::uint64_t offset = 0;         ///< where in the file
    /// True: bytes of it are there. False: they may be older, as the sub-buffer was in use before.
    bool certain = false;
    /// By its header; null if the header is not there yet or cannot be that of a later record.
    const event_type* type = nullptr;
    std::uint64_t time = 0;  ///< by its header, in ticks; only with `type`
};

/// Finds records that were begun and never committed: what a program was about to record when it
/// was killed. Nothing extra is stored for this. A writer puts its words behind the last committed
/// record, so that is where to look, in each sub-buffer that is open or whose writer died in it.
///
/// Bytes there surely belong to such a record only if the sub-buffer had not been used before, as
/// it was zero then. Otherwise they may be older, since no sub-buffer is cleared when it is used
/// again. The record's header may still tell: one whose time is before the last committed record's
/// was not begun after it. But the header has only the lower half of the clock, which wraps within
/// seconds, so an older record may look new, and such a record is never `certain`.
///
/// There is at most one for each lane. It may also have been discarded, or left by a jump. In a
/// live file it may be committed a moment later.
class unfinished_scan {
public:
    explicit unfinished_scan(const tables& in) : in_(in), words_(in.plan().sub_buffer_bytes / 8) {}

    /// The unfinished records, in the order of the file. Linear in its sub-buffers.
    [[nodiscard]] std::vector<unfinished_record> scan() {
        std::vector<unfinished_record> out;
        const std::uint64_t count = in_.present();
        for (std::uint64_t slot = 0; slot < count; ++slot) {
            const std::uint64_t offset = in_.plan().bytes_for(slot);
            sub_buffer_copy head;
            std::uint32_t magic = 0;
            if (!in_.bytes().peek(offset, head, magic) || !left_open(head)) continue;
            if (copy(offset) && left_open(head_)) look(offset, out);
        }
        return out;
    }

private:
    /// A reclaimed sub-buffer has no end time, as it was closed by another thread. Without a clock
    /// no sub-buffer has one.
    [[nodiscard]] bool left_open(const sub_buffer_copy& head) const noexcept {
        switch (static_cast<sub_buffer_state>(head.state.state)) {
            case sub_buffer_state::active:
                return true;
            case sub_buffer_state::closed:
            case sub_buffer_state::reading:
                return head.end_time == 0 && in_.clock() != 0;
            default:
                return false;
        }
    }

    /// Copies a whole sub-buffer between two looks at its commit word. False if that changes each
    /// time: the writer is busy.
    [[nodiscard]] bool copy(std::uint64_t offset) {
        sub_buffer_copy before;
        if (in_.bytes().copy(offset, words_, before) != copy_result::copied) return false;
        for (int tries = 0; tries < 4; ++tries) {
            const auto rest = std::span(words_).subspan(before.bytes / 8);
            if (in_.bytes().read(offset + before.bytes, rest.data(), rest.size_bytes()) !=
                rest.size_bytes()) {
                return false;
            }
            end_ = before.bytes / 8;
            tail_.assign(rest.begin(), rest.end());
            if (in_.bytes().copy(offset, words_, head_) != copy_result::copied) return false;
            if (head_.state == before.state && head_.bytes == before.bytes &&
                head_.records == before.records) {
                return true;
            }
            before = head_;
        }
        return false;
    }

    void look(std::uint64_t offset, std::vector<unfinished_record>& out) const {
        if (std::all_of(tail_.begin(), tail_.end(), [](auto word) { return word == 0; })) return;
        unfinished_record found;
        found.lane = in_.find_lane(head_.lane);
        found.at = head_.first_position + head_.records;
        found.offset = offset + end_ * 8;
        found.certain = head_.state.pos <= in_.plan().sub_buffer_limit;  // the first round
        const auto owned = [&](const owner_record& who) {
            if (found.lane != nullptr) found.lane = &in_.guest_of(*found.lane, who);
        };
        const auto visit = [](std::size_t, std::uint64_t, std::uint32_t) {};
        if (walk_records(words_, head_, visit, owned) == 0 && found.lane != nullptr) {
            judge(found);
        }
        out.push_back(found);
    }

    /// Sets the type if the words behind the records look like the head of one that is not older.
    void judge(unfinished_record& found) const noexcept {
        constexpr std::uint64_t low_half = 0xFFFFFFFFU;
        std::uint64_t last = head_.base_time;
        for (std::size_t at = sizeof(sub_buffer_header) / 8; at < end_;) {
            const auto word = static_cast<std::uint32_t>(words_[at] >> 32);
            last = record_word::id(word) == record_word::time_id
                       ? words_[at + 1]
                       : (last & ~low_half) | (words_[at] & low_half);
            at += record_word::bytes(word) / 8;
        }
        const auto word = static_cast<std::uint32_t>(tail_[0] >> 32);
        const std::uint64_t time = (last & ~low_half) | (tail_[0] & low_half);
        const auto* const type = in_.type_of(*found.lane, head_, word);
        if (type == nullptr || time < last) return;
        const std::uint64_t bytes = record_word::bytes(word);
        const std::uint64_t fixed = record_header_bytes + type->fixed_bytes;
        const std::uint32_t ends = record_word::flags(word) & layout::span_end_record::flags;
        const bool bare = ends != 0 && ends != record_word::begin && type->span == nullptr;
        const bool fits = bare && ends == record_word::end ? bytes == record_header_bytes
                          : bare                           ? bytes == layout::span_end_record::bytes
                          : type->variable                 ? bytes >= fixed
                                                           : bytes == fixed;
        if (!fits || bytes > tail_.size() * 8) return;
        found.type = type;
        found.time = in_.time().eras().raised(head_.lane, head_.state.pos, head_.base_time) -
                     head_.base_time + time;
    }

    const tables& in_;
    std::vector<std::uint64_t> words_;
    std::vector<std::uint64_t> tail_{};  // the words that are not committed
    std::size_t end_ = 0;                // where those begin, in words
    sub_buffer_copy head_{};
};

/// Movable: cursors and views stay good when it is moved, but must not outlive it. Not for two
/// threads at once.
class trace_file {
public:
    /// Throws std::system_error if the file cannot be opened, format_error if it is no trace file
    /// that can be read. A program that records into the file itself should read it by `from` or
    /// `of_descriptor`, as closing a file releases the locks that the process has on it.
    [[nodiscard]] static trace_file open(const std::string& path) {
        return trace_file(source::open(path));
    }
    /// Memory that holds a trace, live or not, aligned to 8 bytes; `name` for messages.
    [[nodiscard]] static trace_file from(std::span<const std::byte> memory,
                                         std::string name = "memory") {
        return trace_file(source::from(memory, std::move(name)));
    }
    /// Takes over a descriptor, of a file or a memfd.
    [[nodiscard]] static trace_file of_descriptor(int fd, std::string name) {
        return trace_file(source::adopt(fd, std::move(name)));
    }

    /// A trace that is part of something larger, such as a core dump (core/core_traces.hpp).
    [[nodiscard]] static trace_file of_source(source from) { return trace_file(std::move(from)); }

    [[nodiscard]] const std::string& name() const noexcept { return tables_->name(); }
    [[nodiscard]] const std::deque<event_type>& event_types() const noexcept {
        return tables_->events().types();
    }
    [[nodiscard]] const std::deque<lane_info>& lanes() const noexcept { return tables_->lanes(); }
    [[nodiscard]] const std::vector<process_info>& processes() const noexcept {
        return tables_->processes();
    }
    [[nodiscard]] const ring_info& ring() const noexcept { return tables_->ring(); }
    /// The clock's readings, and the conversion of ticks to times.
    [[nodiscard]] const timeline& time() const noexcept { return tables_->time(); }
    [[nodiscard]] std::int64_t realtime_ns(std::uint64_t ticks) const noexcept {
        return time().realtime_ns(ticks);
    }
    [[nodiscard]] std::int64_t relative_ns(std::uint64_t ticks) const noexcept {
        return time().relative_ns(ticks);
    }
    /// Everything else that the file has besides its records.
    [[nodiscard]] const tables& about() const noexcept { return *tables_; }
    /// Damage in the file's tables. Damage in its records is among the items of a cursor.
    [[nodiscard]] const std::vector<damage>& damages() const noexcept { return tables_->damages(); }
    /// Brings all of the above up to date with a live file.
    void refresh() { tables_->refresh(); }
    /// True if some process still has the file open for recording.
    [[nodiscard]] bool live() const noexcept { return tables_->in_use(); }

    /// The items that are there now, from the oldest record to the newest. `backward` gives the
    /// same items in the opposite order, provided that time does not go back within a lane.
    [[nodiscard]] cursor forward(filter what = {}, merging order = merging::by_time) const {
        return cursor(*tables_, std::move(what), direction::forward, order);
    }
    [[nodiscard]] cursor backward(filter what = {}, merging order = merging::by_time) const {
        return cursor(*tables_, std::move(what), direction::backward, order);
    }
    /// The items that are there now and those that will come: `next()` returns null when there is
    /// nothing new yet. Each lane's records are in order, none twice. Lanes are merged by time as
    /// far as possible: for that the newest records are held back until the next call. As long as
    /// this trace_file is open, the file keeps its inode when it is closed and trimmed.
    [[nodiscard]] cursor follow(filter what = {}) const {
        tables_->bytes().share_lock(layout::follow_lock_offset);
        return cursor(*tables_, std::move(what), direction::forward, merging::by_time, true);
    }
    [[nodiscard]] trace_statistics statistics(const filter& what = {}) const {
        return count(*tables_, what);
    }
    /// The same, and reports all records and gaps to `observer` (statistics.hpp).
    template <class Observer>
    [[nodiscard]] trace_statistics statistics(const filter& what, Observer&& observer,
                                              merging order = merging::by_lane) const {
        return count(*tables_, what, observer, order);
    }

    /// Finds places in the trace by dates, times, shares or positions.
    [[nodiscard]] range_finder ranges() const { return range_finder(*tables_); }
    /// Makes all dates later by `ns`: corrects a trace from a machine whose clock was wrong.
    void shift_realtime(std::int64_t ns) { tables_->shift_realtime(ns); }

    /// The records that were begun and never committed, as far as can be found.
    /// Cursors do not return them: a record counts from its commit on.
    [[nodiscard]] std::vector<unfinished_record> unfinished() const {
        return unfinished_scan(*tables_).scan();
    }

private:
    explicit trace_file(source from) : tables_(std::make_unique<tables>(std::move(from))) {}

    std::unique_ptr<tables> tables_;
};

}  // namespace trace_ring::inline v1::reduce

#endif
