// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The parts of a decoded sub-buffer: records in stretches, and notes between them; and
/// the selection of those that are wanted.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include <trace_ring/format/records.hpp>
#include <trace_ring/reduce/filter.hpp>
#include <trace_ring/reduce/tables.hpp>

namespace trace_ring::inline v1::reduce {

using note_type = std::variant<loss_item, clock_jump>;

/// The words of a sub-buffer, and of the references that its records pack (unpacking.hpp).
struct record_words {
    const std::uint64_t* copied;
    const std::uint64_t* unpacked;
};

/// A stretch of records, or a note: a note has no records, and `begin` is its number. An unwanted
/// entry stands for `count` records in a row, of any kind, and has only the time of the one read
/// last, in `latest`.
struct entry : stretch {
    enum class answer : std::uint8_t { none, wanted, unwanted };

    std::uint64_t latest = 0;          // of intervals: the next reading of the clock
    const lane_info* whose = nullptr;  // the thread, if not the lane's first
    std::uint32_t number = 0;          // how many records the sub-buffer has before the first
    // Where the record begins, in words, from which these were unpacked; 0: they are the
    // sub-buffer's own. All of them have its number.
    std::uint16_t packed = 0;
    answer asked = answer::none;  // whether its records are wanted, if known

    [[nodiscard]] bool is_note() const noexcept { return count == 0; }
    /// The address of record `i`.
    [[nodiscard]] const std::uint64_t* at(const record_words& words,
                                          std::uint32_t i) const noexcept {
        return (packed == 0 ? words.copied : words.unpacked) + begin + std::size_t{i} * stride();
    }
    [[nodiscard]] std::uint64_t time(const record_words& words, std::uint32_t i) const noexcept {
        return high | (*at(words, i) & 0xFFFFFFFFU);
    }
    /// How many records the sub-buffer has before record `i`.
    [[nodiscard]] std::uint32_t number_of(std::uint32_t i) const noexcept {
        return number + (packed == 0 ? i : 0);
    }
    /// What its records share, as those of this lane and type in a sub-buffer at `offset`.
    [[nodiscard]] record_view::kind shared(const lane_info* lane, const event_type* type,
                                           std::uint64_t offset,
                                           const record_words& words) const noexcept {
        if (packed != 0) return {lane, type, high, latest, offset + packed * 8ULL, nullptr};
        return {lane, type, high, latest, offset, words.copied};
    }
};

/// The result of walking a sub-buffer.
struct walked {
    std::uint32_t records = 0;  ///< the sound ones
    std::uint64_t last_time = 0;
    bool sound = true;  ///< all records are
};

/// The result of a walk that was made ahead of time.
struct walked_ahead {
    bool there = false;
    walked result{};
    std::vector<entry> entries{};
    std::vector<note_type> notes{};
};

/// Leaves out records that a filter does not want, before their lane is merged with others. For
/// them it keeps how long their lane would have waited: until the latest of their times (backward:
/// the earliest). Nothing of the lane is given out before that in either case, so lanes are merged
/// as if no record were left out.
///
/// For a sub-buffer of `lane`, by events, threads and condition. All arguments must outlive it.
class selection {
public:
    selection(const tables& in, const lane_info& lane, direction way, const filter& ask) noexcept
        : in_(in), lane_(lane), forward_(way == direction::forward), ask_(ask) {}

    /// Puts the wanted records of `all`, and all notes, into `out`. Throws as the condition does.
    void make(const std::vector<entry>& all, const record_words& words, const sub_buffer_copy& head,
              std::uint64_t offset, std::vector<entry>& out) {
        out.clear();
        words_ = words;
        offset_ = offset;
        first_ = head.first_position;
        for (const entry& each : all) {
            if (each.is_note()) {
                out.push_back(each);
                continue;
            }
            const lane_info& whose = each.whose != nullptr ? *each.whose : lane_;
            const auto* const type = in_.type_of(whose, head, each.word);
            if (!wants(type) || !ask_.wants_thread(whose)) {
                leave_out(each, 0, each.count, out);
            } else if (ask_.condition) {
                choose(each, whose, type, out);
            } else {
                out.push_back(each);
            }
        }
    }

private:
    [[nodiscard]] bool wants(const event_type* type) {
        if (!asked_ || type != last_) {
            wanted_ = ask_.may_want(type);
            last_ = type;
            asked_ = true;
        }
        return wanted_;
    }

    /// In runs as long as a cursor asks for, so that the cursor gives out the same runs.
    void choose(const entry& of, const lane_info& whose, const event_type* type,
                std::vector<entry>& out) const {
        const bool few = type != nullptr && type->variable;
        const auto kind = of.shared(&whose, type, offset_, words_);
        const std::ptrdiff_t positions = of.packed == 0 ? 1 : 0;
        const auto stride = static_cast<std::ptrdiff_t>(of.stride());
        for (std::uint32_t i = 0; i < of.count;) {
            const record_view first(kind, of.at(words_, i), first_ + of.number_of(i));
            const std::uint32_t most = few ? (std::min)(of.count - i, 64U) : of.count - i;
            const std::size_t alike = first.alike(most, stride);
            const auto found =
                ask_.condition->choose(record_run::of(first, alike, stride, positions));
            const auto skip = static_cast<std::uint32_t>(found.take == 0 ? alike : found.skip);
            leave_out(of, i, skip, out);
            i += skip;
            if (found.take == 0) continue;
            entry wanted = of;
            wanted.begin += i * of.stride();
            wanted.number = of.number_of(i);
            wanted.count = static_cast<std::uint32_t>(found.take);
            wanted.asked = entry::answer::wanted;
            out.push_back(wanted);
            i += wanted.count;
        }
    }

    void leave_out(const entry& of, std::uint32_t begin, std::uint32_t count,
                   std::vector<entry>& out) const {
        if (count == 0) return;
        const std::uint64_t until = of.time(words_, forward_ ? begin + count - 1 : begin);
        if (out.empty() || out.back().asked != entry::answer::unwanted) {
            entry none;
            none.asked = entry::answer::unwanted;
            none.latest = until;
            out.push_back(none);
        }
        entry& all = out.back();
        all.count += count;
        all.latest = forward_ ? (std::max)(all.latest, until) : (std::min)(all.latest, until);
    }

    const tables& in_;
    const lane_info& lane_;
    bool forward_;
    const filter& ask_;
    record_words words_{};
    std::uint64_t offset_ = 0;
    position first_ = 0;  // of the sub-buffer's first record
    const event_type* last_ = nullptr;
    bool asked_ = false;
    bool wanted_ = false;
};

}  // namespace trace_ring::inline v1::reduce
