// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Conditions on records, as text:
/// @code
///   event ~ "order.*" and (price * volume > 1e6 or not urgent) and time in {10ms..20ms}
/// @endcode
/// From what binds loosest to what binds closest:
/// | operators | of what |
/// |---|---|
/// | `or`, `\|\|` | conditions |
/// | `and`, `&&` | conditions |
/// | `not`, `!` | a condition: all of the comparison that follows |
/// | `==` `!=` `<` `<=` `>` `>=` | two numbers, texts, times, or, the first two, conditions |
/// | `in {1, 2, 0x10..0x1F}`, `not in` | a number, time or text; ranges have both ends |
/// | `~ "glob"`, `like "glob"`, `!~`, `not like` | a text |
/// | `+` `-` | numbers |
/// | `*` `/` `%` `&` | numbers |
/// | `-` | a number |
/// Numbers are decimal, hexadecimal with 0x, or with a point or exponent; with ns, us, ms, s, min
/// or h they are durations, in ns. Texts are in "" or '', with \\n \\t \\r \\" \\' \\\\ and \\xHH.
/// Names are of fields (NAME, or EVENT.NAME of one event alone), or of what
/// reduce/where/expression.hpp lists; in `` they are of fields whatever they are; `name[2]` is an
/// array's element.

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>

#include <trace_ring/reduce/where/expression.hpp>

namespace trace_reduce::where {

using trace_ring::reduce::where::expression;
using trace_ring::reduce::where::mistake;

inline constexpr std::size_t longest_expression = 64 * 1024;  ///< bytes
inline constexpr std::size_t deepest_nesting = 64;            ///< parentheses within each other

/// The expression, or what is wrong with it as a text. Throws std::bad_alloc only.
[[nodiscard]] std::variant<expression, mistake> parse(std::string_view text);

/// The column, from 1, and what is wrong there: one line.
[[nodiscard]] std::string describe_in_line(std::string_view text, const mistake& what);
/// The same, then the text (of a long one, a part), and a mark below the place.
[[nodiscard]] std::string describe(std::string_view text, const mistake& what);

}  // namespace trace_reduce::where
