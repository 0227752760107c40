// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// One pass over a trace that counts what measures.hpp describes. It counts runs
/// of records, so that their common properties are looked up once for all of them.

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <trace_ring/exporter/text/span_length.hpp>
#include <trace_ring/record/field.hpp>
#include <trace_ring/reduce/item.hpp>
#include <trace_ring/reduce/item/record_view.hpp>
#include <trace_ring/reduce/span/pairs.hpp>
#include <trace_ring/reduce/tables.hpp>
#include <trace_ring/reduce/tables/dictionary.hpp>
#include <trace_ring/reduce/tables/writers.hpp>

#include "measures.hpp"

namespace trace_reduce::measure {

namespace exporter = trace_ring::exporter;

class pass {
public:
    static constexpr std::size_t most_groups = 10'000;
    static constexpr std::size_t most_groups_with_fields = 500;

    /// Both must outlive it.
    pass(const question& what, const reduce::tables& in)
        : what_(what),
          in_(in),
          by_(what.by == "thread"    ? by::thread
              : what.by == "lane"    ? by::lane
              : what.by == "process" ? by::process
              : what.by == "event"   ? by::event
              : what.by.empty()      ? by::none
                                     : by::field),
          by_field_(what.by_field()),
          groups_(what.fields ? most_groups_with_fields : most_groups) {}

    /// All of one lane, one event and one length, `first` and those after it.
    void records(const reduce::record_view& first, const reduce::record_run& rest) {
        if (!first.known()) {
            if (by_ != by::none) plain_group(first, 1 + rest.size());
            return;
        }
        plan& how = plan_of(first.type());
        event_measure* of_event = nullptr;
        if (how.any) {
            of_event = &measure_in(all_, first.type(), how);
            of_event->records += 1 + rest.size();
        }
        if (by_ == by::field) {
            one_by_field(first, how, of_event);
            for (const auto& each : rest) one_by_field(each, how, of_event);
            return;
        }
        event_measure* of_group = nullptr;
        if (by_ != by::none) {
            group& in = plain_group(first, 1 + rest.size());
            if (what_.fields) {
                of_group = &measure_in(in.events, first.type(), how);
                of_group->records += 1 + rest.size();
            }
        }
        if (!how.any) return;
        one(first, how, *of_event, of_group);
        for (const auto& each : rest) one(each, how, *of_event, of_group);
    }
    /// Something of this lane is missing: what was open may have ended there.
    void gap(const reduce::lane_info* lane) {
        if (lane != nullptr) open_.gap(*lane, [](const auto&) {});
    }
    /// After the last record: what was begun and did not end.
    void finish() {
        open_.for_each_open([this](const begun_span& each) { count_unpaired(each); });
    }

    [[nodiscard]] const event_measures& events() const noexcept { return all_; }
    [[nodiscard]] const groups& by_groups() const noexcept { return groups_; }
    /// The spans that took longest, at most as many as there are rows; the longest first, of equals
    /// the one that ended first.
    [[nodiscard]] const std::vector<ended_span>& slowest() const noexcept { return slowest_; }
    /// The measures of an event; null: it has no records.
    [[nodiscard]] const event_measure* of(const reduce::event_type* type) const {
        const auto at = type == nullptr ? all_.end() : all_.find(&type->whole());
        return at == all_.end() ? nullptr : &at->second;
    }

private:
    enum class by { none, thread, lane, process, event, field };

    /// What is wanted of an event, found out once.
    struct plan {
        bool made = false;
        bool any = false;
        bool durations = false;
        std::vector<bool> fields{};
        std::size_t first = 0;                      // in `fields`: of those that the record has
        std::size_t by = reduce::event_type::npos;  // field by which records are grouped
    };
    /// With its group, by a field's value, which the end may not have.
    using begun_span = reduce::begun_span<std::string>;

    [[nodiscard]] plan& plan_of(const reduce::event_type& type) {
        if (type.number >= plans_.size()) plans_.resize(type.number + 1);
        plan& how = plans_[type.number];
        if (how.made) return how;
        how.made = true;
        const auto wanted = [&](std::string_view field) {
            return what_.fields || std::any_of(what_.histograms.begin(), what_.histograms.end(),
                                               [&](const std::string& each) {
                                                   return matches_field(each, type.name, field);
                                               });
        };
        // The results of a span follow its fields.
        const auto& whole = type.whole();
        how.first = type.span != nullptr ? whole.fields.size() : 0;
        for (const auto* each : {&whole, whole.results}) {
            if (each == nullptr) continue;
            for (const auto& field : each->fields) how.fields.push_back(wanted(field.name));
        }
        how.durations = type.kind == trace_ring::event_kind::span;
        how.any = what_.fields || how.durations ||
                  std::find(how.fields.begin(), how.fields.end(), true) != how.fields.end();
        if (by_ == by::field) how.by = type.find_named(by_field_);
        return how;
    }
    [[nodiscard]] static event_measure& measure_in(event_measures& in,
                                                   const reduce::event_type& type,
                                                   const plan& how) {
        event_measure& of = in[&type.whole()];
        if (of.fields.empty() && !how.fields.empty()) {
            of.fields.resize(how.fields.size());
            for (std::size_t i = 0; i < how.fields.size(); ++i) {
                if (how.fields[i]) of.fields[i].emplace(*field_of(type.whole(), i));
            }
        }
        return of;
    }

    group& plain_group(const reduce::record_view& first, std::uint64_t records) {
        group& in = groups_.add(name_of_group(first), records);
        in.bytes += records * first.bytes();
        return in;
    }
    [[nodiscard]] std::string_view name_of_group(const reduce::record_view& record) {
        const reduce::lane_info& lane = record.lane();
        if (by_ == by::event) return record.known() ? record.name() : "(not in the dictionary)";
        // no count: a record without the field
        if (by_ == by::field) return "(none)";
        if (&lane == named_lane_) return group_name_;
        named_lane_ = &lane;
        group_name_.clear();
        if (by_ == by::lane) {
            group_name_ = std::to_string(lane.number);
        } else if (!lane.listed) {
            group_name_ = "(no longer listed)";
        } else if (by_ == by::process) {
            group_name_ = in_.process_text(lane);
        } else {
            group_name_ = in_.process_text(lane) + '/' + std::to_string(lane.thread);
            if (!lane.name.empty()) group_name_ += ' ' + lane.name;
        }
        return group_name_;
    }

    void one(const reduce::record_view& record, const plan& how, event_measure& of_event,
             event_measure* of_group) {
        add_fields(record, how, of_event, of_group);
        if (!how.durations) return;
        if (const auto span = pair(record, {})) add_span(record, *span, of_event, of_group);
    }
    static void add_fields(const reduce::record_view& record, const plan& how,
                           event_measure& of_event, event_measure* of_group) {
        std::size_t i = how.first;
        record.for_each_field([&](const reduce::field_info&, const reduce::field_value& value) {
            if (how.fields[i]) {
                of_event.fields[i]->add(value);
                if (of_group != nullptr) of_group->fields[i]->add(value);
            }
            ++i;
        });
    }

    void one_by_field(const reduce::record_view& record, const plan& how, event_measure* of_event) {
        key_.clear();
        const bool has = how.by != reduce::event_type::npos && record.has_fields();
        if (has) append_value(key_, record.field(how.by));
        std::optional<begun_span> span;
        if (how.durations) span = pair(record, has ? key_ : std::string());
        // The end of a span without fields is where its begin is.
        const bool from_begin = !has && span && !span->kept.empty();
        // no count: a record without the field
        group& in = groups_.add(from_begin ? span->kept : has ? key_ : std::string("(none)"));
        in.bytes += record.bytes();
        event_measure* of_group = nullptr;
        if (what_.fields) {
            of_group = &measure_in(in.events, record.type(), how);
            ++of_group->records;
        }
        if (of_event == nullptr) return;
        add_fields(record, how, *of_event, of_group);
        if (span) add_span(record, *span, *of_event, of_group);
    }
    static void append_value(std::string& out, const reduce::field_value& value) {
        if (value.is_text()) {
            out += value.text();
            return;
        }
        const bool scalar = value.form() == trace_ring::field_form::scalar;
        if (!scalar) out += '[';
        for (std::size_t i = 0; i < value.size() && out.size() < groups::longest; ++i) {
            if (i != 0) out += ' ';
            append_scalar(out, value.at(i));
        }
        if (!scalar) out += ']';
    }
    static void append_scalar(std::string& out, const reduce::field_value& value) {
        using trace_ring::field_type;
        char digits[64];
        const auto add = [&](auto number) {
            out.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
        };
        char word[20];
        if (value.type() == field_type::f32) {
            add(value.f32());
        } else if (value.type() == field_type::f64) {
            add(value.f64());
        } else {
            out += field_measure::name_of(value, word);
        }
        if (value.unit() != nullptr) out += value.unit()->suffix;
    }

    void count_unpaired(const begun_span& each) { ++all_[each.type].unpaired; }
    /// Begins are kept; for an end whose begin is known, that.
    [[nodiscard]] std::optional<begun_span> pair(const reduce::record_view& record,
                                                 std::string group) {
        const auto without_end = [this](const begun_span& each) { count_unpaired(each); };
        if (record.begins()) {
            open_.begin(record, std::move(group), without_end);
        } else if (record.ends()) {
            auto found = open_.end(record, without_end);
            if (found.begun && record.time() >= found.begun->time) return std::move(found.begun);
            if (found.begun) count_unpaired(*found.begun);
            auto& of = all_[&record.type().whole()];
            ++(found.not_nested ? of.not_nested : of.unpaired);
        }
        return std::nullopt;
    }
    void add_span(const reduce::record_view& end, const begun_span& span, event_measure& of_event,
                  event_measure* of_group) {
        const exporter::span_length length{end.time() - span.time, span.interval || end.interval()};
        add_duration(length, of_event);
        if (of_group != nullptr) add_duration(length, *of_group);
        note_slow(end, span, length);
    }
    void add_duration(const exporter::span_length& length, event_measure& into) const {
        into.durations.add(in_.time().known() ? length.ns(in_.time()) : length.ticks);
        if (length.interval) ++into.uncertain;
    }
    void note_slow(const reduce::record_view& end, const begun_span& span,
                   const exporter::span_length& length) {
        const std::uint64_t ticks = length.ticks;
        if (slowest_.size() >= what_.rows) {
            if (slowest_.empty() || ticks <= slowest_.back().ticks) return;
            slowest_.pop_back();
        }
        const auto at =
            std::upper_bound(slowest_.begin(), slowest_.end(), ticks,
                             [](std::uint64_t a, const ended_span& b) { return a > b.ticks; });
        slowest_.insert(at,
                        {span.type, ticks, span.time, length.interval, end.lane(), end.position()});
    }

    const question& what_;
    const reduce::tables& in_;
    by by_;
    std::string by_field_;
    std::vector<plan> plans_;  // by the event type's number
    std::vector<ended_span> slowest_;
    event_measures all_;
    groups groups_;
    reduce::span_pairs<std::string> open_;
    const reduce::lane_info* named_lane_ = nullptr;
    std::string group_name_;
    std::string key_;
};

}  // namespace trace_reduce::measure
