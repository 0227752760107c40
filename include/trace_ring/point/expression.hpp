// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The project's one language of expressions, as a tree: of conditions on records that are read
/// (reduce/where/), and of the predicates and actions of trace clauses. A parser makes it from a
/// text (the programs have one), or a program builds it.
/// @code
///   using namespace trace_ring::point;
///   const auto price = expression::of_name("price");
///   auto large = expression::compare(price, comparison::more, expression::of(number::of(9.5)));
/// @endcode
/// The user of the tree determines what a name means, and which forms are valid.

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <trace_ring/point/machine/number.hpp>  // IWYU pragma: export

namespace trace_ring::inline v1::point {

/// The kinds of expressions.
enum class form : std::uint8_t {
    constant,   ///< `value`
    duration,   ///< `value`, in ns
    text,       ///< `word`
    truth,      ///< `value`, 1 or 0
    name,       ///< `word`
    field,      ///< `word`, even if it is also a name of the table above
    type_name,  ///< `word`, as C writes it: only as a call's argument
    // These have parts.
    element,   ///< of a field, number `value`
    negated,   ///< its only part, once for each of `signs`, the last of them first: - ~ *
    sum,       ///< `signs[i]`, + - | or ^, before `parts[i]`; the first is +
    product,   ///< `signs[i]`, * / % & < (<<) or > (>>), before `parts[i]`; the first is *
    member,    ///< of its part, a structure: `word`
    through,   ///< member `word` of the object that its part points to
    indexed,   ///< the first part's element, whose number is the second
    cast,      ///< its part, as the type `word`
    call,      ///< of `word`, with these arguments
    compared,  ///< two parts by `sign`
    among,     ///< the first part, in a set: further parts, two by two, are its ranges
    like,      ///< the first part, by a glob: `word`
    all_of,
    any_of,
    none_of,  ///< of one part: it does not hold
};

/// A parsed condition or value. Owns its parts.
struct expression {
    form what = form::truth;              ///< its kind
    comparison sign = comparison::equal;  ///< of a comparison
    number value{};                       ///< of a number
    std::string word{};                   ///< of a name or a text
    std::vector<expression> parts{};      ///< its operands
    std::string signs{};                  ///< the operators between them
    std::size_t column = 0;               ///< where it begins in the text, in bytes from 0
    std::size_t length = 0;  ///< its length there; for an operator between parts, the operator's

    /// A number.
    [[nodiscard]] static expression of(number value) {
        return {.what = form::constant, .value = value};
    }
    /// A whole number.
    [[nodiscard]] static expression of(std::uint64_t value) { return of(number::of(value)); }
    /// A text.
    [[nodiscard]] static expression of_text(std::string value) {
        return {.what = form::text, .word = std::move(value)};
    }
    /// A name of a field or a value.
    [[nodiscard]] static expression of_name(std::string name) {
        return {.what = form::name, .word = std::move(name)};
    }
    /// A comparison.
    [[nodiscard]] static expression compare(expression left, comparison sign, expression right) {
        expression made{.what = form::compared, .sign = sign};
        made.parts.push_back(std::move(left));
        made.parts.push_back(std::move(right));
        return made;
    }
    /// All or any of several conditions, or the negation of one.
    [[nodiscard]] static expression join(form how, std::vector<expression> parts) {
        return {.what = how, .parts = std::move(parts)};
    }
};

/// A mistake in an expression, and its place in the text, in bytes.
struct mistake {
    std::size_t column = 0;  ///< byte in the text, from 0
    std::size_t length = 0;  ///< number of bytes
    std::string what;        ///< what is wrong
};

}  // namespace trace_ring::inline v1::point
