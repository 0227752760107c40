// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Which span is around which: the open spans of each lane, outermost first.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include <trace_ring/reduce/item/record_view.hpp>
#include <trace_ring/reduce/span/pairs.hpp>

namespace records {

namespace reduce = trace_ring::reduce;

/// The open spans of the lanes of one trace. In lanes of processors, those of each thread.
/// reduce/span/pairs.hpp says when a span is over; the caller reports that here. `Span` has a
/// member `place`, where the span began. Memory: for the spans that are open simultaneously. A call
/// takes constant time on average, `end` logarithmic in the open spans of the lane (in lanes of
/// processors linear), and `forget` linear.
template <class Span>
class span_nesting {
public:
    /// The span in a lane that began last and is open; null: none. Good until the next call.
    [[nodiscard]] const Span* innermost(const reduce::lane_info& lane) {
        const auto& in = of(lane);
        return in.spans.empty() ? nullptr : &in.spans.back().span;
    }
    /// How many are open in a lane.
    [[nodiscard]] std::size_t depth(const reduce::lane_info& lane) { return of(lane).open; }

    void begin(const reduce::lane_info& lane, Span span) {
        auto& in = of(lane);
        if (in.spans.size() > 2 * in.open + 64) {
            std::erase_if(in.spans, [](const entry& each) { return each.over; });
        }
        in.ascending =
            !lane.cpu &&
            (in.spans.empty() || (in.ascending && in.spans.back().span.place.at < span.place.at));
        in.spans.push_back({std::move(span), false});
        ++in.open;
    }
    /// The span that began there is over.
    void end(const reduce::lane_info& lane, const reduce::span_place& place) {
        auto& in = of(lane);
        const auto is = [&](const entry& each) { return !each.over && each.span.place == place; };
        const auto is_before = [](const entry& each, trace_ring::position at) {
            return each.span.place.at < at;
        };
        const auto found =
            in.ascending ? std::lower_bound(in.spans.begin(), in.spans.end(), place.at, is_before)
                         : std::find_if(in.spans.begin(), in.spans.end(), is);
        if (found == in.spans.end() || !is(*found)) return;
        found->over = true;
        --in.open;
        while (!in.spans.empty() && in.spans.back().over) in.spans.pop_back();
    }
    /// It is not known which spans are still open in this lane, or in any lane of a processor.
    void forget(const reduce::lane_info& lane) {
        if (!lane.cpu) {
            of(lane) = {};
            return;
        }
        for (auto& [key, in] : lanes_) {
            if (key >> 63 != 0) in = {};
        }
    }
    void clear() { lanes_.clear(); }

private:
    struct entry {
        Span span;
        bool over = false;  // the last one never is
    };
    struct spans_of_lane {
        std::vector<entry> spans{};
        std::size_t open = 0;
        bool ascending = true;  // their positions are, strictly
    };
    [[nodiscard]] spans_of_lane& of(const reduce::lane_info& lane) {
        std::uint64_t key = lane.number;
        if (lane.cpu) {
            key = std::uint64_t{1} << 63 | std::uint64_t{lane.process.value_or(0)} << 32 |
                  lane.thread;
        }
        return lanes_[key];
    }

    std::unordered_map<std::uint64_t, spans_of_lane> lanes_{};
};

}  // namespace records
