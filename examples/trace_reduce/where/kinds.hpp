// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Finds the kind of value that each part of an expression has for the records of one event:
/// number, time, text or condition; missing, if the event has no such field; or wrong, and why,
/// with the name that was meant by a mistyped one.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <trace_ring/reduce/tables/dictionary.hpp>

#include "../../expressions/nearest.hpp"
#include "names.hpp"

namespace trace_reduce::where {

using expressions::nearest;

enum class kind : std::uint8_t {
    missing,   ///< the event has no such field
    number,    ///< without a unit
    duration,  ///< in ns; may be compared with a field that has no unit, as being in ns
    time,      ///< since the trace began
    text,
    truth,
    wrong,  ///< makes no sense
};

struct kind_of {
    kind is = kind::missing;
    bool floating = false;
    mistake why{};      ///< if it is wrong
    bool unit = false;  ///< a field that is a duration: a number without a unit is no match for it

    [[nodiscard]] bool numeric() const noexcept {
        return is == kind::number || is == kind::duration || is == kind::time;
    }
};

[[nodiscard]] constexpr std::string_view to_string(kind of) noexcept {
    // no count: kinds of values
    constexpr std::string_view names[] = {"nothing", "a number",    "a duration", "a time",
                                          "a text",  "a condition", "nothing"};
    return names[static_cast<std::size_t>(of)];
}

namespace impl {

/// The first few names of these, to end a message with.
template <class All, class Name>
[[nodiscard]] std::string listed(const All& all, const Name& name) {
    constexpr std::size_t most = 8;
    std::string out;
    std::size_t told = 0;
    for (const auto& each : all) {
        out += told == 0 ? "; there is " : ", ";
        if (told++ == most) return out + "...";
        out += "'" + name(each) + "'";
    }
    return out;
}

[[nodiscard]] inline kind_of wrong(const expression& at, std::string what) {
    return {kind::wrong, false, {at.column, at.length, std::move(what)}};
}

[[nodiscard]] inline kind_of kind_of_elements(field_type type) noexcept {
    if (type == field_type::boolean) return {kind::truth};
    if (type == field_type::character) return {kind::text};
    return {kind::number, type == field_type::f32 || type == field_type::f64};
}

/// `as_text`: a value that has a name and a number is read as its name.
[[nodiscard]] inline kind_of kind_of_field(const expression& what, const event_type* type,
                                           bool as_text) {
    const bool indexed = what.what == form::element;
    const std::size_t at = type == nullptr ? event_type::npos : type->find_named(what.word);
    if (at == event_type::npos) return {kind::missing};
    const field_info& field = type->fields[at];
    const bool row = field.form != field_form::scalar && field.type != field_type::character;
    if (row && !indexed) {
        return wrong(what, "'" + what.word + "' is an array: write " + what.word + "[0]");
    }
    if (!row && indexed) return wrong(what, "'" + what.word + "' is no array");
    if (indexed && field.form == field_form::array &&
        what.value >= number::of(std::uint64_t{field.count})) {
        return wrong(
            what, "'" + what.word + "' has " + std::to_string(field.count) +
                      (field.count == 1 ? " element: there is only " : " elements: the last is ") +
                      what.word + '[' + std::to_string(field.count - 1) + ']');
    }
    kind_of found =
        field.values != nullptr && as_text ? kind_of{kind::text} : kind_of_elements(field.type);
    if (field.unit != nullptr) {
        found.is = kind::duration;
        found.unit = true;
    }
    return found;
}

/// The names of a field's values; null if it is no field, or its values have none.
[[nodiscard]] inline const value_names* names_of_values(const expression& what,
                                                        const event_type* type) noexcept {
    const bool field = what.what == form::field || what.what == form::element ||
                       (what.what == form::name && meaning(what) == named::field);
    const std::size_t at =
        type == nullptr || !field ? event_type::npos : type->find_named(what.word);
    return at == event_type::npos ? nullptr : type->fields[at].values.get();
}

/// The kind of `with`, compared with a field: wrong if the field's values have names, but not this.
[[nodiscard]] inline kind_of kind_of_value_name(const expression& field, const expression& with,
                                                const event_type* type) {
    const value_names* const names = names_of_values(field, type);
    if (names == nullptr || with.what != form::text || names->has(with.word)) return {kind::text};
    std::string what = "no value of '" + field.word + "' is called '" + with.word + "'";
    nearest to(with.word, 3);
    for (const auto& each : names->all()) to.look(each.name);
    what += to.found().empty()
                ? listed(
                      names->all(), [](const auto& each) -> auto& { return each.name; })
                : to.suggestion();
    return wrong(with, std::move(what));
}

[[nodiscard]] inline kind_of kind_of_name(const expression& what, const event_type* type,
                                          bool as_text) {
    switch (meaning(what)) {
        case named::time:
        case named::latest:
            return {kind::time};
        case named::event:
            return {kind::text};
        case named::thread:
        case named::process:
            return {as_text ? kind::text : kind::number};
        case named::field:
            return kind_of_field(what, type, as_text);
        default:
            return {kind::number};
    }
}

[[nodiscard]] kind_of find_kind(const expression& what, const event_type* type, bool as_text);

/// The operands of an operator, each visited only once: nested operators must not multiply the
/// work.
struct operands {
    kind_of all{kind::number};  ///< missing if one is; wrong if one is, or is no number
    std::vector<kind> each{};

    operands(const expression& what, const event_type* type) {
        each.reserve(what.parts.size());
        for (const auto& part : what.parts) {
            kind_of one = find_kind(part, type, false);
            if (one.is == kind::text || one.is == kind::truth) {
                one = wrong(part, std::string(to_string(one.is)) + ", where a number is needed");
            }
            if (one.is == kind::wrong) {
                all = std::move(one);
                return;
            }
            if (one.is == kind::missing) all.is = kind::missing;
            all.floating = all.floating || one.floating;
            each.push_back(one.is);
        }
    }
};

[[nodiscard]] inline kind_of kind_of_sum(const expression& what, const event_type* type) {
    operands of(what, type);
    if (of.all.is != kind::number) return of.all;
    int times = 0;
    bool durations = false;
    bool timed = false;
    const expression* plain = nullptr;
    for (std::size_t i = 0; i < of.each.size(); ++i) {
        if (of.each[i] == kind::time) times += what.signs[i] == '-' ? -1 : 1;
        if (of.each[i] == kind::number) plain = &what.parts[i];
        durations = durations || of.each[i] == kind::duration;
        timed = timed || of.each[i] == kind::time;
    }
    if (timed && plain != nullptr) {
        return wrong(*plain, "a number added to a time: it needs a unit, as 10ms has");
    }
    if (timed && times != 0 && times != 1) return wrong(what, "times that are added up");
    of.all.is = times == 1 ? kind::time : timed || durations ? kind::duration : kind::number;
    return of.all;
}

[[nodiscard]] inline kind_of kind_of_product(const expression& what, const event_type* type) {
    operands of(what, type);
    if (of.all.is != kind::number) return of.all;
    kind so_far = of.each[0];
    for (std::size_t i = 1; i < of.each.size(); ++i) {
        const bool unit = so_far != kind::number;
        const bool next_unit = of.each[i] != kind::number;
        if (what.signs[i] == '&') {
            if (of.all.floating) return wrong(what, "'&' is for whole numbers");
            so_far = kind::number;
        } else if (what.signs[i] == '*') {
            so_far = unit || next_unit ? kind::duration : kind::number;
        } else {
            const bool ratio = what.signs[i] == '/' && next_unit;
            so_far = unit && !ratio ? kind::duration : kind::number;
        }
    }
    of.all.is = so_far;
    return of.all;
}

/// `as_text`: a value that has a name and a number is read as its name.
[[nodiscard]] inline kind_of find_kind(const expression& what, const event_type* type,
                                       bool as_text) {
    switch (what.what) {
        case form::constant:
            return {kind::number, what.value.floating()};
        case form::duration:
            return {kind::duration};
        case form::text:
            return {kind::text};
        case form::name:
            return kind_of_name(what, type, as_text);
        case form::field:
        case form::element:
            return kind_of_field(what, type, as_text);
        case form::negated: {
            operands of(what, type);
            if (of.all.is == kind::number) of.all.is = of.each[0];
            return of.all;
        }
        case form::sum:
            return kind_of_sum(what, type);
        case form::product:
            return kind_of_product(what, type);
        default:
            return {kind::truth};
    }
}

}  // namespace impl

/// The kinds of two compared parts; the second is wrong if they cannot be compared.
struct kinds_compared {
    kind_of left;
    kind_of right;
};

/// `whole` is the comparison, or the part of a set, to which a mistake refers.
[[nodiscard]] inline kinds_compared compared_kinds(const expression& whole, const expression& left,
                                                   const expression& right,
                                                   const event_type* type) {
    const bool as_text = impl::find_kind(left, type, false).is == kind::text ||
                         impl::find_kind(right, type, false).is == kind::text;
    kinds_compared found{impl::find_kind(left, type, as_text),
                         impl::find_kind(right, type, as_text)};
    auto& [a, b] = found;
    if (a.is == kind::wrong) b = a;
    if (a.is == kind::missing || a.is == kind::wrong || b.is == kind::missing ||
        b.is == kind::wrong) {
        return found;
    }
    if (a.is == kind::text && b.is == kind::text) {
        b = impl::kind_of_value_name(left, right, type);
        if (b.is == kind::text) b = impl::kind_of_value_name(right, left, type);
        return found;
    }
    const bool times = (a.is == kind::time && b.is == kind::number) ||
                       (a.is == kind::number && b.is == kind::time);
    const auto is_plain = [](const kind_of& of, const expression& at) {
        return of.is == kind::number && at.what == form::constant && !at.value.is_zero();
    };
    if ((a.unit && is_plain(b, right)) || (b.unit && is_plain(a, left))) {
        b = impl::wrong(a.unit ? right : left,
                        "a number compared with a duration: it needs a unit, as 10ms has");
    } else if (times) {
        b = impl::wrong(a.is == kind::time ? right : left,
                        "a number compared with a time: it needs a unit, as 10ms has");
    } else if (a.numeric() != b.numeric() || (!a.numeric() && a.is != b.is)) {
        b = impl::wrong(
            whole, std::string(to_string(a.is)) + " compared with " + std::string(to_string(b.is)));
    } else if (a.is == kind::truth && whole.what == form::compared &&
               whole.sign != comparison::equal && whole.sign != comparison::unequal) {
        b = impl::wrong(whole, "conditions are equal or not, and have no order");
    }
    return found;
}

/// True if the value cannot depend on a record.
[[nodiscard]] inline bool is_constant(const expression& what) noexcept {
    if (what.what == form::name || what.what == form::field || what.what == form::element) {
        return false;
    }
    return std::all_of(what.parts.begin(), what.parts.end(), &is_constant);
}

}  // namespace trace_reduce::where
