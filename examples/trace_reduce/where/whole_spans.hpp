// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A span is selected by either end, and shown whole. The begin has the span's fields and the end
/// has its results, so a condition on one of them is unknown for the other. A first pass over the
/// trace pairs begins with ends (reduce/span/pairs.hpp) and keeps the places of both ends of each
/// span of which one is wanted. Reading can then go forward or backward.
///
/// A trace that is followed has no end to look ahead to. There, a span's end is shown if its begin
/// was; a begin is not shown for the sake of an end that has yet to come.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <unordered_set>
#include <utility>
#include <variant>

#include <trace_ring/loss.hpp>
#include <trace_ring/reduce/cursor.hpp>
#include <trace_ring/reduce/filter.hpp>
#include <trace_ring/reduce/filter/condition.hpp>
#include <trace_ring/reduce/item.hpp>
#include <trace_ring/reduce/span/pairs.hpp>
#include <trace_ring/reduce/tables.hpp>
#include <trace_ring/reduce/trace_file.hpp>

namespace trace_reduce::where {

namespace reduce = trace_ring::reduce;

[[nodiscard]] inline bool is_span(const reduce::event_type* type) noexcept {
    return type != nullptr && type->kind == trace_ring::event_kind::span;
}

/// The spans of one trace that are wanted, by the places of their ends.
class whole_spans {
public:
    [[nodiscard]] bool has(const reduce::record_view& record) const {
        return places_.contains({record.lane().number, record.position()});
    }
    [[nodiscard]] bool has(const reduce::lane_info& lane) const {
        return lanes_.contains(lane.number);
    }
    [[nodiscard]] bool has(const reduce::event_type* type) const {
        return type != nullptr && types_.contains(&type->whole());
    }
    /// The first and the last tick of the ends; the first is the larger if there are none.
    [[nodiscard]] std::uint64_t first() const noexcept { return first_; }
    [[nodiscard]] std::uint64_t last() const noexcept { return last_; }

    /// Reads all spans. `wants(record, ticks)` is asked of each begin and end, with the duration
    /// if it is an end whose begin is known; `look(count)` is called as by
    /// where::attentive.
    template <class Wants>
    void read(const reduce::trace_file& in, const std::function<void(std::size_t)>& look,
              const Wants& wants) {
        reduce::filter spans;
        spans.condition = std::make_shared<all_spans>(look);
        auto all = in.forward(spans);
        while (const reduce::item* next = all.next()) {
            if (const auto* record = std::get_if<reduce::record_view>(next)) {
                note(*record, wants);
            } else if (const auto* loss = std::get_if<reduce::loss_item>(next)) {
                if (trace_ring::was_written(loss->cause)) gap(loss->lane);
            } else {
                gap(std::get_if<reduce::clock_jump>(next)->lane);
            }
        }
        pairs_ = {};
    }

    /// For a trace that is followed: whether the end of a span is wanted for its begin's sake.
    /// Records come in the order of reading; `wants` as above.
    template <class Wants>
    [[nodiscard]] bool follow(const reduce::record_view& record, const Wants& wants) {
        if (!record.begins() && record.ends()) {
            const auto found = pairs_.end(record, [](const auto&) {});
            return (found.begun && found.begun->kept.wanted) || wants(record, ticks(found, record));
        }
        const bool wanted = wants(record, std::nullopt);
        if (record.begins()) {
            pairs_.begin(record, {record.position(), &record.lane(), wanted}, [](const auto&) {});
        }
        return wanted;
    }

private:
    struct all_spans : reduce::condition {
        explicit all_spans(std::function<void(std::size_t)> look) : look_(std::move(look)) {}
        [[nodiscard]] bool may_want(const reduce::lane_info&) const override { return true; }
        [[nodiscard]] bool may_want(const reduce::event_type* type) const override {
            return is_span(type);
        }
        void pause() const override { look_(0); }
        [[nodiscard]] portion choose(const reduce::record_run& of) const override {
            look_(of.size());
            return {0, of.size()};
        }
        void pass_over(std::size_t count) const override { look_(count); }

    private:
        std::function<void(std::size_t)> look_;
    };
    struct begin_place {
        trace_ring::position at = 0;
        const reduce::lane_info* lane = nullptr;
        bool wanted = false;
    };

    [[nodiscard]] static std::optional<std::uint64_t> ticks(
        const reduce::ended_span<begin_place>& found, const reduce::record_view& end) {
        if (!found.begun || end.time() < found.begun->time) return std::nullopt;
        return end.time() - found.begun->time;
    }
    template <class Wants>
    void note(const reduce::record_view& record, const Wants& wants) {
        if (record.begins()) {
            pairs_.begin(record, {record.position(), &record.lane(), wants(record, std::nullopt)},
                         [](const auto&) {});
            return;
        }
        if (!record.ends()) return;
        const auto found = pairs_.end(record, [](const auto&) {});
        if (!found.begun) return;
        if (!found.begun->kept.wanted && !wants(record, ticks(found, record))) return;
        const auto& kept = found.begun->kept;
        add(kept.lane->number, kept.at, found.begun->time);
        add(record.lane().number, record.position(), record.time());
        types_.insert(&record.type().whole());
    }
    void add(std::uint32_t lane, trace_ring::position at, std::uint64_t time) {
        places_.insert({lane, at});
        lanes_.insert(lane);
        first_ = (std::min)(first_, time);
        last_ = (std::max)(last_, time);
    }
    void gap(const reduce::lane_info* lane) {
        if (lane != nullptr) pairs_.gap(*lane, [](const auto&) {});
    }

    reduce::span_pairs<begin_place> pairs_{};
    reduce::span_places places_{};
    std::unordered_set<std::uint32_t> lanes_{};
    std::unordered_set<const reduce::event_type*> types_{};
    std::uint64_t first_ = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t last_ = 0;
};

}  // namespace trace_reduce::where
