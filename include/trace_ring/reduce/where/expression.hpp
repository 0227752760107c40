// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A condition on records, as a tree: a parser makes it from a text (trace-reduce has one), or a
/// program builds it. predicate.hpp applies it to a trace, by the trace's dictionary.
/// @code
///   using namespace trace_ring::reduce::where;
///   const auto price = expression::of_name("price");
///   auto large = expression::compare(price, comparison::more, expression::of(number::of(9.5)));
/// @endcode
///
/// The meaning of a name, unless it was written as the name of a field:
/// | name | what it is of a record |
/// |---|---|
/// | time, latest | ns since the trace began, and the upper bound if the time is an interval |
/// | ticks | the trace clock's own count |
/// | event | the name of its event |
/// | thread | the thread's id or name, by what it is compared with |
/// | process | the process's id or name, likewise |
/// | tid, pid | the ids |
/// | lane, position | the lane's number, and the record's place in it, from 0 |
/// | any other | the event's field of that name; EVENT.FIELD is the field of that event alone |

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <trace_ring/reduce/where/expression/number.hpp>

namespace trace_ring::inline v1::reduce::where {

enum class form : std::uint8_t {
    constant,  ///< `value`
    duration,  ///< `value`, in ns
    text,      ///< `word`
    truth,     ///< `value`, 1 or 0
    name,      ///< `word`
    field,     ///< `word`, even if it is also a name of the table above
    // These have parts.
    element,   ///< of a field, number `value`
    negated,   ///< its only part, once for each of `signs`
    sum,       ///< `signs[i]`, + or -, before `parts[i]`; the first is +
    product,   ///< `signs[i]`, * / % or &, before `parts[i]`; the first is *
    compared,  ///< two parts by `sign`
    among,     ///< the first part, in a set: further parts, two by two, are its ranges
    like,      ///< the first part, by a glob: `word`
    all_of,
    any_of,
    none_of,  ///< of one part: it does not hold
};

enum class comparison : std::uint8_t { equal, unequal, less, at_most, more, at_least };

/// The comparison that holds of two numbers if and only if this one does not.
[[nodiscard]] constexpr comparison opposite(comparison sign) noexcept {
    constexpr comparison all[] = {comparison::unequal, comparison::equal,   comparison::at_least,
                                  comparison::more,    comparison::at_most, comparison::less};
    return all[static_cast<std::size_t>(sign)];
}
/// The comparison with its sides exchanged.
[[nodiscard]] constexpr comparison mirrored(comparison sign) noexcept {
    switch (sign) {
        case comparison::less:
            return comparison::more;
        case comparison::at_most:
            return comparison::at_least;
        case comparison::more:
            return comparison::less;
        case comparison::at_least:
            return comparison::at_most;
        default:
            return sign;
    }
}

struct expression {
    form what = form::truth;
    comparison sign = comparison::equal;
    number value;
    std::string word;
    std::vector<expression> parts;
    std::string signs;
    std::size_t column = 0;  ///< where it begins in the text, in bytes from 0
    std::size_t length = 0;  ///< its length there; for an operator between parts, the operator's

    [[nodiscard]] static expression of(number value) {
        expression made;
        made.what = form::constant;
        made.value = value;
        return made;
    }
    [[nodiscard]] static expression of(std::uint64_t value) { return of(number::of(value)); }
    [[nodiscard]] static expression of_text(std::string value) {
        expression made;
        made.what = form::text;
        made.word = std::move(value);
        return made;
    }
    [[nodiscard]] static expression of_name(std::string name) {
        expression made = of_text(std::move(name));
        made.what = form::name;
        return made;
    }
    [[nodiscard]] static expression compare(expression left, comparison sign, expression right) {
        expression made;
        made.what = form::compared;
        made.sign = sign;
        made.parts.push_back(std::move(left));
        made.parts.push_back(std::move(right));
        return made;
    }
    /// All or any of several conditions, or none of one.
    [[nodiscard]] static expression join(form how, std::vector<expression> parts) {
        expression made;
        made.what = how;
        made.parts = std::move(parts);
        return made;
    }
};

/// A mistake in an expression, and its place in the text, in bytes.
struct mistake {
    std::size_t column = 0;
    std::size_t length = 0;
    std::string what;
};

/// The meanings of a name.
enum class named : std::uint8_t {
    time,
    latest,
    ticks,
    event,
    thread,
    process,
    tid,
    pid,
    lane,
    position,
    field,
};

inline constexpr std::array<std::string_view, 10> known_names{
    "time", "latest", "ticks", "event", "thread", "process", "tid", "pid", "lane", "position"};

[[nodiscard]] inline named meaning(const expression& of) noexcept {
    if (of.what != form::name) return named::field;
    for (std::size_t i = 0; i < known_names.size(); ++i) {
        if (known_names[i] == of.word) return static_cast<named>(i);
    }
    return named::field;
}

}  // namespace trace_ring::inline v1::reduce::where
