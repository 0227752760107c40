// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A trace in numbers as comma-separated values: one header row, then a row for each thing that is
/// counted. Cells that do not apply are empty; text is as in exporter/csv.hpp. By `kind`
/// - trace: the whole; event: one event, with `count` of spans each once, and `total` from the
///   trace's own counter; lane: one lane
/// - slowest: a span that took longest: `from_ns` is its begin (ticks if the clock is not known),
///   `duration` its length, and lane and thread where it ended
/// - field: figures of a field's numbers, or of spans' durations (field `duration`, with `unit`);
///   value: one of its most frequent values and how often it came
/// - bucket: of a histogram, from `from` to below `to`, or one `value`
/// - group: records of one value of --by; an empty `value` stands for all others

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <trace_ring/exporter/json.hpp>
#include <trace_ring/reduce/trace_file.hpp>

#include "exporting/csv.hpp"
#include "measure/histogram.hpp"
#include "measure/in_text.hpp"
#include "measure/measures.hpp"
#include "measure/pass.hpp"
#include "statistics.hpp"

namespace trace_reduce::in_csv {

class statistics_rows {
public:
    /// The header row, before those of all files.
    static void show_header(text_buffer& out) {
        const char* between = "";
        for (const std::string_view name : names) {
            out += between;
            out += name;
            between = ",";
        }
        out += "\r\n";
    }

    statistics_rows(text_buffer& out, const reduce::trace_file& file, const measure::question& what)
        : out_(out), file_(file), what_(what) {}

    void show(const reduce::trace_statistics& sum, const measure::pass& measured) {
        if (!what_.only_groups()) show_plain(sum, measured);
        if (what_.fields) {
            for (const auto& [type, of] : measured.events()) show_fields(*type, of, nullptr);
        }
        if (!what_.by.empty()) show_groups(measured.by_groups());
        for (const auto& glob : what_.histograms) {
            for (const auto& [type, of] : measured.events()) show_histograms(*type, of, glob);
        }
    }

private:
    enum class column : std::size_t {
        kind,
        file,
        event,
        field,
        unit,
        by,
        value,
        lane,
        pid,
        thread,
        name,
        count,
        records,
        bytes,
        total,
        lost,
        duration,
        from_ns,
        to_ns,
        min,
        max,
        mean,
        p50,
        p90,
        p99,
        p999,
        from,
        to,
        columns
    };
    static constexpr auto columns = static_cast<std::size_t>(column::columns);
    static constexpr std::array<std::string_view, columns> names{
        "kind",  "file", "event",    "field",   "unit",  "by",      "value",
        "lane",  "pid",  "thread",   "name",    "count", "records", "bytes",
        "total", "lost", "duration", "from_ns", "to_ns", "min",     "max",
        "mean",  "p50",  "p90",      "p99",     "p999",  "from",    "to"};

    // --- Cells ---
    void text(column at, std::string_view what) {
        text_buffer cell;
        exporting::impl::append_csv_text(cell, what);
        cells_[static_cast<std::size_t>(at)] = cell.view();
    }
    template <class T>
    void number(column at, T what) {
        text_buffer cell;
        exporter::impl::append_number(cell, what);
        cells_[static_cast<std::size_t>(at)] = cell.view();
    }
    void real(column at, double what) {
        text_buffer cell;
        exporter::impl::append_floating(cell, what);
        cells_[static_cast<std::size_t>(at)] = cell.view();
    }
    void end_row(std::string_view what) {
        cells_[0] = what;
        text(column::file, file_.name());
        for (std::size_t i = 0; i < cells_.size(); ++i) {
            if (i != 0) out_ += ',';
            out_ += cells_[i];
            cells_[i].clear();
        }
        out_ += "\r\n";
    }
    void time(column at, std::uint64_t ticks) {
        const auto& line = file_.time();
        line.known() ? number(at, line.realtime_ns(ticks)) : number(at, ticks);
    }
    void thread_of(const reduce::lane_info& of) {
        number(column::lane, of.number);
        if (!of.listed) return;
        number(column::pid, of.pid);
        number(column::thread, of.thread);
        text(column::name, of.name);
    }
    [[nodiscard]] const char* unit_of_time() const noexcept {
        return file_.time().known() ? "ns" : "ticks";
    }

    // --- Rows ---
    void show_plain(const reduce::trace_statistics& sum, const measure::pass& measured) {
        number(column::records, sum.records);
        number(column::bytes, sum.bytes);
        number(column::lost, sum.lost.total());
        if (sum.records != 0) {
            time(column::from_ns, sum.first_time);
            time(column::to_ns, sum.last_time);
        }
        end_row("trace");
        for (const auto& each : sum.events) {
            if (each.type != nullptr) text(column::event, each.type->name);
            number(column::count, count_of(each, measured));
            number(column::records, each.records);
            number(column::bytes, each.bytes);
            if (each.total) number(column::total, *each.total);
            end_row("event");
        }
        for (const auto& each : sum.lanes) {
            if (each.lane != nullptr) thread_of(*each.lane);
            number(column::records, each.records);
            number(column::bytes, each.bytes);
            number(column::lost, each.lost.total());
            end_row("lane");
        }
        for (const auto& each : measured.slowest()) {
            text(column::event, each.type->name);
            text(column::unit, unit_of_time());
            if (file_.time().known()) {
                real(column::duration, file_.time().ns(static_cast<double>(each.ticks)));
            } else {
                number(column::duration, each.ticks);
            }
            time(column::from_ns, each.begun);
            thread_of(each.lane);
            end_row("slowest");
        }
    }

    void show_figures(const measure::numbers& of) {
        number(column::count, of.count());
        if (of.count() == 0) return;
        const auto cell = [this](column at, std::string shown) {
            cells_[static_cast<std::size_t>(at)] = std::move(shown);
        };
        cell(column::min, measure::shown_least(of, false));
        cell(column::max, measure::shown_least(of, true));
        real(column::mean, of.mean());
        constexpr column places[] = {column::p50, column::p90, column::p99, column::p999};
        for (std::size_t i = 0; i < std::size(places); ++i) {
            cell(places[i],
                 measure::shown(of.percentile(measure::percentiles[i].share), of.what()));
        }
    }
    /// Which event, which field of it, and of which group alone.
    void place(const reduce::event_type& type, std::string_view of_field, std::string_view in_unit,
               const std::string_view* group) {
        text(column::event, type.name);
        text(column::field, of_field);
        if (!in_unit.empty()) text(column::unit, in_unit);
        if (group == nullptr) return;
        text(column::by, what_.by);
        text(column::value, *group);
    }
    void show_fields(const reduce::event_type& type, const measure::event_measure& of,
                     const std::string_view* group) {
        for (std::size_t i = 0; i < of.fields.size(); ++i) {
            const auto* const one = measure::field_of(type, i);
            if (!of.fields[i] || one == nullptr) continue;
            const std::string_view in_unit = one->unit == nullptr ? "" : one->unit->suffix;
            place(type, one->name, in_unit, group);
            if (const auto* all = of.fields[i]->as_numbers()) {
                show_figures(*all);
                end_row("field");
                continue;
            }
            number(column::count, of.fields[i]->count());
            end_row("field");
            if (group != nullptr) continue;
            for (const auto& each : of.fields[i]->as_words()->top(what_.rows)) {
                place(type, one->name, in_unit, nullptr);
                text(column::value, each.name);
                number(column::count, each.what->count);
                end_row("value");
            }
        }
        if (type.kind != trace_ring::event_kind::span) return;
        place(type, measure::duration_name, unit_of_time(), group);
        show_figures(of.durations);
        end_row("field");
    }

    void show_groups(const measure::groups& all) {
        const auto top = all.top(what_.rows);
        for (const auto& each : top) {
            text(column::by, what_.by);
            text(column::value, each.name);
            number(column::records, each.what->count);
            number(column::bytes, each.what->value.bytes);
            end_row("group");
        }
        const measure::unlisted_groups others(all, what_.rows);
        if (others.records != 0) {
            text(column::by, what_.by);
            number(column::records, others.records);
            number(column::bytes, others.bytes);
            end_row("group");
        }
        if (!what_.fields) return;
        for (const auto& each : top) {
            const std::string_view group = each.name;
            for (const auto& [type, of] : each.what->value.events) show_fields(*type, of, &group);
        }
    }

    void show_histograms(const reduce::event_type& type, const measure::event_measure& of,
                         const std::string& wanted) {
        for (std::size_t i = 0; i < of.fields.size(); ++i) {
            const auto* const one = measure::field_of(type, i);
            if (!of.fields[i] || one == nullptr ||
                !measure::matches_field(wanted, type.name, one->name)) {
                continue;
            }
            const std::string_view in_unit = one->unit == nullptr ? "" : one->unit->suffix;
            if (const auto* all = of.fields[i]->as_numbers()) {
                show_buckets(type, one->name, in_unit, *all);
                continue;
            }
            for (const auto& each : of.fields[i]->as_words()->top(what_.rows)) {
                place(type, one->name, in_unit, nullptr);
                text(column::value, each.name);
                number(column::count, each.what->count);
                end_row("bucket");
            }
        }
        if (type.kind == trace_ring::event_kind::span &&
            measure::matches_field(wanted, type.name, measure::duration_name)) {
            show_buckets(type, measure::duration_name, unit_of_time(), of.durations);
        }
    }
    void show_buckets(const reduce::event_type& type, std::string_view of_field,
                      std::string_view in_unit, const measure::numbers& of) {
        for (const auto& each : what_.linear ? measure::linear_bars(of) : measure::log_bars(of)) {
            place(type, of_field, in_unit, nullptr);
            real(column::from, each.from);
            real(column::to, each.to);
            number(column::count, each.count);
            end_row("bucket");
        }
    }

    text_buffer& out_;
    const reduce::trace_file& file_;
    const measure::question& what_;
    std::array<std::string, columns> cells_{};
};

}  // namespace trace_reduce::in_csv
