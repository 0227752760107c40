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
/// member `place`, where the span began. Memory: for the spans that are open simultaneously.
template <class Span>
class span_nesting {
public:
    /// The spans that are open in a lane, the innermost last.
    [[nodiscard]] const std::vector<Span>& around(const reduce::lane_info& lane) {
        return spans_of(lane);
    }
    void begin(const reduce::lane_info& lane, Span span) {
        spans_of(lane).push_back(std::move(span));
    }
    /// The span that began there is over. Linear in the spans inside it that are open.
    void end(const reduce::lane_info& lane, const reduce::span_place& place) {
        auto& spans = spans_of(lane);
        const auto at = std::find_if(spans.rbegin(), spans.rend(),
                                     [&](const Span& each) { return each.place == place; });
        if (at != spans.rend()) spans.erase(std::next(at).base());
    }
    /// It is not known which spans are still open in this lane, or in any lane of a processor.
    void forget(const reduce::lane_info& lane) {
        if (!lane.cpu) return spans_of(lane).clear();
        for (auto& [key, spans] : spans_) {
            if (key >> 63 != 0) spans.clear();
        }
    }
    void clear() { spans_.clear(); }

private:
    [[nodiscard]] std::vector<Span>& spans_of(const reduce::lane_info& lane) {
        std::uint64_t key = lane.number;
        if (lane.cpu) {
            key = std::uint64_t{1} << 63 | std::uint64_t{lane.process.value_or(0)} << 32 |
                  lane.thread;
        }
        return spans_[key];
    }

    std::unordered_map<std::uint64_t, std::vector<Span>> spans_{};
};

}  // namespace records
