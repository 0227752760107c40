// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What is counted of fields, spans and groups of records; pass.hpp counts it.
/// - Fields: numbers.hpp for numbers, of arrays for each element; frequent.hpp for texts, single
///   characters, booleans, addresses and enumerations, of which a mean says nothing.
/// - Spans: span/pairs.hpp of the library pairs their ends. Ends without the other one are counted,
///   and so are spans that did not nest, if no record says which end belongs to which begin.
/// - Groups: by thread, lane, process, event, or the value of the field of a name.
/// Memory is bounded: `most_words` here, `most_groups` in pass.hpp, and of spans that are open.

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <trace_ring/glob.hpp>
#include <trace_ring/record/field.hpp>
#include <trace_ring/reduce/item/record_view.hpp>
#include <trace_ring/reduce/tables/dictionary.hpp>
#include <trace_ring/reduce/trace_file.hpp>

#include "frequent.hpp"
#include "numbers.hpp"

namespace trace_reduce::measure {

namespace reduce = trace_ring::reduce;

/// What is asked beyond the plain statistics. Spans are paired in any case.
struct question {
    bool fields = false;                    ///< of all events' fields and spans
    std::string by;                         ///< groups: thread, lane, process, event, or a field
    std::vector<std::string> histograms{};  ///< globs that match EVENT.FIELD
    bool linear = false;                    ///< buckets of equal width, not of equal ratio
    std::size_t rows = 10;                  ///< of groups and values

    static constexpr std::string_view groupings[] = {"thread", "lane", "process", "event"};

    /// The field by whose values groups are made; empty: there are no groups, or other ones.
    [[nodiscard]] std::string_view by_field() const noexcept {
        if (std::find(std::begin(groupings), std::end(groupings), by) != std::end(groupings)) {
            return {};
        }
        return by.starts_with("field:") ? std::string_view(by).substr(6) : std::string_view(by);
    }
    [[nodiscard]] bool any() const noexcept { return fields || !by.empty() || !histograms.empty(); }
    /// Only groups are wanted: the plain statistics are left out.
    [[nodiscard]] bool only_groups() const noexcept { return !by.empty() && !values(); }
    /// It is about values, and so about how long spans took.
    [[nodiscard]] bool values() const noexcept { return fields || !histograms.empty(); }
};

/// Whether a glob such as `order.*.id` means this field of this event.
[[nodiscard]] inline bool matches_field(std::string_view wanted, std::string_view event,
                                        std::string_view field) {
    std::string name(event);
    name += '.';
    name += field;
    return trace_ring::matches_glob(wanted, name);
}
/// The additional field of a span's events.
inline constexpr std::string_view duration_name = "duration";

using words = frequent<nothing>;
inline constexpr std::size_t most_words = 1000;

/// The values of one field.
class field_measure {
public:
    explicit field_measure(const reduce::field_info& field)
        : values_(made_for(field)), text_(is_text(field)) {}

    [[nodiscard]] const numbers* as_numbers() const noexcept {
        return std::get_if<numbers>(&values_);
    }
    [[nodiscard]] const words* as_words() const noexcept { return std::get_if<words>(&values_); }
    [[nodiscard]] std::uint64_t count() const noexcept { return count_; }

    void add(const reduce::field_value& value) {
        if (text_) {
            ++count_;
            std::get<words>(values_).add(value.text());
            return;
        }
        count_ += value.size();
        for (std::size_t i = 0; i < value.size(); ++i) add_one(value.at(i));
    }
    void add(const field_measure& other) {
        count_ += other.count_;
        if (auto* const all = std::get_if<numbers>(&values_)) {
            if (const auto* more = other.as_numbers()) all->add(*more);
        } else if (const auto* more = other.as_words()) {
            std::get<words>(values_).add(*more);
        }
    }

private:
    [[nodiscard]] static bool is_text(const reduce::field_info& field) noexcept {
        return field.type == trace_ring::field_type::character &&
               field.form != trace_ring::field_form::scalar;
    }
    [[nodiscard]] static std::variant<numbers, words> made_for(const reduce::field_info& field) {
        using trace_ring::field_type;
        if (field.values != nullptr) return words(most_words);
        switch (field.type) {
            case field_type::u8:
            case field_type::u16:
            case field_type::u32:
            case field_type::u64:
                return numbers(numbers::kind::natural);
            case field_type::i8:
            case field_type::i16:
            case field_type::i32:
            case field_type::i64:
                return numbers(numbers::kind::integer);
            case field_type::f32:
            case field_type::f64:
                return numbers(numbers::kind::floating);
            case field_type::boolean:
            case field_type::character:
            case field_type::address:
                break;
        }
        return words(most_words);
    }
    void add_one(const reduce::field_value& value) {
        if (auto* const all = std::get_if<numbers>(&values_)) {
            if (all->what() == numbers::kind::natural) return all->add(value.u64());
            if (all->what() == numbers::kind::integer) return all->add(value.i64());
            return all->add(value.f64());
        }
        char digits[20];
        std::get<words>(values_).add(name_of(value, digits));
    }

public:
    /// A scalar that is no floating-point number, as a word. `digits` is room for it.
    [[nodiscard]] static std::string_view name_of(const reduce::field_value& value,
                                                  char (&digits)[20]) {
        using trace_ring::field_type;
        if (const std::string_view name = value.name(); !name.empty()) return name;
        if (value.type() == field_type::boolean) return value.boolean() ? "true" : "false";
        if (value.type() == field_type::character) {
            digits[0] = static_cast<char>(value.u64());
            return {digits, 1};
        }
        if (value.type() <= field_type::u64) {
            return {digits, std::to_chars(digits, std::end(digits), value.u64()).ptr};
        }
        if (value.type() <= field_type::i64) {
            return {digits, std::to_chars(digits, std::end(digits), value.i64()).ptr};
        }
        digits[0] = '0';
        digits[1] = 'x';
        return {digits, std::to_chars(digits + 2, std::end(digits), value.u64(), 16).ptr};
    }

private:
    std::variant<numbers, words> values_;
    bool text_;
    std::uint64_t count_ = 0;
};

/// Field `i` of an event; the results of a span follow its fields. Null if there are fewer.
[[nodiscard]] inline const reduce::field_info* field_of(const reduce::event_type& type,
                                                        std::size_t i) noexcept {
    if (i < type.fields.size()) return &type.fields[i];
    i -= type.fields.size();
    if (type.results == nullptr || i >= type.results->fields.size()) return nullptr;
    return &type.results->fields[i];
}

/// The records of one event.
struct event_measure {
    std::uint64_t records = 0;
    std::vector<std::optional<field_measure>> fields{};  ///< those wanted, in the event's order
    numbers durations{};                                 ///< ns; ticks if the clock is not known
    std::uint64_t uncertain = 0;   ///< durations between times that are lower bounds only
    std::uint64_t unpaired = 0;    ///< begins without an end, ends without a begin
    std::uint64_t not_nested = 0;  ///< ends of which it is not known what they end

    /// Each once, whether both of its ends are there or one.
    [[nodiscard]] std::uint64_t spans() const noexcept {
        return durations.count() + unpaired + not_nested;
    }
    void add(const event_measure& other) {
        records += other.records;
        if (fields.size() < other.fields.size()) fields.resize(other.fields.size());
        for (std::size_t i = 0; i < other.fields.size(); ++i) {
            if (!other.fields[i]) continue;
            if (fields[i]) {
                fields[i]->add(*other.fields[i]);
            } else {
                fields[i] = other.fields[i];
            }
        }
        durations.add(other.durations);
        uncertain += other.uncertain;
        unpaired += other.unpaired;
        not_nested += other.not_nested;
    }
};

/// In the order of the dictionary.
struct by_number {
    bool operator()(const reduce::event_type* a, const reduce::event_type* b) const noexcept {
        return a->number < b->number;
    }
};
using event_measures = std::map<const reduce::event_type*, event_measure, by_number>;

/// The records of one group, counted by its entry.
struct group {
    std::uint64_t bytes = 0;
    event_measures events{};  ///< only if fields are measured

    void add(const group& other) {
        bytes += other.bytes;
        for (const auto& [type, what] : other.events) events[type].add(what);
    }
};
using groups = frequent<group>;

/// What the groups hold together that are not among the first `rows`.
struct unlisted_groups {
    std::uint64_t records = 0;
    std::uint64_t bytes = 0;

    unlisted_groups(const groups& all, std::size_t rows)
        : records(all.forgotten()), bytes(all.rest().bytes) {
        const auto each = all.top(all.size());
        for (std::size_t i = rows; i < each.size(); ++i) {
            records += each[i].what->count;
            bytes += each[i].what->value.bytes;
        }
    }
};

/// Whether the trace has an event of spans.
[[nodiscard]] inline bool has_spans(const reduce::trace_file& in) {
    const auto& types = in.event_types();
    return std::any_of(types.begin(), types.end(),
                       [](const auto& type) { return type.kind == trace_ring::event_kind::span; });
}

/// A span, when it has ended.
struct ended_span {
    const reduce::event_type* type = nullptr;
    std::uint64_t ticks = 0;  ///< that it took
    std::uint64_t begun = 0;
    bool uncertain = false;
    reduce::lane_info lane{};  ///< where it has ended
    std::uint64_t at = 0;      ///< the end's position
};

}  // namespace trace_reduce::measure
