// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What was measured, as tables and bars.

#include <algorithm>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <trace_ring/exporter/text/append.hpp>
#include <trace_ring/record/field.hpp>
#include <trace_ring/reduce/tables/dictionary.hpp>

#include "../../counted.hpp"
#include "histogram.hpp"
#include "measures.hpp"
#include "pass.hpp"

namespace trace_reduce::measure {

using trace_ring::exporter::text_buffer;

/// The printed percentiles, and their names.
struct told_percentile {
    double share;
    const char* name;
};
inline constexpr told_percentile percentiles[] = {
    {0.5, "50%"}, {0.9, "90%"}, {0.99, "99%"}, {0.999, "99.9%"}};

/// Formats a number for people. The greatest integers are no doubles: the next double is one more,
/// which none of these numbers is.
[[nodiscard]] inline std::string shown(double value, numbers::kind kind) {
    if (kind == numbers::kind::natural && value >= 0x1p64)
        return std::to_string(std::numeric_limits<std::uint64_t>::max());
    if (kind == numbers::kind::integer && value >= 0x1p63)
        return std::to_string(std::numeric_limits<std::int64_t>::max());
    char text[400];
    const int length =
        std::snprintf(text, sizeof text, kind == numbers::kind::floating ? "%.6g" : "%.0f", value);
    return {text, static_cast<std::size_t>(std::max(length, 0))};
}
[[nodiscard]] inline std::string shown_least(const numbers& of, bool greatest) {
    const auto pick = [greatest](auto pair) { return greatest ? pair.second : pair.first; };
    switch (of.what()) {
        case numbers::kind::natural:
            return std::to_string(pick(of.natural()));
        case numbers::kind::integer:
            return std::to_string(pick(of.integer()));
        case numbers::kind::floating:
            break;
    }
    return shown(pick(of.floating()), numbers::kind::floating);
}
[[nodiscard]] inline std::string type_name(const reduce::field_info& field) {
    using trace_ring::field_form;
    constexpr const char* names[] = {"?",   "u8",  "u16", "u32", "u64",  "i8",   "i16",
                                     "i32", "i64", "f32", "f64", "bool", "char", "address"};
    const auto type = static_cast<std::size_t>(field.type);
    if (field.type == trace_ring::field_type::character && field.form != field_form::scalar) {
        return "text";
    }
    std::string name = field.values != nullptr   ? "enum"
                       : type < std::size(names) ? names[type]
                                                 : "?";
    if (field.form != field_form::scalar) name += "[]";
    return name;
}

/// Characters, of text without control characters.
[[nodiscard]] inline std::size_t shown_width(std::string_view text) noexcept {
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
        return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
    }));
}

class text_report {
public:
    /// `columns` that lines should fit in; of `records` in `seconds` (0: not known) in all.
    text_report(text_buffer& out, const question& what, std::size_t columns, std::uint64_t records,
                double seconds, bool in_ns)
        : out_(out),
          what_(what),
          columns_(columns),
          records_(records),
          seconds_(seconds),
          unit_(in_ns ? "ns" : "ticks") {}

    void show(const pass& from) {
        if (what_.fields) show_events(from.events(), "");
        if (!what_.by.empty()) show_groups(from.by_groups());
        for (const auto& each : what_.histograms) show_histograms(from.events(), each);
    }

private:
    using row = std::vector<std::string>;

    static std::string escaped(std::string_view text, char quote = 0) {
        text_buffer out;
        if (quote != 0) out += quote;
        trace_ring::exporter::impl::append_escaped(out, text, quote);
        if (quote != 0) out += quote;
        return std::string(out.view());
    }
    [[nodiscard]] std::string rate(std::uint64_t records) const {
        if (!(seconds_ > 0)) return "";
        return ", " + shown(static_cast<double>(records) / seconds_, numbers::kind::natural) + "/s";
    }
    [[nodiscard]] static std::string percent(std::uint64_t part, std::uint64_t all) {
        char text[32];
        (void)std::snprintf(
            text, sizeof text, "%.1f%%",
            all == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(all));
        return text;
    }

    /// Columns as wide as their widest word; the first two to the left, the others to the right.
    void table(const std::vector<row>& rows, std::string_view indent) {
        std::vector<std::size_t> widths;
        for (const auto& each : rows) {
            if (each.size() < 3) continue;  // a separate line
            widths.resize(std::max(widths.size(), each.size()));
            for (std::size_t i = 0; i < each.size(); ++i) {
                widths[i] = std::max(widths[i], shown_width(each[i]));
            }
        }
        for (const auto& each : rows) {
            out_ += indent;
            if (each.size() < 3) {
                for (const auto& word : each) out_ += word;
                out_ += '\n';
                continue;
            }
            for (std::size_t i = 0; i < each.size(); ++i) {
                // In columns of the terminal, not bytes: names are UTF-8.
                const std::string pad(widths[i] - shown_width(each[i]), ' ');
                if (i != 0) out_ += "  ";
                if (i >= 2) out_ += pad;
                out_ += each[i];
                if (i < 2) out_ += pad;
            }
            out_ += '\n';
        }
    }

    [[nodiscard]] row numbers_row(std::string name, std::string type, const numbers& of) const {
        row cells{std::move(name), std::move(type), std::to_string(of.count())};
        if (of.count() == 0) {
            cells.resize(6 + std::size(percentiles), "-");
            return cells;
        }
        cells.push_back(shown_least(of, false));
        cells.push_back(shown_least(of, true));
        cells.push_back(shown(of.mean(), numbers::kind::floating));
        for (const auto& each : percentiles) {
            cells.push_back(shown(of.percentile(each.share), of.what()));
        }
        return cells;
    }
    void add_apart(std::vector<row>& rows, const numbers& of) const {
        std::string apart;
        const auto add = [&](const char* name, std::uint64_t count) {
            if (count == 0) return;
            apart += apart.empty() ? "    not in these figures: " : ", ";
            apart += std::to_string(count) + ' ' + name;
        };
        add("NaN", of.not_numbers());
        add("infinite", of.infinities());
        add("negatively infinite", of.negative_infinities());
        if (!apart.empty()) rows.push_back({apart});
    }
    void add_words(std::vector<row>& rows, const field_measure& of, char quote) const {
        const words& all = *of.as_words();
        for (const auto& each : all.top(what_.rows)) {
            std::string line = "    " + percent(each.what->count, of.count());
            line.insert(line.begin() + 4, line.size() < 10 ? 10 - line.size() : 0, ' ');
            rows.push_back(
                {line + "  " + std::to_string(each.what->count) + "  ", escaped(each.name, quote)});
        }
    }

    void show_events(const event_measures& events, std::string_view indent) {
        std::vector<const event_measures::value_type*> order;
        for (const auto& each : events) order.push_back(&each);
        std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
            return a->second.records != b->second.records ? a->second.records > b->second.records
                                                          : a->first->number < b->first->number;
        });
        // Of a group it is not known how many spans have lost an end.
        for (const auto* each : order) {
            const bool counts_spans =
                indent.empty() && each->first->kind == trace_ring::event_kind::span;
            show_event(*each->first, each->second, indent, counts_spans);
        }
    }
    void show_event(const reduce::event_type& type, const event_measure& of,
                    std::string_view indent, bool counts_spans) {
        out_ += '\n';
        out_ += indent;
        out_ += escaped(type.name);
        out_ += ": ";
        if (counts_spans) {
            out_ += std::to_string(of.spans());
            out_ += of.spans() == 1 ? " span" : " spans";
            out_ += rate(of.spans());
            out_ += " (";
        }
        out_ += std::to_string(of.records);
        out_ += of.records == 1 ? " record" : " records";
        out_ += counts_spans ? ")" : rate(of.records);
        out_ += '\n';
        std::vector<row> rows{{"  field", "type", "count", "min", "max", "mean"}};
        for (const auto& each : percentiles) rows[0].emplace_back(each.name);
        for (std::size_t i = 0; i < of.fields.size(); ++i) {
            if (!of.fields[i] || field_of(type, i) == nullptr) continue;
            const auto& field = *field_of(type, i);
            const std::string name = "  " + escaped(field.shown_name());
            if (const auto* all = of.fields[i]->as_numbers()) {
                rows.push_back(numbers_row(name, type_name(field), *all));
                add_apart(rows, *all);
                continue;
            }
            const auto* all = of.fields[i]->as_words();
            row cells{name, type_name(field), std::to_string(of.fields[i]->count())};
            cells.push_back(all->exact() ? std::to_string(all->size())
                                         : ">" + std::to_string(most_words));
            cells.emplace_back("different");
            rows.push_back(std::move(cells));
            const bool text = field.type == trace_ring::field_type::character;
            add_words(rows, *of.fields[i], text ? '"' : '\0');
        }
        if (type.kind == trace_ring::event_kind::span) {
            rows.push_back(numbers_row("  (duration)", unit_, of.durations));
            if (of.uncertain != 0) {
                rows.push_back({"    between readings of a sampled clock: " +
                                std::to_string(of.uncertain) + " of them"});
            }
            if (of.unpaired != 0) {
                rows.push_back({"    without the other end: " + std::to_string(of.unpaired)});
            }
            if (of.not_nested != 0) {
                rows.push_back({"    not nested, so not known which is whose: " +
                                std::to_string(of.not_nested)});
            }
        }
        if (rows.size() > 1) table(rows, indent);
    }

    void show_groups(const groups& all) {
        const auto top = all.top(what_.rows);
        std::vector<row> rows{
            {"by " + escaped(what_.by), "", "records", "share", "rate/s", "bytes"}};
        std::uint64_t missed = 0;
        const auto add = [&](std::string name, std::uint64_t count, std::uint64_t bytes) {
            rows.push_back(
                {std::move(name), "", std::to_string(count), percent(count, records_),
                 seconds_ > 0 ? shown(static_cast<double>(count) / seconds_, numbers::kind::natural)
                              : "",
                 std::to_string(bytes)});
        };
        for (const auto& each : top) {
            add(escaped(each.name), each.what->count, each.what->value.bytes);
            missed = std::max(missed, each.what->missed);
        }
        const unlisted_groups others(all, what_.rows);
        if (others.records != 0) {
            add(all.exact() ? "(" + counted(all.size() - top.size(), "other", "others") + ")"
                            : "(all others)",
                others.records, others.bytes);
        }
        out_ += '\n';
        table(rows, "");
        if (!all.exact()) {
            out_ += "more different values than are kept: what is shown may be ";
            out_ += counted(missed, "record", "records") + " too low\n";
        }
        if (!what_.fields) return;
        for (const auto& each : top) {
            out_ += '\n';
            out_ += escaped(what_.by);
            out_ += ' ';
            out_ += escaped(each.name);
            out_ += ":\n";
            show_events(each.what->value.events, "  ");
        }
    }

    void show_histograms(const event_measures& events, const std::string& wanted) {
        bool any = false;
        for (const auto& [type, of] : events) {
            for (std::size_t i = 0; i < of.fields.size(); ++i) {
                const reduce::field_info* const field = field_of(*type, i);
                if (!of.fields[i] || field == nullptr ||
                    !matches_field(wanted, type->name, field->name))
                    continue;
                any = true;
                if (const auto* all = of.fields[i]->as_numbers()) {
                    show_bars(*type, field->shown_name(), *all);
                } else {
                    show_word_bars(*type, *field, *of.fields[i]);
                }
            }
            if (type->kind == trace_ring::event_kind::span &&
                matches_field(wanted, type->name, duration_name)) {
                any = true;
                show_bars(*type, std::string(duration_name) + ", " + unit_, of.durations);
            }
        }
        if (!any) {
            out_ += '\n';
            out_ += escaped(wanted);
            out_ += ": no records with such a field\n";
        }
    }
    void head(const reduce::event_type& type, std::string_view field, std::uint64_t count) {
        out_ += '\n';
        out_ += escaped(type.name);
        out_ += '.';
        out_ += escaped(field);
        out_ += ": ";
        out_ += std::to_string(count);
        out_ += count == 1 ? " value\n" : " values\n";
    }
    void show_bars(const reduce::event_type& type, std::string_view field, const numbers& of) {
        head(type, field, of.count());
        const auto bars = what_.linear ? linear_bars(of) : log_bars(of);
        std::vector<row> rows;
        std::uint64_t longest = 0;
        for (const auto& each : bars) longest = std::max(longest, each.count);
        for (const auto& each : bars) {
            rows.push_back({shown_range(each, of.what()), std::to_string(each.count)});
        }
        bar_table(rows, bars, longest);
    }
    [[nodiscard]] static std::string shown_range(const bucket& of, numbers::kind kind) {
        if (of.from == of.to) return "0";
        if (kind == numbers::kind::floating) {
            const double low = std::min(of.from, of.to);
            return shown(low, kind) + " .. " + shown(std::max(of.from, of.to), kind);
        }
        // Integers: the least and the greatest that it holds.
        const double last = of.from < of.to ? of.to - 1 : of.to + 1;
        const double low = std::min(of.from, last);
        const double high = std::max(of.from, last);
        return low == high ? shown(low, kind) : shown(low, kind) + " .. " + shown(high, kind);
    }
    void show_word_bars(const reduce::event_type& type, const reduce::field_info& field,
                        const field_measure& of) {
        head(type, field.name, of.count());
        const bool text = field.type == trace_ring::field_type::character;
        std::vector<row> rows;
        std::vector<bucket> bars;
        std::uint64_t rest = of.count();
        for (const auto& each : of.as_words()->top(what_.rows)) {
            std::string name = escaped(each.name, text ? '"' : '\0');
            rows.push_back({std::move(name), std::to_string(each.what->count)});
            bars.push_back({0, 0, each.what->count});
            rest -= std::min(rest, each.what->count);
        }
        const std::uint64_t longest = bars.empty() ? 0 : bars.front().count;
        if (rest != 0) {
            rows.push_back({"(others)", std::to_string(rest)});
            bars.push_back({0, 0, 0});
        }
        bar_table(rows, bars, longest);
    }
    void bar_table(const std::vector<row>& rows, const std::vector<bucket>& bars,
                   std::uint64_t longest) {
        std::size_t names = 0;
        std::size_t counts = 0;
        for (const auto& each : rows) {
            names = std::max(names, shown_width(each[0]));
            counts = std::max(counts, each[1].size());
        }
        const std::size_t taken = 2 + names + 2 + counts + 2;
        const std::size_t room = columns_ > taken + 10 ? columns_ - taken : 10;
        for (std::size_t i = 0; i < rows.size(); ++i) {
            out_ += "  ";
            out_ += std::string(names - shown_width(rows[i][0]), ' ');
            out_ += rows[i][0];
            out_ += "  ";
            out_ += std::string(counts - rows[i][1].size(), ' ');
            out_ += rows[i][1];
            const std::size_t length = bar_length(bars[i].count, longest, room);
            if (length != 0) out_ += "  ";
            out_ += std::string(length, '#');
            out_ += '\n';
        }
    }

    text_buffer& out_;
    const question& what_;
    std::size_t columns_;
    std::uint64_t records_;
    double seconds_;
    std::string unit_;
};

}  // namespace trace_reduce::measure
