// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Any text, taken for a condition on records: it is refused with a place in it, or made ready for
/// a small trace with fields of every type, checked or not, and asked of each record: singly and in
/// rows, forward and backward with one result, which is never the result of its opposite. And for a
/// script of trace clauses: what can be compiled, for either mode, the checker of byte code
/// accepts.

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <examples/trace_reduce/where/where_trace.hpp>
#include <expressions/parse.hpp>
#include <fuzz/targets.hpp>
#include <trace_clauses/language/compile.hpp>
#include <trace_reduce/where/check.hpp>
#include <trace_reduce/where/predicate.hpp>
#include <trace_ring/point/machine/check.hpp>
#include <trace_ring/reduce/trace_file.hpp>

namespace trace_ring_test::fuzz {

namespace of_expression {
namespace {

namespace reduce = trace_ring::reduce;
namespace where = trace_reduce::where;

constexpr std::size_t longest = std::size_t{64} << 10;

std::vector<buffer> seeds() {
    std::vector<buffer> out;
    for (const std::string_view text :
         {"event == \"every\" and (u8 > 5 or not flag)", "u64 in {1, 2, 0x10..0xFFFFFFFFFFFFFFFF}",
          "name ~ \"name[a-c]\" || thread !~ 'w*' && process not like \"*x\"",
          "f64 != f64 or f32 * 2 - -i16 / 3 % 7 >= 1e10", "time >= 1.5us and latest < 10ms",
          "row[1] & 0xFF == list[2] + `only here`", "(tid + pid * lane - position) / (u8 - 1) == 1",
          "((((((flag)) == (true != false)))))", "letter < 'c' and tag in {'t1', \"\\x74\\\"2\"}",
          "u46 = 5", "x == \"a\\q", "1 < 2 < 3", "not not !!-- i8 == ---1",
          "ticks in {2000..3000} and not event like \"*\\\\*[\"",
          "@@a:b:c when arg0 > 4096 and comm == \"x\" { capture(arg0, str(arg1, 8), ustack); }",
          "struct s { int a; };\n@@begin { } # c\n@@a:*:\"x y\":d, @@a:b:c { hist(*(int *)arg1, "
          "pid); }",
          "@@a:b:c when str((char *)arg2) != \"abc\" { count(sizeof(long) << 2 | ~arg3 ^ -1); }",
          "@@a:b:c { capture((unsigned char)arg0 in {1, 3..5}, ((short *)arg1)[arg2 % 7], "
          "ustack(2)); }"}) {
        out.emplace_back(text.begin(), text.end());
    }
    // Nested so deep that a reader which follows comes to the end of its stack.
    for (const std::string_view each : {"(", "(int)", "!", "not ", "-", "a[", "((int *)", "f(", "*",
                                        "@@begin when (", "struct s { ", "1 + (2 * "}) {
        buffer deep;
        while (deep.size() < longest) deep.insert(deep.end(), each.begin(), each.end());
        out.push_back(std::move(deep));
    }
    out.emplace_back(500, static_cast<std::uint8_t>('('));
    out.emplace_back(500, static_cast<std::uint8_t>('-'));
    out.emplace_back(500, static_cast<std::uint8_t>('!'));
    return out;
}

struct opened {
    where_trace made{70};
    reduce::trace_file file = reduce::trace_file::from(made.file().bytes());
};

std::size_t count(reduce::cursor cursor) {
    std::size_t records = 0;
    while (const auto* item = cursor.next()) {
        if (std::holds_alternative<reduce::record_view>(*item)) ++records;
    }
    return records;
}

void run(input data) {
    static const opened trace;
    const std::string_view text(reinterpret_cast<const char*>(data.data()),
                                std::min(data.size(), longest));
    const auto told = [text](const where::mistake& what) {
        expect(what.column <= text.size(), "the place lies in the text");
        expect(what.length <= text.size() - what.column, "all of it");
        expect(!what.what.empty(), "there is a cause");
        const std::string said = expressions::describe(text, what);
        expect(std::count(said.begin(), said.end(), '\n') == 2, "three lines tell of it");
        for (const char c : said) {
            const auto code = static_cast<unsigned char>(c);
            expect(c == '\n' || (code >= 0x20 && code != 0x7F), "no control characters");
        }
    };
    // As a script of trace clauses: what can be compiled, is accepted by the checker.
    auto read = expressions::parse_script(text);
    if (const auto* what = std::get_if<where::mistake>(&read)) {
        told(*what);
    } else {
        for (const auto& clause : std::get<expressions::script>(read).clauses) {
            for (const auto mode :
                 {trace_clauses::program_mode::lp64, trace_clauses::program_mode::ilp32}) {
                trace_clauses::type_table types(mode);
                try {
                    const auto made = trace_clauses::compile(text, clause, {types});
                    namespace point = trace_ring::point;
                    expect(!point::find_fault(made.action, {made.output_bytes, false}),
                           "an action");
                    expect(made.predicate.empty() ||
                               !point::find_fault(made.predicate, {.is_predicate = true}),
                           "a predicate");
                } catch (const where::mistake& why_not) {
                    told(why_not);
                }
            }
        }
    }
    auto found = expressions::parse(text);
    if (const auto* what = std::get_if<where::mistake>(&found)) return told(*what);
    auto& wanted = std::get<where::expression>(found);
    const reduce::tables* const one[] = {&trace.file.about()};
    if (const auto wrong = where::find_mistake(wanted, one)) told(*wrong);

    reduce::filter some;
    const auto asks = std::make_shared<where::predicate>(trace.file.about(), wanted);
    some.condition = asks;
    const std::size_t forward = count(trace.file.forward(some));
    expect(count(trace.file.backward(some)) == forward, "as many backward");
    reduce::filter others;
    others.condition = std::make_shared<where::predicate>(
        trace.file.about(), where::expression::join(where::form::none_of, {std::move(wanted)}));
    const std::size_t opposite = count(trace.file.forward(others, reduce::merging::by_lane));

    std::size_t yes = 0;
    std::size_t no = 0;
    const auto ticks = asks->ticks();
    auto all = trace.file.forward();
    while (const auto* item = all.next()) {
        const auto* record = std::get_if<reduce::record_view>(item);
        if (record == nullptr) continue;
        const where::truth is = asks->ask(*record);
        if (is == where::truth::no) ++no;
        if (is != where::truth::yes) continue;
        ++yes;
        expect(asks->may_want(record->lane()), "a lane is left out only if none is wanted");
        expect(asks->may_want(&record->type()), "and so is an event");
        expect(ticks && ticks->low <= record->time() && record->time() <= ticks->high,
               "and so is a time");
    }
    expect(yes == forward, "in rows as singly");
    expect(no == opposite, "what does not hold, its opposite selects");
}

void mutate(buffer& what, dice& random) {
    constexpr std::string_view tokens[] = {
        "u8",       "i64",         "u64",     "f32",   "f64",
        "flag",     "letter",      "tag",     "name",  "row[0]",
        "list[1]",  "time",        "latest",  "ticks", "event",
        "thread",   "process",     "tid",     "pid",   "lane",
        "position", "`only here`", " and ",   " or ",  " not ",
        "&&",       "||",          "!",       "==",    "!=",
        "<",        "<=",          ">",       ">=",    " in {",
        "}",        "..",          ",",       "~",     "!~",
        " like ",   "\"*a\"",      "'every'", "+",     "-",
        "*",        "/",           "%",       "&",     "(",
        ")",        "0",           "1",       "0xFF",  "18446744073709551615",
        "1.5",      "1e308",       "10us",    "true",  "false",
        "\\",       "\"",          "'",       "`",     "\xC3\xA9",
        " "};
    for (std::size_t times = 1 + random.below(4); times != 0; --times) {
        const std::size_t at = random.below(what.size() + 1);
        const auto place = what.begin() + static_cast<std::ptrdiff_t>(at);
        const std::size_t kind = random.below(8);
        if (kind == 0 && at < what.size()) {
            what[at] = static_cast<std::uint8_t>(random.any());
        } else if (kind <= 2 && at < what.size()) {
            const std::size_t length = 1 + random.below(std::min<std::size_t>(what.size() - at, 8));
            what.erase(place, place + static_cast<std::ptrdiff_t>(length));
        } else if (what.size() < longest) {
            const std::string_view token = tokens[random.below(std::size(tokens))];
            std::size_t copies = random.below(1500) == 0 ? random.below(4000) : 1;
            buffer inserted;
            for (; copies != 0; --copies) {
                inserted.insert(inserted.end(), token.begin(), token.end());
            }
            what.insert(place, inserted.begin(), inserted.end());
        }
    }
}

}  // namespace
}  // namespace of_expression

const target expression_target{"expression", &of_expression::seeds, &of_expression::run,
                               &of_expression::mutate, 10000};

}  // namespace trace_ring_test::fuzz
