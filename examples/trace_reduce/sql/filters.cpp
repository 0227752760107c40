// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "plan.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <trace_ring/instrument/references.hpp>

#include "../where/select.hpp"

namespace trace_reduce::sql {

namespace {

using expressions::expression;
using trace_ring::field_form;
using trace_ring::field_type;
using trace_ring::point::comparison;
using trace_ring::point::form;
using trace_ring::point::number;

constexpr std::int64_t least = (std::numeric_limits<std::int64_t>::min)();
constexpr std::int64_t most = (std::numeric_limits<std::int64_t>::max)();

// --- Values --------------------------------------------------------------------------------------
/// The values of a term: one, or those of a list.
[[nodiscard]] std::vector<sqlite3_value*> values_of(const term& of, sqlite3_value* value) {
    std::vector<sqlite3_value*> all;
    if (!of.set) return {value};
    sqlite3_value* one = nullptr;
    for (int rc = sqlite3_vtab_in_first(value, &one); rc == SQLITE_OK && one != nullptr;
         rc = sqlite3_vtab_in_next(value, &one)) {
        all.push_back(sqlite3_value_dup(one));
    }
    return all;
}
struct term_values {
    const term* of;
    std::vector<sqlite3_value*> all;

    term_values(const term& what, sqlite3_value* value) : of(&what), all(values_of(what, value)) {}
    term_values(const term_values&) = delete;
    term_values& operator=(const term_values&) = delete;
    ~term_values() {
        if (!of->set) return;
        for (auto* const each : all) sqlite3_value_free(each);
    }
};

[[nodiscard]] std::string text_of(sqlite3_value* value) {
    const auto* const text = reinterpret_cast<const char*>(sqlite3_value_text(value));
    return text == nullptr
               ? std::string()
               : std::string(text, static_cast<std::size_t>(sqlite3_value_bytes(value)));
}
[[nodiscard]] bool is_number(sqlite3_value* value) noexcept {
    const int type = sqlite3_value_type(value);
    return type == SQLITE_INTEGER || type == SQLITE_FLOAT;
}
[[nodiscard]] bool is_text(sqlite3_value* value) noexcept {
    return sqlite3_value_type(value) == SQLITE_TEXT;
}
/// A number as a range of whole numbers that contains it.
struct whole_range {
    std::int64_t low = least, high = most;
};
[[nodiscard]] whole_range around(sqlite3_value* value) noexcept {
    if (sqlite3_value_type(value) == SQLITE_INTEGER) {
        const std::int64_t exact = sqlite3_value_int64(value);
        return {exact, exact};
    }
    const double real = sqlite3_value_double(value);
    whole_range out;
    if (real >= 0x1p63) return {most, most};
    if (real < -0x1p63) return {least, least};
    out.low = static_cast<std::int64_t>(std::floor(real));
    out.high = std::ceil(real) >= 0x1p63 ? most : static_cast<std::int64_t>(std::ceil(real));
    return out;
}
/// The whole numbers that can meet a comparison.
[[nodiscard]] whole_range range_of(unsigned char sign, sqlite3_value* value) noexcept {
    whole_range with = around(value);
    if (sign == SQLITE_INDEX_CONSTRAINT_GT || sign == SQLITE_INDEX_CONSTRAINT_GE) with.high = most;
    if (sign == SQLITE_INDEX_CONSTRAINT_LT || sign == SQLITE_INDEX_CONSTRAINT_LE) with.low = least;
    return with;
}

/// Characters that mean the same in SQLite's globs and in ours.
[[nodiscard]] bool is_common_glob(std::string_view glob) noexcept {
    return glob.find_first_of("?[\\") == std::string_view::npos;
}
/// A glob that matches this text alone.
[[nodiscard]] std::string as_glob(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '*' || c == '?' || c == '[' || c == '\\') out += '\\';
        out += c;
    }
    return out;
}

/// The first tick whose time is `ns` or later: a date, or `since` the beginning. Nothing: none up
/// to a century after the trace.
[[nodiscard]] std::optional<std::uint64_t> first_tick(const reduce::timeline& time, std::int64_t ns,
                                                      bool since) {
    constexpr double century_ns = 3.2e18;
    const auto at = [&](std::uint64_t ticks) {
        return since ? time.relative_ns(ticks) : time.realtime_ns(ticks);
    };
    std::uint64_t low = 0, high = time.snapshots().back().ticks;
    high += static_cast<std::uint64_t>(
        std::min(century_ns / time.ns_per_tick(), static_cast<double>(~high) / 2));
    if (at(high) < ns) return std::nullopt;
    while (low < high) {
        const std::uint64_t middle = low + (high - low) / 2;
        at(middle) < ns ? low = middle + 1 : high = middle;
    }
    return low;
}

void narrow(reduce::filter& what, std::uint64_t from, std::uint64_t to) {
    what.from = std::max(what.from, from);
    what.to = std::min(what.to, to);
}
[[nodiscard]] std::uint64_t as_ticks(std::int64_t value) noexcept {
    return value < 0 ? 0 : static_cast<std::uint64_t>(value);
}

void take_time(reduce::filter& what, const traced_file& in, cell by, const whole_range& range) {
    if (by == cell::ticks) {
        // A count from 2^63 on is a text, which is greater than any number.
        narrow(what, as_ticks(range.low),
               range.high == most ? ~std::uint64_t{0} : as_ticks(range.high));
        return;
    }
    const bool since = by == cell::since;
    if (since ? !in.time().known() : !in.ascends()) return;
    if (range.low != least) {
        if (const auto from = first_tick(in.time(), range.low, since)) narrow(what, *from, what.to);
    }
    if (range.high != most) {
        if (const auto to = first_tick(in.time(), range.high + 1, since)) {
            narrow(what, what.from, *to);
        }
    }
}

// --- Conditions ----------------------------------------------------------------------------------
enum class content : std::uint8_t { none, number, text, names, other };

/// What a field is in all types of the table that have it.
[[nodiscard]] content content_of(const table_shape& of, const traced_file& in,
                                 const field_shape& field) {
    content all = content::none;
    for (const auto& type : in.trace().event_types()) {
        if (!of.event.empty() && type.name != of.event) continue;
        const std::size_t at = find_fields(type, {&field, 1})[0];
        if (at == reduce::event_type::npos) continue;
        const auto& info = type.fields[at];
        content here = content::other;
        if (info.unit != nullptr || type.find_named(field.name) != at) {
            here = content::other;
        } else if (info.type == field_type::character && info.form != field_form::scalar) {
            here = content::text;
        } else if (info.form == field_form::scalar && info.values != nullptr) {
            here = content::names;
        } else if (info.form == field_form::scalar && info.type != field_type::boolean &&
                   info.type != field_type::character) {
            here = content::number;
        }
        if (all != content::none && all != here) return content::other;
        all = here;
    }
    return all;
}
[[nodiscard]] bool some_value_is_called(const table_shape& of, const traced_file& in,
                                        const field_shape& field, std::string_view name) {
    const auto& types = in.trace().event_types();
    return std::all_of(types.begin(), types.end(), [&](const auto& type) {
        if (!of.event.empty() && type.name != of.event) return true;
        const std::size_t at = find_fields(type, {&field, 1})[0];
        return at == reduce::event_type::npos || type.fields[at].values->has(name);
    });
}

[[nodiscard]] std::optional<comparison> comparison_of(unsigned char sign) noexcept {
    switch (sign) {
        case SQLITE_INDEX_CONSTRAINT_EQ:
            return comparison::equal;
        case SQLITE_INDEX_CONSTRAINT_NE:
            return comparison::unequal;
        case SQLITE_INDEX_CONSTRAINT_GT:
            return comparison::more;
        case SQLITE_INDEX_CONSTRAINT_GE:
            return comparison::at_least;
        case SQLITE_INDEX_CONSTRAINT_LT:
            return comparison::less;
        case SQLITE_INDEX_CONSTRAINT_LE:
            return comparison::at_most;
        default:
            return std::nullopt;
    }
}

/// A constant; nothing if the two languages might differ about it.
[[nodiscard]] std::optional<expression> constant_of(sqlite3_value* value) {
    if (sqlite3_value_type(value) == SQLITE_INTEGER) {
        return expression::of(number::of(std::int64_t{sqlite3_value_int64(value)}));
    }
    const double real = sqlite3_value_double(value);
    // From 2^63 on a field's value is a text.
    if (!(real > -0x1p63 && real < 0x1p63)) return std::nullopt;
    return expression::of(number::of(real));
}
[[nodiscard]] expression named(form what, std::string word) {
    return {.what = what, .word = std::move(word)};
}

/// A term as a condition; nothing: SQLite alone asks it.
[[nodiscard]] std::optional<expression> condition_of(const term& one,
                                                     const std::vector<sqlite3_value*>& values,
                                                     const table_shape& of, const traced_file& in) {
    constexpr std::size_t most_values = 64;
    const column_shape& column = of.columns[one.column];
    if (values.empty() || values.size() > most_values) return std::nullopt;
    const bool glob = one.sign == SQLITE_INDEX_CONSTRAINT_GLOB;
    content is = content::number;
    expression left;
    switch (column.what) {
        case cell::pid:
            left = named(form::name, "pid");
            break;
        case cell::thread:
            left = named(form::name, "thread");
            is = content::text;
            break;
        case cell::field:
            left = named(form::field, of.fields[column.index].name);
            is = content_of(of, in, of.fields[column.index]);
            break;
        default:
            return std::nullopt;
    }
    if (glob) {
        if (is != content::text || !is_text(values[0]) || !is_common_glob(text_of(values[0]))) {
            return std::nullopt;
        }
        expression made{.what = form::like, .word = text_of(values[0])};
        made.parts.push_back(std::move(left));
        return made;
    }
    const auto sign = comparison_of(one.sign);
    if (!sign) return std::nullopt;
    if (is != content::number && one.sign != SQLITE_INDEX_CONSTRAINT_EQ) return std::nullopt;
    std::vector<expression> any;
    for (auto* const value : values) {
        std::optional<expression> right;
        if (is == content::number && is_number(value)) {
            right = constant_of(value);
        } else if ((is == content::text || is == content::names) && is_text(value)) {
            const std::string text = text_of(value);
            const bool has =
                is == content::text || some_value_is_called(of, in, of.fields[column.index], text);
            if (has) right = expression::of_text(text);
        }
        if (!right) return std::nullopt;
        any.push_back(expression::compare(left, *sign, std::move(*right)));
    }
    return any.size() == 1 ? std::move(any[0]) : expression::join(form::any_of, std::move(any));
}

/// The events whose records are read for a table; none: all.
[[nodiscard]] std::vector<std::string> events_of(const table_shape& of, const traced_file& in) {
    std::vector<std::string> all;
    if (of.kind == table_kind::spans) {
        // Also for the spans of one event: a span that ends passes those of others.
        for (const auto& type : in.trace().event_types()) {
            if (type.kind == trace_ring::event_kind::span) all.push_back(as_glob(type.name));
        }
    } else if (!of.event.empty()) {
        all.push_back(as_glob(of.event));
    } else if (of.kind == table_kind::references) {
        for (const auto& each : trace_ring::names_of<trace_ring::reference_kind>::list) {
            all.emplace_back(each.name);
        }
    }
    return all;
}

/// Makes a filter ask for a condition, if there is one, and call `look` after each MiB or so.
void attend(reduce::filter& what, const traced_file& in, std::optional<expression> condition,
            std::function<void()> look) {
    what.condition = std::make_shared<where::attentive>(
        in.trace().about(), std::move(condition),
        [look = std::move(look), parts = 0U](std::size_t) mutable {
            if (++parts % 256 == 0) look();
        });
}

}  // namespace

reduce::filter filter_for_all(const traced_file& in, std::function<void()> look) {
    reduce::filter what;
    what.to = in.until();
    attend(what, in, std::nullopt, std::move(look));
    return what;
}

reduce::filter filter_for(const plan& how, const table_shape& of, traced_file& in,
                          sqlite3_value** values, std::function<void()> look) {
    reduce::filter what;
    what.to = in.until();
    what.events = events_of(of, in);
    std::vector<expression> conditions;
    for (std::size_t i = 0; i < how.terms.size(); ++i) {
        const term& one = how.terms[i];
        const term_values given(one, values[i]);
        const cell by = of.columns[one.column].what;
        const bool numbers = std::all_of(given.all.begin(), given.all.end(), is_number);
        const bool texts = std::all_of(given.all.begin(), given.all.end(), is_text);
        switch (by) {
            case cell::time:
            case cell::since:
            case cell::ticks:
                if (!one.set && numbers) {
                    take_time(what, in, by, range_of(one.sign, given.all[0]));
                }
                break;
            case cell::position:
                if (!one.set && numbers) {
                    const auto range = range_of(one.sign, given.all[0]);
                    what.positions.push_back(
                        {0, as_ticks(range.low),
                         range.high == most ? ~std::uint64_t{0}
                                            : as_ticks(range.high) + (range.high < 0 ? 0 : 1)});
                }
                break;
            case cell::lane:
            case cell::tid: {
                auto& into = by == cell::lane ? what.lanes : what.threads;
                if (!numbers || !into.empty()) break;
                for (auto* const each : given.all) {
                    const auto whole = around(each);
                    if (whole.low >= 0 && whole.low <= (std::numeric_limits<std::uint32_t>::max)())
                        into.push_back(static_cast<std::uint32_t>(whole.low));
                }
                // None: no lane has the number 0.
                if (into.empty() && by == cell::lane) into.push_back(0);
                break;
            }
            case cell::event:
                if (!texts || !what.events.empty()) break;
                for (auto* const each : given.all) {
                    const std::string text = text_of(each);
                    if (one.sign != SQLITE_INDEX_CONSTRAINT_GLOB) {
                        what.events.push_back(as_glob(text));
                    } else if (is_common_glob(text)) {
                        what.events.push_back(text);
                    }
                }
                break;
            default:
                if (auto condition = condition_of(one, given.all, of, in)) {
                    conditions.push_back(std::move(*condition));
                }
        }
    }
    std::optional<expression> condition;
    if (conditions.size() == 1) condition = std::move(conditions[0]);
    if (conditions.size() > 1) condition = expression::join(form::all_of, std::move(conditions));
    attend(what, in, std::move(condition), std::move(look));
    return what;
}

}  // namespace trace_reduce::sql
