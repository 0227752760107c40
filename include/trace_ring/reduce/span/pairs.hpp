// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Finds which end belongs to which begin, by one rule for statistics and all exporters of spans.
/// - An end that says where its span began ends that span, even of another thread or process.
/// - Any other end ends the span of its event that was begun last, in its lane, and is still open.
///   (In the lane of a processor: by its thread, on whichever processors.) Spans that were begun
///   after that one and are still open have lost their ends.
/// - The second rule does not apply across a place where written records of a lane are missing, or
///   where its time goes back: the missing ones may be begins or ends. (The writer knows of a
///   record that was never written, as one too long; the ends of spans around it say where they
///   began.)
/// A span that is left has no end, and so no length. In files of version 1 no end says where its
/// span began: if an end comes whose span was passed over by the end of a span around it, the two
/// did not nest, and it is not known which end belongs to which.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <trace_ring/format/records.hpp>
#include <trace_ring/reduce/item/record_view.hpp>
#include <trace_ring/reduce/tables.hpp>

namespace trace_ring::inline v1::reduce {

/// A hash of a place.
struct span_place_hash {
    /// Constant time.
    [[nodiscard]] std::size_t operator()(const span_place& of) const noexcept {
        return std::hash<std::uint64_t>{}((of.at + of.lane) * 0x9E3779B97F4A7C15U ^ of.lane);
    }
};

/// A span that has begun; `kept` is data of the caller.
template <class Kept>
struct begun_span {
    const event_type* type = nullptr;  ///< the span's type
    std::uint64_t time = 0;            ///< ticks
    bool interval = false;             ///< the time is a lower bound
    Kept kept{};                       ///< what the user keeps of the begin
};

/// The result of an end.
template <class Kept>
struct ended_span {
    std::optional<begun_span<Kept>> begun{};  ///< the begin of the span that ends here
    bool not_nested = false;                  ///< no begin is known, because the spans did not nest
};

/// The open spans of one trace. Records must come in the order of their times, or at least in order
/// for each lane and with a begin before its end. Memory for `most` spans; beyond that the spans
/// that began first are given up. Constant time for each call, on average.
template <class Kept>
class span_pairs {
public:
    using begun = begun_span<Kept>;  ///< a span that has begun
    /// The most spans that are open at a time.
    static constexpr std::size_t most = std::size_t{1} << 20;

    /// A record that begins a span, of an event that is known. `given_up(begun&)` is called for a
    /// span that is given up for want of room.
    template <class GivenUp>
    void begin(const record_view& record, Kept kept, GivenUp&& given_up) {
        const span_place place{record.lane().number, record.position()};
        while (open_.size() >= most) {
            take(order_.front(), given_up);
            order_.pop_front();
        }
        open_.insert_or_assign(place, begun{&record.type().whole(), record.time(),
                                            record.interval(), std::move(kept)});
        order_.push_back(place);
        if (order_.size() > 2 * open_.size() + 64) std::erase_if(order_, gone());
        stack_of(record.lane()).push({place, &record.type().whole()}, gone());
    }

    /// A record that ends a span. `passed(begun&)` is called for spans that have lost their ends.
    template <class Passed>
    [[nodiscard]] ended_span<Kept> end(const record_view& record, Passed&& passed) {
        ended_span<Kept> out;
        const auto keep = [&out](begun& found) { out.begun = std::move(found); };
        const event_type* const type = &record.type().whole();
        if (const auto place = record.began()) {
            const auto found = open_.find(*place);
            if (found != open_.end() && found->second.type == type) take(*place, keep);
            return out;
        }
        if (!record.fault().empty()) return out;
        stack& in = stack_of(record.lane());
        if (in.open[type] == 0) {
            const auto was = std::find(in.passed.begin(), in.passed.end(), type);
            out.not_nested = was != in.passed.end();
            if (out.not_nested) in.passed.erase(was);
            return out;
        }
        for (;;) {
            const entry last = in.pop();
            if (last.type == type) {
                take(last.place, keep);  // nothing, if an end elsewhere has ended it already
                return out;
            }
            if (!take(last.place, passed)) continue;
            if (in.passed.size() >= 64) in.passed.erase(in.passed.begin());
            in.passed.push_back(last.type);
        }
    }

    /// Written records of this lane are missing here, or its time goes back. `left(begun&)` is
    /// called for each span that is open there, the innermost first: from here on only an end that
    /// says where it began can end it.
    template <class Left>
    void gap(const lane_info& lane, Left&& left) {
        const auto clear = [&](stack& each) {
            for (auto one = each.entries.rbegin(); one != each.entries.rend(); ++one) {
                const auto found = open_.find(one->place);
                if (found != open_.end()) left(found->second);
            }
            each = {};
        };
        if (!lane.cpu) return clear(stack_of(lane));
        for (auto& [key, each] : stacks_) {
            if (key >> 63 != 0) clear(each);  // of all threads in lanes of processors
        }
    }

    /// Visits the spans that are still open, in no order.
    template <class Visit>
    void for_each_open(Visit&& visit) const {
        for (const auto& [place, each] : open_) visit(each);
    }

private:
    struct entry {
        span_place place;
        const event_type* type = nullptr;
    };
    /// The spans begun in one lane, or by one thread in lanes of processors, and not ended by the
    /// second rule; some may have ended by the first.
    struct stack {
        std::vector<entry> entries{};
        std::unordered_map<const event_type*, std::size_t> open{};  // how often in `entries`
        std::vector<const event_type*> passed{};  // over, by the end of an outer span
        std::size_t look_at = 64;                 // entries at which ended ones are removed

        template <class Gone>
        void push(const entry& one, const Gone& gone) {
            if (entries.size() >= look_at) {
                std::erase_if(entries, [&](const entry& each) {
                    if (!gone(each.place)) return false;
                    --open[each.type];
                    return true;
                });
                look_at = 2 * entries.size() + 64;
            }
            entries.push_back(one);
            ++open[one.type];
        }
        entry pop() {
            const entry last = entries.back();
            entries.pop_back();
            --open[last.type];
            return last;
        }
    };

    [[nodiscard]] auto gone() const {
        return [this](const span_place& place) { return open_.count(place) == 0; };
    }
    template <class Visit>
    bool take(const span_place& place, Visit&& visit) {
        const auto found = open_.find(place);
        if (found == open_.end()) return false;
        visit(found->second);
        open_.erase(found);
        return true;
    }
    [[nodiscard]] stack& stack_of(const lane_info& lane) {
        std::uint64_t key = lane.number;
        if (lane.cpu) {
            key = std::uint64_t{1} << 63 | std::uint64_t{lane.process.value_or(0)} << 32 |
                  lane.thread;
        }
        if (last_ == nullptr || key != last_key_) last_ = &stacks_[last_key_ = key];
        return *last_;
    }

    std::unordered_map<span_place, begun, span_place_hash> open_{};
    std::deque<span_place> order_{};  // in the order of their begins; some have ended
    std::unordered_map<std::uint64_t, stack> stacks_{};
    stack* last_ = nullptr;  // elements of the map do not move
    std::uint64_t last_key_ = 0;
};

// The spans that did not nest, or ended in another thread, are found before the trace is read, so
// that an exporter that writes while it reads can give each a separate line.
using span_places = std::unordered_set<span_place, span_place_hash>;  ///< the places of some spans

/// The places where spans began whose ends say so. Reads the whole trace if the file says that it
/// has such ends; memory is some 40 bytes for each.
[[nodiscard]] inline span_places begun_elsewhere(const tables& in) {
    span_places out;
    if (!in.ring().ended_elsewhere) return out;
    std::vector<std::uint64_t> words(in.plan().sub_buffer_bytes / 8);
    const std::uint64_t count = in.present();
    for (std::uint64_t slot = 0; slot < count; ++slot) {
        sub_buffer_copy head;
        if (in.bytes().copy(in.plan().bytes_for(slot), words, head) != copy_result::copied)
            continue;
        const auto visit = [&](std::size_t at, std::uint64_t, std::uint32_t word) {
            if ((record_word::flags(word) & layout::span_end_record::flags) !=
                layout::span_end_record::flags)
                return;
            if (record_word::bytes(word) < layout::span_end_record::bytes) return;
            out.insert({static_cast<std::uint32_t>(words[at + 2]), words[at + 1] - 1});
        };
        static_cast<void>(walk_records(words, head, visit));  // the cursor reports damage
    }
    return out;
}

}  // namespace trace_ring::inline v1::reduce
