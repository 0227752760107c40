// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The project's one language of expressions, as text: of conditions on records,
/// @code
///   event ~ "order.*" and (price * volume > 1e6 or not urgent) and time in {10ms..20ms}
/// @endcode
/// and of the predicates and actions of trace clauses:
/// @code
///   @@uft:*:libc.so.6:malloc:entry when arg0 > 4096 and comm == "shop" { capture(arg0, ustack); }
/// @endcode
/// Operators of conditions on records, the loosest first:
/// | operators | operands |
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
/// | `name[2]` | an array's element |
///
/// In clauses the precedence is C's, and comparisons are numbers, 0 or 1:
/// | operators | operands |
/// |---|---|
/// | `or`, `\|\|` | numbers: all but 0 hold |
/// | `and`, `&&` | numbers |
/// | `not` | a number: all that follows, as far as `and` and `or` |
/// | `\|`, then `^`, then `&` | numbers |
/// | `==` `!=` | two numbers or pointers; a text and one in quotes |
/// | `<` `<=` `>` `>=` | two numbers or pointers |
/// | `in {1, 2, 0x10..0x1F}`, `not in` | a number |
/// | `<<` `>>` | numbers |
/// | `+` `-` | numbers; a pointer and a number |
/// | `*` `/` `%` | numbers |
/// | `!` `-` `+` `~` `*`, `(struct s *)` | a number; of a pointer, what it points to; a cast |
/// | `->member` `.member` `[number]` | of pointers, structures and arrays |
/// | `function(values)` | and `sizeof(type)` |
/// There, whole numbers have C's types, and may have its suffixes (10u, 0xFFul) and begin with 0.
///
/// Numbers are decimal, hexadecimal with 0x, or with a point or exponent. With fs, ps, ns, us, ms,
/// s, min, h, d or a ratio of seconds ([1/3]s) they are durations, in ns. Texts are in "" or '',
/// with \\n \\t \\r \\" \\' \\\\ and \\xHH. A name is a field (NAME, or EVENT.NAME for one event
/// only), or one of the list in trace_reduce/where/names.hpp; a name in `` is always a field.
/// Comments go from # to the end of the line, or are between /* and */.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <trace_ring/point/expression.hpp>

namespace expressions {

using trace_ring::point::expression;
using trace_ring::point::mistake;

inline constexpr std::size_t longest_expression = 64 * 1024;  ///< bytes
inline constexpr std::size_t longest_script = 1024 * 1024;    ///< bytes
/// Parentheses, brackets and casts within each other; and members and indexes, one behind the
/// other.
inline constexpr std::size_t deepest_nesting = 64;

/// The expression, or what is wrong with it as a text. Throws std::bad_alloc only.
[[nodiscard]] std::variant<expression, mistake> parse(std::string_view text);

/// A part of a text, in bytes.
struct text_place {
    std::size_t column = 0;
    std::size_t length = 0;
};
struct clause_text {
    std::vector<text_place> points{};  ///< tuples, from their @@ on
    std::optional<expression> when{};
    std::vector<expression> statements{};  ///< calls
};
struct script {
    std::vector<text_place> declarations{};  ///< of structures and the like, with their semicolon
    std::vector<clause_text> clauses{};
};
/// The declarations and clauses of a script, or what is wrong with its form. Throws std::bad_alloc
/// only.
[[nodiscard]] std::variant<script, mistake> parse_script(std::string_view text);

/// The line of a text that has several, the column, from 1, and what is wrong there: one line.
[[nodiscard]] std::string describe_in_line(std::string_view text, const mistake& what);
/// The same, then the text (of a long one, a part), and a mark below the place.
[[nodiscard]] std::string describe(std::string_view text, const mistake& what);

}  // namespace expressions
