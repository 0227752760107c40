// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The selection of wanted records by threads that decode ahead (threads.hpp).

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <trace_ring/reduce/entries/entry.hpp>
#include <trace_ring/reduce/filter.hpp>
#include <trace_ring/reduce/tables.hpp>

namespace trace_reduce {

namespace reduce = trace_ring::reduce;

/// Leaves out records that a filter does not want, before their lane is merged with others. For
/// them it keeps how long their lane would have waited: until the latest of their times (backward:
/// the earliest). Nothing of the lane is given out before that in either case, so lanes are merged
/// as if no record were left out.
///
/// For a sub-buffer of `lane`, by events, threads and condition. All arguments must outlive it.
class selection {
public:
    selection(const reduce::tables& in, const reduce::lane_info& lane, reduce::direction way,
              const reduce::filter& ask) noexcept
        : in_(in), lane_(lane), forward_(way == reduce::direction::forward), ask_(ask) {}

    /// Puts the wanted records of `all`, and all notes, into `out`. Throws as the condition does.
    void make(const std::vector<reduce::entry>& all, const reduce::record_words& words,
              const trace_ring::sub_buffer_copy& head, std::uint64_t offset,
              std::vector<reduce::entry>& out) {
        out.clear();
        words_ = words;
        offset_ = offset;
        first_ = head.first_position;
        for (const reduce::entry& each : all) {
            if (each.is_note()) {
                out.push_back(each);
                continue;
            }
            const reduce::lane_info& owner = each.owner != nullptr ? *each.owner : lane_;
            const auto* const type = in_.type_of(owner, head, each.word);
            if (!wants(type) || !ask_.wants_thread(owner)) {
                leave_out(each, 0, each.count, out);
            } else if (ask_.condition) {
                choose(each, owner, type, out);
            } else {
                out.push_back(each);
            }
        }
    }

private:
    [[nodiscard]] bool wants(const reduce::event_type* type) {
        if (!asked_ || type != last_) {
            wanted_ = ask_.may_want(type);
            last_ = type;
            asked_ = true;
        }
        return wanted_;
    }

    /// In runs as long as a cursor asks for, so that the cursor gives out the same runs.
    void choose(const reduce::entry& of, const reduce::lane_info& owner,
                const reduce::event_type* type, std::vector<reduce::entry>& out) const {
        const bool few = type != nullptr && type->variable;
        const auto kind = of.shared(&owner, type, offset_, words_);
        const std::ptrdiff_t positions = of.packed == 0 ? 1 : 0;
        const auto stride = static_cast<std::ptrdiff_t>(of.stride());
        for (std::uint32_t i = 0; i < of.count;) {
            const reduce::record_view first(kind, of.at(words_, i), first_ + of.number_of(i));
            const std::uint32_t most = few ? (std::min)(of.count - i, 64U) : of.count - i;
            const std::size_t alike = first.alike(most, stride);
            const auto found =
                ask_.condition->choose(reduce::record_run::of(first, alike, stride, positions));
            const auto skip = static_cast<std::uint32_t>(found.take == 0 ? alike : found.skip);
            leave_out(of, i, skip, out);
            i += skip;
            if (found.take == 0) continue;
            reduce::entry wanted = of;
            wanted.begin += i * of.stride();
            wanted.number = of.number_of(i);
            wanted.count = static_cast<std::uint32_t>(found.take);
            wanted.asked = reduce::entry::answer::wanted;
            out.push_back(wanted);
            i += wanted.count;
        }
    }

    void leave_out(const reduce::entry& of, std::uint32_t begin, std::uint32_t count,
                   std::vector<reduce::entry>& out) const {
        if (count == 0) return;
        const std::uint64_t until = of.time(words_, forward_ ? begin + count - 1 : begin);
        if (out.empty() || out.back().asked != reduce::entry::answer::unwanted) {
            reduce::entry none;
            none.asked = reduce::entry::answer::unwanted;
            none.latest = until;
            out.push_back(none);
        }
        reduce::entry& all = out.back();
        all.count += count;
        all.latest = forward_ ? (std::max)(all.latest, until) : (std::min)(all.latest, until);
    }

    const reduce::tables& in_;
    const reduce::lane_info& lane_;
    bool forward_;
    const reduce::filter& ask_;
    reduce::record_words words_{};
    std::uint64_t offset_ = 0;
    trace_ring::position first_ = 0;  // of the sub-buffer's first record
    const reduce::event_type* last_ = nullptr;
    bool asked_ = false;
    bool wanted_ = false;
};

}  // namespace trace_reduce
