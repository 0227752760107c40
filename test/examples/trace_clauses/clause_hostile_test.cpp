// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// Scripts that nobody would write: each is compiled or refused, in bounded time and memory.

#include <boost/test/unit_test.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <trace_ring/point/machine/run.hpp>

#include <point/naive.hpp>
#include <proof.hpp>
#include <trace_clauses/language/compile.hpp>
#include <trace_clauses/types/calling_convention.hpp>
#include <trace_clauses/types/declarations.hpp>

BOOST_AUTO_TEST_SUITE(clause_hostile)

namespace point = trace_ring::point;
namespace tc = trace_clauses;
using tc::program_mode;

namespace {

class generator {
public:
    explicit generator(std::uint32_t seed) : random_(seed) {}

    [[nodiscard]] std::string script() {
        std::string made;
        switch (pick(5)) {
            case 0:
                return tokens(60);
            case 1:
                made = "@@uft:*:a:b:entry when ";
                made += tokens(40);
                return made + " { count(); }";
            case 2: {
                constexpr std::array<std::array<const char*, 3>, 24> nestings{
                    {{"(", "n", ")"},
                     {"-", "n", ""},
                     {"!-", "n", ""},
                     {"(int)", "n", ""},
                     {"str(1 + (", "path", " == \"\"))"},
                     {"(", "n", " in {1, 2})"},
                     {"n in {", "n", "}"},
                     {"n in {(", "n", ")}"},
                     {"n[", "n", "]"},
                     {"n < ", "n", ""},
                     {"n == ", "n", ""},
                     {"n && ", "n", ""},
                     {"n | ", "n", ""},
                     {"sizeof(", "n", ")"},
                     {"", "o", "->next"},
                     {"", "o", "[0]"},
                     {"", "o", "[0].in[1]"},
                     {"not ", "n", ""},
                     {"*", "o", ""},
                     {"struct {", "int a;", "} x;"},
                     {"count(", "n", ")"},
                     {"n + ", "n", ""},
                     {"/*", "n", "*/"},
                     {"\"", "n", "\""}}};
                const auto& [open, middle, close] = nestings[pick(nestings.size())];
                const std::size_t depth = pick(2) == 0 ? pick(80) : pick(9000);
                made = pick(2) == 0 ? "@@uft:*:a:b:entry when " : "@@uft:*:a:b:entry { capture(";
                for (std::size_t i = 0; i < depth; ++i) made += open;
                made += middle;
                for (std::size_t i = 0; i < depth; ++i) made += close;
                return made + (pick(2) == 0 ? " { }" : "); }");
            }
            case 3:
                for (const char* part :
                     {"@@uft:*:a:b:entry when ", " { capture(", "); count(", "); hist("}) {
                    made += part;
                    made += expression(pick(6));
                }
                return made + "); }";
            default:
                made = "struct q { int a[" + expression(2);
                made += "]; struct order *p; unsigned b : " + std::to_string(pick(70));
                made += "; }; enum e { A = " + expression(2) + " }; typedef struct q t7; ";
                made += "@@uft:*:a:b:entry { capture((t7)" + expression(2) + "); }";
                for (std::size_t i = pick(4); i != 0; --i)
                    made[pick(made.size())] = static_cast<char>(random_());
                return made;
        }
    }

private:
    [[nodiscard]] std::size_t pick(std::size_t count) { return random_() % count; }
    [[nodiscard]] std::string tokens(std::size_t most) {
        constexpr const char* all[] = {"(",
                                       ")",
                                       "[",
                                       "]",
                                       "{",
                                       "}",
                                       "->",
                                       ".",
                                       "..",
                                       "*",
                                       "&",
                                       "+",
                                       "-",
                                       "~",
                                       "!",
                                       "<<",
                                       ">>",
                                       "<",
                                       "<=",
                                       "==",
                                       "!=",
                                       "&&",
                                       "||",
                                       "and",
                                       "or",
                                       "not",
                                       "in",
                                       "like",
                                       "=",
                                       ";",
                                       ",",
                                       "@@uft:*:a:b:entry",
                                       "@@begin",
                                       "when",
                                       "capture",
                                       "count",
                                       "hist",
                                       "str",
                                       "ustack",
                                       "sizeof",
                                       "comm",
                                       "arg0",
                                       "n",
                                       "o",
                                       "o->next",
                                       "path",
                                       "\"x\"",
                                       "'y'",
                                       "`f`",
                                       "0x",
                                       "0xff",
                                       "1u",
                                       "10ms",
                                       "9223372036854775807",
                                       "18446744073709551615",
                                       "1e400",
                                       "1.5",
                                       "struct order",
                                       "struct",
                                       "union",
                                       "enum",
                                       "typedef",
                                       "int",
                                       "unsigned",
                                       "long",
                                       "(int)",
                                       "(struct order *)",
                                       "(t7)",
                                       "true",
                                       "func",
                                       "retval",
                                       "elapsed",
                                       "#",
                                       "/*",
                                       "*/",
                                       "\n",
                                       "\\",
                                       "\x01",
                                       "\xFF",
                                       "struct a { int x; };",
                                       "enum e { A = 1, B };",
                                       "int a[",
                                       "3 %",
                                       "0",
                                       "1 << 70",
                                       " { capture(",
                                       "); }",
                                       "@@"};
        std::string made;
        for (std::size_t i = pick(most); i != 0; --i) {
            made += all[pick(std::size(all))];
            if (pick(3) != 0) made += ' ';
        }
        return made;
    }
    [[nodiscard]] std::string expression(std::size_t depth) {
        constexpr const char* leaves[] = {
            "n",     "arg0", "o->id",     "o->name",    "o",         "1",
            "0xffu", "comm", "str(path)", "\"t\"",      "pid",       "A",
            "func",  "*o",   "o[1].id",   "o->in[n].a", "ustack(3)", "10ms"};
        constexpr const char* signs[] = {"+",  "-", "*",  "/",  "%",   "&",  "|",  "^",  "<<",
                                         ">>", "<", "==", "!=", "and", "or", "&&", "||", ">="};
        if (depth == 0) return leaves[pick(std::size(leaves))];
        std::string one = expression(depth - 1);
        switch (pick(14)) {
            case 0:
                return "(" + one + ")";
            case 1:
                return std::string(1, "-~!*+"[pick(5)]) + one;
            case 2:
                return (pick(2) == 0 ? "(int)" : "(struct order *)") + one;
            case 3:
                return "str(" + one + ", 8)";
            case 4:
                return "sizeof(" + one + ")";
            case 5:
                return one + " in {" + expression(depth - 1) + ".." + expression(depth - 1) + "}";
            case 6:
                return one + "[" + expression(depth - 1) + "]";
            case 7:
                return one + "->next";
            default:
                return one + " " + signs[pick(std::size(signs))] + " " + expression(depth - 1);
        }
    }

    std::mt19937 random_;
};

/// How many of its clauses are compiled, in both modes, and run.
std::size_t run(const std::string& script) {
    const auto parsed = expressions::parse_script(script);
    if (const auto* why = std::get_if<point::mistake>(&parsed)) {
        BOOST_TEST(expressions::describe(script, *why) != "");
        return 0;
    }
    const auto& made = std::get<expressions::script>(parsed);
    tc::type_table wide(program_mode::lp64);
    tc::type_table narrow(program_mode::ilp32);
    tc::declare(
        "struct order { int id; struct order *next; char name[8]; struct { short a; } "
        "in[2]; double price; unsigned urgent : 3; };",
        0, wide, narrow);
    try {
        std::size_t declared = 0;
        for (const auto& each : made.declarations) {
            if (each.column >= declared) declared = tc::declare(script, each.column, wide, narrow);
        }
    } catch (const tc::declaration_error&) {
        return 0;
    }
    std::size_t ran = 0;
    for (tc::type_table* types : {&wide, &narrow}) {
        tc::function_type function;
        function.parameters = {{"o", types->pointer_to(types->find("struct order"))},
                               {"n", types->of(point::c_type::integer)},
                               {"path", types->pointer_to(types->of(point::c_type::character))}};
        tc::settle_places(*types, function, {});
        for (const auto& clause : made.clauses) {
            try {
                const auto code = tc::compile(
                    script, clause, {.types = *types, .declared = &function, .function = "b"});
                test::fake_firing at;
                at.memory.resize(128);
                at.registers = {{5, at.base}, {4, ~std::uint64_t{0}}, {1, at.base + 100}};
                std::vector<std::byte> output(code.output_bytes);
                if (!code.predicate.empty()) static_cast<void>(point::run(code.predicate, at, {}));
                static_cast<void>(point::run(code.action, at, output));
                ++ran;
            } catch (const point::mistake& why) {
                BOOST_TEST(expressions::describe(script, why) != "");
            }
        }
    }
    return ran;
}

}  // namespace

BOOST_AUTO_TEST_CASE(scripts_that_nobody_would_write_are_compiled_or_refused_at_once) {
    generator made(39);
    const unsigned scripts = trace_ring_test::repeats(8'000);
    std::size_t ran = 0;
    for (unsigned i = 0; i < scripts; ++i) {
        const std::string script = made.script();
        const auto begin = std::chrono::steady_clock::now();
        ran += run(script);
        const auto took = std::chrono::steady_clock::now() - begin;
        BOOST_TEST_REQUIRE((took < std::chrono::seconds(20)), script.substr(0, 1000));
    }
    BOOST_TEST(ran > scripts / 100);
    trace_ring_test::proof("clauses", scripts, "malformed scripts");
}

BOOST_AUTO_TEST_SUITE_END()
