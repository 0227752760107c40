// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The names of events and of their fields as the format has them. Attributes of one message must
/// have different names, which are not empty, and all names must be UTF-8.
///
/// - Bytes that are not UTF-8 become U+FFFD. A duration has its unit in its name, `latency [ms]`.
/// - A field without a name is `unnamed`. The second field of one name, or one with the name of an
///   attribute that the writer adds, has `_2` behind it, and so on.
/// - A field of a span's end with the name of one of its begin has `end.` before it.

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <trace_ring/exporter/text/append.hpp>
#include <trace_ring/reduce/tables/event_type.hpp>

namespace otlp {

namespace reduce = trace_ring::reduce;

/// The names of the attributes that the writer adds.
namespace key {
inline constexpr std::string_view lane = "trace_ring.lane", position = "trace_ring.position",
                                  thread = "thread.id", thread_name = "thread.name",
                                  depth = "trace_ring.depth", interval = "trace_ring.interval",
                                  latest = "trace_ring.latest", cut = "trace_ring.cut",
                                  results = "trace_ring.results", fault = "trace_ring.fault",
                                  raw = "trace_ring.raw", id = "trace_ring.id",
                                  began_lane = "trace_ring.began.lane",
                                  began_position = "trace_ring.began.position",
                                  ticks = "trace_ring.ticks", time = "trace_ring.time",
                                  duration = "trace_ring.duration", span = "trace_ring.span";
// Of the end of a span, if both ends have them.
inline constexpr std::string_view end_lane = "trace_ring.end.lane",
                                  end_position = "trace_ring.end.position",
                                  end_thread = "trace_ring.end.thread.id",
                                  end_thread_name = "trace_ring.end.thread.name",
                                  end_interval = "trace_ring.end.interval",
                                  end_latest = "trace_ring.end.latest",
                                  end_cut = "trace_ring.end.cut",
                                  end_fault = "trace_ring.end.fault",
                                  end_raw = "trace_ring.end.raw", end_time = "trace_ring.end.time",
                                  end_depth = "trace_ring.end.depth";
inline constexpr std::string_view all[] = {lane,         position,
                                           thread,       thread_name,
                                           depth,        interval,
                                           latest,       cut,
                                           results,      fault,
                                           raw,          id,
                                           began_lane,   began_position,
                                           ticks,        time,
                                           duration,     span,
                                           end_lane,     end_position,
                                           end_thread,   end_thread_name,
                                           end_interval, end_latest,
                                           end_cut,      end_fault,
                                           end_raw,      end_time,
                                           end_depth};
// Of losses and clock jumps, which have no fields.
inline constexpr std::string_view cause = "trace_ring.cause", count = "trace_ring.count",
                                  offset = "trace_ring.offset", advice = "trace_ring.advice",
                                  from = "trace_ring.from", from_ticks = "trace_ring.from_ticks",
                                  step = "trace_ring.step", anew = "trace_ring.anew";
}  // namespace key

/// Text with U+FFFD in place of bytes that are not UTF-8.
[[nodiscard]] inline std::string valid_text(std::string_view text) {
    std::string made;
    while (!text.empty()) {
        const std::size_t length = trace_ring::exporter::impl::utf8_length(text);
        made += length == 0 ? std::string_view("\xEF\xBF\xBD") : text.substr(0, length);
        text.remove_prefix(length == 0 ? 1 : length);
    }
    return made;
}

/// Makes the names of each event type once. Memory: the names of each type whose records came.
class event_keys {
public:
    using flow_choice = std::function<bool(const reduce::event_type&, const reduce::field_info&)>;

    /// `is_flow` says which fields are flows; empty: those that the dictionary declares.
    explicit event_keys(flow_choice is_flow = {}) : is_flow_(std::move(is_flow)) {}

    struct names {
        std::string event{};
        std::vector<std::string> fields{};
        std::vector<std::string> ends{};   ///< the fields' names in the span that a record ends
        std::vector<std::size_t> flows{};  ///< the fields that are flows
    };
    /// `type` must outlive this.
    [[nodiscard]] const names& of(const reduce::event_type& type) {
        if (&type == last_type_) return *last_;
        auto& made = all_[&type];
        if (made.event.empty()) make(type, made);
        last_type_ = &type;
        last_ = &made;  // elements of the map do not move
        return made;
    }

private:
    using used = std::unordered_set<std::string_view>;

    void make(const reduce::event_type& type, names& made) const {
        made.event = valid_text(type.name);
        if (made.event.empty()) made.event = "unnamed";
        used taken(std::begin(key::all), std::end(key::all));
        add(type, taken, {}, made.fields);
        used taken_by_begin(std::begin(key::all), std::end(key::all));
        std::vector<std::string> begin;
        add(type.whole(), taken_by_begin, {}, begin);
        const used of_begin(begin.begin(), begin.end());
        add(type, taken_by_begin, of_begin, made.ends);
        for (std::size_t i = 0; i < type.fields.size(); ++i) {
            const auto& field = type.fields[i];
            if (is_flow_ ? is_flow_(type, field) : field.flow) made.flows.push_back(i);
        }
    }
    static void add(const reduce::event_type& type, used& taken, const used& of_begin,
                    std::vector<std::string>& to) {
        to.reserve(type.fields.size());  // `taken` refers to them
        for (const auto& field : type.fields) {
            std::string name = valid_text(field.shown_name());
            if (name.empty()) name = "unnamed";
            if (of_begin.contains(name)) name = "end." + name;
            std::string unique = name;
            for (unsigned i = 2; taken.contains(unique); ++i) {
                unique = name + '_' + std::to_string(i);
            }
            to.push_back(std::move(unique));
            taken.insert(to.back());
        }
    }

    flow_choice is_flow_;
    std::unordered_map<const reduce::event_type*, names> all_{};
    const reduce::event_type* last_type_ = nullptr;
    const names* last_ = nullptr;
};

}  // namespace otlp
