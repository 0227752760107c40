// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Counts the records, bytes and losses of a trace, by event, lane and cause, and its time.
/// @code
///   const auto numbers = trace.statistics();
///   print(numbers.records, numbers.seconds(trace.time()));
/// @endcode

#include <trace_ring/fwd.hpp>

#if __cplusplus >= 202002L

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <variant>
#include <vector>

#include <trace_ring/reduce/cursor.hpp>

namespace trace_ring::inline v1::reduce {

/// True if a record's fault means that the file is damaged. Events may also be missing because the
/// dictionary had no room for them, or because the lane is not known any more.
[[nodiscard]] inline bool is_damage(const tables& in, const record_view& record) noexcept {
    const bool excused =
        !record.known() && (in.ring().types_without_room != 0 || !record.lane().listed);
    return !record.fault().empty() && !excused;
}

/// The records of one event.
struct event_statistics {
    const event_type* type = nullptr;      ///< null: records of events that the dictionary lacks
    std::uint64_t records = 0;             ///< number of records
    std::uint64_t bytes = 0;               ///< bytes of records, with their headers
    std::optional<std::uint64_t> total{};  ///< times it happened, including lost ones
};

/// The records of one lane.
struct lane_statistics {
    const lane_info* lane = nullptr;  ///< null: losses that concern no lane
    std::uint64_t records = 0;        ///< number of records
    std::uint64_t bytes = 0;          ///< bytes of records, with their headers
    loss_counts lost{};               ///< records lost in this lane
};

/// The records of a trace.
struct trace_statistics {
    std::uint64_t records = 0;      ///< number of records
    std::uint64_t bytes = 0;        ///< of records, with their headers
    loss_counts lost{};             ///< records lost in all lanes
    std::uint64_t faulty = 0;       ///< records whose fields cannot be read; among `records`
    std::uint64_t damages = 0;      ///< damaged places found while reading, faulty records included
    std::vector<damage> places{};   ///< the first hundred of them
    std::uint64_t clock_jumps = 0;  ///< times that went back within a lane, and jumps of the clocks
    std::uint64_t first_time = 0;   ///< ticks
    std::uint64_t last_time = 0;    ///< ticks
    std::vector<event_statistics> events{};  ///< those with records or a total; most records first
    std::vector<lane_statistics> lanes{};    ///< by number; those without records or losses too

    /// Seconds from the first record to the last.
    [[nodiscard]] double seconds(const timeline& time) const noexcept {
        if (records == 0) return 0;
        if (!time.known()) return time.ns(static_cast<double>(last_time - first_time)) / 1e9;
        return static_cast<double>(time.relative_ns(last_time) - time.relative_ns(first_time)) /
               1e9;
    }
};

/// The observer that does nothing, as a model. `count` calls it for each item, in order.
struct no_observer {
    /// A record, and the records directly after it that are of the same lane, event and length.
    void records(const record_view&, const record_run&) const noexcept {}
    /// Written records of this lane are missing here, or its time goes back; null: of no lane.
    void gap(const lane_info*) const noexcept {}
};

/// Counts the records that `what` wants. Reading lane by lane is quickest.
template <class Observer = no_observer>
[[nodiscard]] trace_statistics count(tables& in, const filter& what, Observer&& observer = {},
                                     merging order = merging::by_lane) {
    trace_statistics sum;
    std::map<const event_type*, event_statistics> events{};
    std::map<const lane_info*, lane_statistics> lanes{};
    sum.first_time = ~std::uint64_t{0};
    cursor all(in, what, direction::forward, order);
    const lane_info* last_lane = nullptr;
    lane_statistics* lane = nullptr;
    const event_type* last_type = nullptr;
    event_statistics* event = nullptr;
    const auto in_lane = [&](const lane_info* of) -> lane_statistics& {
        if (lane == nullptr || of != last_lane) lane = &lanes[last_lane = of];
        return *lane;
    };
    const auto note = [&sum](std::uint64_t offset, std::string_view cause) {
        if (++sum.damages <= 100) sum.places.push_back({offset, std::string(cause)});
    };
    const auto note_fault = [&](const record_view& record) {
        ++sum.faulty;
        if (is_damage(in, record)) note(record.offset(), record.fault());
    };
    while (const item* next = all.next()) {
        if (const auto* record = std::get_if<record_view>(next)) {
            // Counts with it the records after it that are of the same kind.
            const record_run rest = all.records();
            const std::uint64_t records = 1 + rest.size();
            const std::uint64_t bytes = records * record->bytes();
            const event_type* type = record->known() ? &record->type().whole() : nullptr;
            if (event == nullptr || type != last_type) event = &events[last_type = type];
            auto& of_lane = in_lane(&record->lane());
            for (auto* each : {&event->records, &of_lane.records, &sum.records}) *each += records;
            for (auto* each : {&event->bytes, &of_lane.bytes, &sum.bytes}) *each += bytes;
            sum.first_time = (std::min)(sum.first_time, record->time());
            sum.last_time =
                (std::max)(sum.last_time, rest.empty() ? record->time() : rest.back().time());
            if (!record->fault().empty()) {
                note_fault(*record);
                for (const record_view& other : rest) note_fault(other);
            }
            observer.records(*record, rest);
        } else if (const auto* loss = std::get_if<loss_item>(next)) {
            in_lane(loss->lane).lost.add(loss->cause, loss->count);
            sum.lost.add(loss->cause, loss->count);
            if (loss->cause == loss_cause::damaged) note(loss->offset, loss->what);
            if (was_written(loss->cause)) observer.gap(loss->lane);
        } else {
            ++sum.clock_jumps;
            const lane_info* const of = jump_in(*next).lane;
            if (of != nullptr) observer.gap(of);
        }
    }
    if (sum.records == 0) sum.first_time = 0;
    for (const auto& type : in.events().types()) {
        if (!type.total || !what.wants_event(type.name)) continue;
        if (what.condition && !what.condition->may_want(&type)) continue;
        events[&type].total = in.total_of(type);
    }
    for (const auto& each : in.lanes()) {
        if (what.wants(each)) lanes[&each];
    }
    for (auto& [type, each] : events) {
        each.type = type;
        sum.events.push_back(each);
    }
    std::sort(sum.events.begin(), sum.events.end(), [](const auto& a, const auto& b) {
        if (a.records != b.records) return a.records > b.records;
        if (a.type == nullptr || b.type == nullptr) return b.type == nullptr && a.type != nullptr;
        return a.type->number < b.type->number;
    });
    for (auto& [key, each] : lanes) {
        each.lane = key;
        sum.lanes.push_back(each);
    }
    // In a lane that was adopted: the first thread, then the others in a fixed order.
    const auto place = [&in](const lane_info* of) {
        if (of == nullptr) return std::tuple(0U, false, 0U, 0U, 0U, std::string_view());
        return std::tuple(of->number, in.find_lane(of->number) != of, of->thread, of->depth,
                          of->pid, std::string_view(of->name));
    };
    std::sort(sum.lanes.begin(), sum.lanes.end(),
              [&](const auto& a, const auto& b) { return place(a.lane) < place(b.lane); });
    return sum;
}

}  // namespace trace_ring::inline v1::reduce
#endif
