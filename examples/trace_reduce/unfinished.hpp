// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Finds the records that a program had begun when it was killed.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <trace_ring/format/records.hpp>
#include <trace_ring/reduce/tables.hpp>

namespace trace_reduce {

namespace reduce = trace_ring::reduce;

struct unfinished_record {
    const reduce::lane_info* lane = nullptr;  ///< null: the file no longer lists it
    trace_ring::position at = 0;              ///< in the lane, if it were committed
    std::uint64_t offset = 0;                 ///< where in the file
    /// True: bytes of it are there. False: they may be older, as the sub-buffer was in use before.
    bool certain = false;
    /// By its header; null if the header is not there yet or cannot belong to a later record.
    const reduce::event_type* type = nullptr;
    std::uint64_t time = 0;  ///< by its header, in ticks; only with `type`
};

/// Finds records that were begun and never committed: what a program was about to record when it
/// was killed. Nothing extra is stored for this. A writer puts its words behind the last committed
/// record, so that is where to look, in each sub-buffer that is open or whose writer died in it.
///
/// Bytes there surely belong to such a record only if the sub-buffer had not been used before, as
/// it was zero then. Otherwise they may be older, since no sub-buffer is cleared when it is used
/// again. The record's header may still show it: one whose time is before the last committed
/// record's was not begun after it. But the header has only the lower half of the clock, which
/// wraps within seconds, so an older record may look new, and such a record is never `certain`.
///
/// There is at most one for each lane. It may also have been discarded, or left by a jump. In a
/// live file it may be committed a moment later.
class unfinished_scan {
public:
    explicit unfinished_scan(const reduce::tables& in)
        : in_(in), words_(in.plan().sub_buffer_bytes / 8) {}

    /// The unfinished records, in the order of the file. Linear in its sub-buffers.
    [[nodiscard]] std::vector<unfinished_record> scan() {
        std::vector<unfinished_record> out;
        const std::uint64_t count = in_.present();
        for (std::uint64_t slot = 0; slot < count; ++slot) {
            const std::uint64_t offset = in_.plan().bytes_for(slot);
            trace_ring::sub_buffer_copy head;
            std::uint32_t magic = 0;
            if (!in_.bytes().peek(offset, head, magic) || !left_open(head)) continue;
            if (copy(offset) && left_open(head_)) look(offset, out);
        }
        return out;
    }

private:
    /// A reclaimed sub-buffer has no end time, as it was closed by another thread. Without a clock
    /// no sub-buffer has one.
    [[nodiscard]] bool left_open(const trace_ring::sub_buffer_copy& head) const noexcept {
        switch (static_cast<trace_ring::sub_buffer_state>(head.state.state)) {
            case trace_ring::sub_buffer_state::active:
                return true;
            case trace_ring::sub_buffer_state::closed:
            case trace_ring::sub_buffer_state::reading:
                return head.end_time == 0 && in_.clock() != 0;
            default:
                return false;
        }
    }

    /// Copies a whole sub-buffer between two looks at its commit word. False if that changes each
    /// time: the writer is busy.
    [[nodiscard]] bool copy(std::uint64_t offset) {
        trace_ring::sub_buffer_copy before;
        if (in_.bytes().copy(offset, words_, before) != trace_ring::copy_result::copied)
            return false;
        for (int tries = 0; tries < 4; ++tries) {
            const auto rest = std::span(words_).subspan(before.bytes / 8);
            if (in_.bytes().read(offset + before.bytes, rest.data(), rest.size_bytes()) !=
                rest.size_bytes()) {
                return false;
            }
            end_ = before.bytes / 8;
            tail_.assign(rest.begin(), rest.end());
            if (in_.bytes().copy(offset, words_, head_) != trace_ring::copy_result::copied)
                return false;
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
        const auto owned = [&](const trace_ring::owner_record& who) {
            if (found.lane != nullptr) found.lane = &in_.guest_of(*found.lane, who);
        };
        const auto visit = [](std::size_t, std::uint64_t, std::uint32_t) {};
        if (trace_ring::walk_records(words_, head_, visit, owned) == 0 && found.lane != nullptr) {
            judge(found);
        }
        out.push_back(found);
    }

    /// Sets the type if the words behind the records look like the head of one that is not older.
    void judge(unfinished_record& found) const noexcept {
        constexpr std::uint64_t low_half = 0xFFFFFFFFU;
        std::uint64_t last = head_.base_time;
        for (std::size_t at = sizeof(trace_ring::sub_buffer_header) / 8; at < end_;) {
            const auto word = static_cast<std::uint32_t>(words_[at] >> 32);
            last = trace_ring::record_word::id(word) == trace_ring::record_word::time_id
                       ? words_[at + 1]
                       : (last & ~low_half) | (words_[at] & low_half);
            at += trace_ring::record_word::bytes(word) / 8;
        }
        const auto word = static_cast<std::uint32_t>(tail_[0] >> 32);
        const std::uint64_t time = (last & ~low_half) | (tail_[0] & low_half);
        const auto* const type = in_.type_of(*found.lane, head_, word);
        if (type == nullptr || time < last) return;
        const std::uint64_t bytes = trace_ring::record_word::bytes(word);
        const std::uint64_t fixed = trace_ring::record_header_bytes + type->fixed_bytes;
        const std::uint32_t ends =
            trace_ring::record_word::flags(word) & trace_ring::layout::span_end_record::flags;
        const bool bare =
            ends != 0 && ends != trace_ring::record_word::begin && type->span == nullptr;
        const bool fits = bare && ends == trace_ring::record_word::end
                              ? bytes == trace_ring::record_header_bytes
                          : bare           ? bytes == trace_ring::layout::span_end_record::bytes
                          : type->variable ? bytes >= fixed
                                           : bytes == fixed;
        if (!fits || bytes > tail_.size() * 8) return;
        found.type = type;
        found.time = in_.time().eras().raised(head_.lane, head_.state.pos, head_.base_time) -
                     head_.base_time + time;
    }

    const reduce::tables& in_;
    std::vector<std::uint64_t> words_;
    std::vector<std::uint64_t> tail_{};  // the words that are not committed
    std::size_t end_ = 0;                // where those begin, in words
    trace_ring::sub_buffer_copy head_{};
};

/// The records that were begun and never committed, as far as can be found. Cursors do not return
/// them: a record counts from its commit on.
[[nodiscard]] inline std::vector<unfinished_record> find_unfinished(const reduce::tables& in) {
    return unfinished_scan(in).scan();
}

}  // namespace trace_reduce
