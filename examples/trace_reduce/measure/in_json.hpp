// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The measures, as JSON lines after the line of the plain statistics. The kinds are
/// - "field": one field of an event ("group" names it, if there is one), or the durations of a
///   span, whose field is null: count, and min, max, mean and percentiles, or the most frequent
///   values,
/// - "group": one group of --by; its value is null for all groups that are not listed,
/// - "histogram": its buckets hold numbers from `from` to below `to` (negative ones: down to, and
///   above), or one value each.

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

#include <trace_ring/exporter/json.hpp>
#include <trace_ring/exporter/text/append.hpp>
#include <trace_ring/record/field.hpp>
#include <trace_ring/reduce/tables/dictionary.hpp>

#include "histogram.hpp"
#include "in_text.hpp"
#include "measures.hpp"
#include "pass.hpp"

namespace trace_reduce::measure {

class json_report {
public:
    json_report(text_buffer& out, const question& what, std::string_view file, double seconds,
                bool in_ns)
        : out_(out), what_(what), seconds_(seconds), in_ns_(in_ns) {
        text_buffer name;
        trace_ring::exporter::impl::append_json_string(name, file);
        file_ = name.view();
    }

    void show(const pass& from) {
        if (what_.fields) {
            for (const auto& [type, of] : from.events()) show_event(*type, of, nullptr);
        }
        if (!what_.by.empty()) show_groups(from.by_groups());
        for (const auto& each : what_.histograms) {
            for (const auto& [type, of] : from.events()) show_histograms(*type, of, each);
        }
    }

private:
    void text(std::string_view value) {
        trace_ring::exporter::impl::append_json_string(out_, value);
    }
    template <class T>
    void member(std::string_view name, T value) {
        out_ += ",\"";
        out_ += name;
        out_ += "\":";
        trace_ring::exporter::impl::append_number(out_, value);
    }
    void real(std::string_view name, double value) {
        out_ += ",\"";
        out_ += name;
        out_ += "\":";
        trace_ring::exporter::impl::append_json_floating(out_, value);
    }
    void text_member(std::string_view name, std::string_view value) {
        out_ += ",\"";
        out_ += name;
        out_ += "\":";
        text(value);
    }
    void begin(std::string_view kind) {
        out_ += "{\"kind\":\"";
        out_ += kind;
        out_ += "\",\"file\":";
        out_ += file_;
    }
    void rate(std::uint64_t count) {
        if (seconds_ > 0) real("rate", static_cast<double>(count) / seconds_);
    }
    /// Integers as such, which %.0f shows whole.
    void number(std::string_view name, double value, numbers::kind kind) {
        if (kind == numbers::kind::floating) return real(name, value);
        out_ += ",\"";
        out_ += name;
        out_ += "\":";
        out_ += shown(value, kind);
    }

    void figures(const numbers& of) {
        member("count", of.count());
        if (of.not_numbers() != 0) member("nan", of.not_numbers());
        if (of.infinities() != 0) member("infinities", of.infinities());
        if (of.negative_infinities() != 0) {
            member("negative_infinities", of.negative_infinities());
        }
        if (of.count() == 0) return;
        if (of.what() == numbers::kind::natural) {
            member("min", of.natural().first);
            member("max", of.natural().second);
        } else if (of.what() == numbers::kind::integer) {
            member("min", of.integer().first);
            member("max", of.integer().second);
        } else {
            real("min", of.floating().first);
            real("max", of.floating().second);
        }
        real("mean", of.mean());
        constexpr const char* names[] = {"p50", "p90", "p99", "p999"};
        for (std::size_t i = 0; i < std::size(percentiles); ++i) {
            number(names[i], of.percentile(percentiles[i].share), of.what());
        }
    }
    void values(const words& all, std::string_view name) {
        member("different", all.exact() ? all.size() : most_words);
        out_ += all.exact() ? ",\"exact\":true,\"" : ",\"exact\":false,\"";
        out_ += name;
        out_ += "\":[";
        const char* between = "";
        for (const auto& each : all.top(what_.rows)) {
            out_ += between;
            between = ",";
            out_ += "{\"value\":";
            text(each.name);
            member("count", each.what->count);
            out_ += '}';
        }
        out_ += ']';
    }

    void show_event(const reduce::event_type& type, const event_measure& of,
                    const std::string_view* group) {
        const auto start = [&](const std::string* field) {
            begin("field");
            if (group != nullptr) text_member("group", *group);
            text_member("event", type.name);
            if (field == nullptr) {
                out_ += ",\"field\":null";
            } else {
                text_member("field", *field);
            }
        };
        for (std::size_t i = 0; i < of.fields.size(); ++i) {
            const reduce::field_info* const field = field_of(type, i);
            if (!of.fields[i] || field == nullptr) continue;
            start(&field->name);
            text_member("type", type_name(*field));
            if (field->unit != nullptr) text_member("unit", field->unit->suffix);
            rate(of.fields[i]->count());
            if (const auto* all = of.fields[i]->as_numbers()) {
                figures(*all);
            } else {
                member("count", of.fields[i]->count());
                values(*of.fields[i]->as_words(), "values");
            }
            out_ += "}\n";
        }
        if (type.kind != trace_ring::event_kind::span) return;
        start(nullptr);
        text_member("type", in_ns_ ? "ns" : "ticks");
        figures(of.durations);
        if (group == nullptr) member("spans", of.spans());  // as in the text
        member("uncertain", of.uncertain);
        member("unpaired", of.unpaired);
        member("not_nested", of.not_nested);
        out_ += "}\n";
    }

    void show_groups(const groups& all) {
        const auto show = [&](const std::string_view* name, std::uint64_t count,
                              std::uint64_t length, std::uint64_t missed) {
            begin("group");
            text_member("by", what_.by);
            if (name == nullptr) {
                out_ += ",\"value\":null";
            } else {
                text_member("value", *name);
            }
            member("records", count);
            member("bytes", length);
            rate(count);
            if (missed != 0) member("too_low_by_at_most", missed);
            out_ += "}\n";
        };
        const auto top = all.top(what_.rows);
        for (const auto& each : top) {
            show(&each.name, each.what->count, each.what->value.bytes, each.what->missed);
        }
        const unlisted_groups others(all, what_.rows);
        if (others.records != 0) show(nullptr, others.records, others.bytes, 0);
        if (!what_.fields) return;
        for (const auto& each : top) {
            for (const auto& [type, of] : each.what->value.events) {
                show_event(*type, of, &each.name);
            }
        }
    }

    void show_histograms(const reduce::event_type& type, const event_measure& of,
                         const std::string& wanted) {
        const auto start = [&](std::string_view field) {
            begin("histogram");
            text_member("event", type.name);
            text_member("field", field);
        };
        for (std::size_t i = 0; i < of.fields.size(); ++i) {
            const reduce::field_info* const field = field_of(type, i);
            if (!of.fields[i] || field == nullptr || !matches_field(wanted, type.name, field->name))
                continue;
            start(field->name);
            if (field->unit != nullptr) text_member("unit", field->unit->suffix);
            if (const auto* all = of.fields[i]->as_numbers()) {
                buckets(*all);
            } else {
                values(*of.fields[i]->as_words(), "buckets");
            }
            out_ += "}\n";
        }
        if (type.kind == trace_ring::event_kind::span &&
            matches_field(wanted, type.name, duration_name)) {
            start(duration_name);
            buckets(of.durations);
            out_ += "}\n";
        }
    }
    void buckets(const numbers& of) {
        out_ += ",\"buckets\":[";
        const char* between = "";
        for (const auto& each : what_.linear ? linear_bars(of) : log_bars(of)) {
            out_ += between;
            between = ",";
            out_ += "{\"from\":";
            trace_ring::exporter::impl::append_json_floating(out_, each.from);
            real("to", each.to);
            member("count", each.count);
            out_ += '}';
        }
        out_ += ']';
    }

    text_buffer& out_;
    const question& what_;
    double seconds_;
    bool in_ns_;
    std::string file_;
};

}  // namespace trace_reduce::measure
