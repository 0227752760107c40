// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// The arithmetic of clauses is C's: precedence, conversions, the types of constants and of
// bit-fields. What a C compiler makes of generated expressions is the reference.

#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <trace_ring/point/machine/run.hpp>

#include <point/naive.hpp>
#include <trace_clauses/language/compile.hpp>
#include <trace_clauses/types/declarations.hpp>

#include "clause_programs.hpp"

BOOST_AUTO_TEST_SUITE(clause_arithmetic)

namespace point = trace_ring::point;
namespace tc = trace_clauses;
using tc::program_mode;

namespace {

constexpr std::string_view declaration =
    "struct values { signed char c; unsigned char uc; short s; unsigned short us; int i; "
    "unsigned u; long l; unsigned long ul; long long ll; unsigned long long ull; _Bool b; "
    "enum direction { UP = 2, DOWN = -5 } d; int b3 : 3; unsigned b5 : 5; unsigned b31 : 31; "
    "unsigned b32 : 32; int n; };\n";
constexpr const char* initial =
    "{-3, 250, -30000, 65000, -2147483647, 4000000000u, -77, 3000000001ul, -5000000000ll, "
    "18446744073709551000ull, 1, DOWN, -4, 30, 2147483645, 4294967290u, 64}";

/// Expressions as a C programmer might write them, with few parentheses.
class generator {
public:
    /// With the members of `v`, a pointer to such a structure; or of constants alone.
    generator(std::uint32_t seed, bool has_members) : random_(seed), has_members_(has_members) {}

    [[nodiscard]] std::string expression(int depth) {
        std::string made = operand(depth);
        for (std::size_t more = pick(4); more != 0; --more) {
            switch (const std::size_t which = pick(20)) {
                case 0:
                case 1:
                    // A division by 0, and a shift by too many bits, are undefined in C; for a
                    // variable's, the processor does.
                    made += (which == 0 ? " / ((" : " % ((") + expression(depth - 1) + ") & 7 ^ 8)";
                    break;
                case 2:
                case 3: {
                    const char* const sign = which == 2 ? " << " : " >> ";
                    if (has_members_) {
                        made += sign + std::string("v->n - ") + std::to_string(pick(64));
                    } else {
                        made = "(" + made + sign + std::to_string(pick(31)) + ")";
                    }
                    break;
                }
                default: {
                    constexpr const char* signs[] = {"+", "-",  "*",  "&", "|",  "^",  "==", "!=",
                                                     "<", "<=", ">=", ">", "&&", "||", "&",  "^"};
                    made += " " + std::string(signs[which - 4]) + " " + operand(depth);
                }
            }
        }
        return made;
    }

private:
    [[nodiscard]] std::size_t pick(std::size_t count) { return random_() % count; }
    [[nodiscard]] std::string operand(int depth) {
        constexpr const char* types[] = {
            "signed char", "unsigned char", "short",     "unsigned short",     "int",   "unsigned",
            "long",        "unsigned long", "long long", "unsigned long long", "_Bool", "char"};
        switch (pick(depth > 0 ? 10 : 6)) {
            case 0:
            case 1:
            case 2:
                if (has_members_) return member();
                [[fallthrough]];
            case 3:
                return "(" + std::string(types[pick(std::size(types))]) + ")" + constant();
            case 4:
            case 5:
                return constant();
            case 6:
                return std::string(1, "-~!+"[pick(4)]) + " " + operand(depth - 1);
            case 7:
                return "(" + std::string(types[pick(std::size(types))]) + ")" + operand(depth - 1);
            default:
                return "(" + expression(depth - 1) + ")";
        }
    }
    [[nodiscard]] std::string member() {
        constexpr const char* names[] = {"c",   "uc", "s", "us", "i",  "u",   "l",   "ul", "ll",
                                         "ull", "b",  "d", "b3", "b5", "b31", "b32", "n"};
        return std::string("v->") + names[pick(std::size(names))];
    }
    [[nodiscard]] std::string constant() {
        constexpr const char* texts[] = {"1",          "2",           "7",
                                         "100",        "2147483647",  "2147483648",
                                         "4294967295", "4294967296",  "9223372036854775807",
                                         "0xff",       "0x7fffffff",  "0x80000000",
                                         "0xFFFFFFFF", "0x100000000", "0xffffffffffffffff",
                                         "010",        "037777777777"};
        constexpr const char* suffixes[] = {"",  "",   "",   "u",  "U",  "l",
                                            "L", "ul", "LU", "ll", "ull"};
        return std::string(texts[pick(std::size(texts))]) + suffixes[pick(std::size(suffixes))];
    }

    std::mt19937 random_;
    bool has_members_;
};

/// What a clause makes of an expression, or a text that says why not.
[[nodiscard]] std::string value_in_clause(const std::string& expression, program_mode mode,
                                          const std::vector<std::byte>& values) {
    const std::string script =
        std::string(declaration) + "@@uft:*:shop:f:entry { capture(" + expression + "); }";
    const auto parsed = expressions::parse_script(script);
    if (const auto* why = std::get_if<point::mistake>(&parsed))
        return expressions::describe_in_line(script, *why);
    tc::type_table wide(program_mode::lp64);
    tc::type_table narrow(program_mode::ilp32);
    tc::declare(script, 0, wide, narrow);
    tc::type_table& types = mode == program_mode::lp64 ? wide : narrow;
    tc::function_type function;
    function.parameters = {{"v", types.pointer_to(types.find("struct values"))}};
    constexpr unsigned di = 5;
    function.parameters[0].place.pieces = {{.is = tc::value_piece::kind::reg,
                                            .number = di,
                                            .bytes = mode == program_mode::lp64 ? 8U : 4U}};
    try {
        const auto code = tc::compile(script, std::get<expressions::script>(parsed).clauses.at(0),
                                      {.types = types, .declared = &function});
        test::fake_firing at;
        at.memory = values;
        at.registers = {{di, at.base}};
        std::vector<std::byte> output(code.output_bytes);
        if (point::run(code.action, at, output).faults != 0) return "a fault";
        std::uint64_t value = 0;
        std::memcpy(&value, &output.at(code.statements.at(0).fields.at(0).offset), 8);
        return std::to_string(value);
    } catch (const point::mistake& why) {
        return expressions::describe_in_line(script, why);
    }
}

void compare(const std::vector<std::string>& expressions, const std::vector<std::string>& expected,
             program_mode mode, const std::vector<std::byte>& values) {
    BOOST_REQUIRE(expressions.size() == expected.size());
    for (std::size_t i = 0; i < expressions.size(); ++i) {
        BOOST_TEST_CONTEXT(expressions[i]) {
            BOOST_TEST(value_in_clause(expressions[i], mode, values) == expected[i]);
        }
    }
}

[[nodiscard]] std::vector<std::string> generated(std::uint32_t seed, bool has_members) {
    generator made(seed, has_members);
    std::vector<std::string> all;
    for (int i = 0; i < 2000; ++i) all.push_back(made.expression(3));
    return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(expressions_have_the_values_that_a_program_computes) {
    for (const int bits : {64, 32}) {
        if (!clause_programs::runs(bits)) continue;
        BOOST_TEST_CONTEXT(bits << " bits") {
            const auto expressions = generated(static_cast<std::uint32_t>(bits), true);
            std::string text = "#include <stdio.h>\n" + std::string(declaration) +
                               "volatile struct values all = " + initial +
                               ";\nint main(void) {\n  volatile struct values *v = &all;\n"
                               "  for (unsigned long i = 0; i < sizeof all; ++i) printf(\"%u \", "
                               "((unsigned char *)v)[i]);\n  puts(\"\");\n";
            for (const auto& each : expressions)
                text += "  printf(\"%llu\\n\", (unsigned long long)(" + each + "));\n";
            const test::folder folder;
            const std::string program = folder / "main";
            BOOST_REQUIRE(clause_programs::build(program, text + "}\n", "c", bits, "-O0 -fwrapv"));
            std::istringstream printed(clause_programs::printed(program));
            std::string line;
            std::getline(printed, line);
            std::istringstream bytes(line);
            std::vector<std::byte> values;
            for (unsigned one = 0; bytes >> one;) values.push_back(static_cast<std::byte>(one));
            std::vector<std::string> expected;
            while (std::getline(printed, line)) expected.push_back(line);
            compare(expressions, expected, bits == 64 ? program_mode::lp64 : program_mode::ilp32,
                    values);
        }
    }
}

// The compiler computes them, so that no program needs to run.
BOOST_AUTO_TEST_CASE(constants_have_the_values_that_a_compiler_computes) {
    for (const int bits : {64, 32}) {
        if (!clause_programs::builds(bits)) continue;
        BOOST_TEST_CONTEXT(bits << " bits") {
            const auto expressions = generated(static_cast<std::uint32_t>(bits) + 1, false);
            std::string text = "const unsigned long long all[] = {\n";
            for (const auto& each : expressions) text += "(" + each + "),\n";
            const test::folder folder;
            const std::string object = folder / "main";
            BOOST_REQUIRE(clause_programs::build(object, text + "};\n", "c", bits, "-c -fwrapv"));
            BOOST_REQUIRE(
                std::system(
                    ("objcopy -O binary -j .rodata " + object + " " + object + ".bytes").c_str()) ==
                0);
            const std::string bytes = clause_programs::text_of(object + ".bytes");
            std::vector<std::string> expected;
            for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8) {
                std::uint64_t value = 0;
                std::memcpy(&value, bytes.data() + at, 8);
                expected.push_back(std::to_string(value));
            }
            compare(expressions, expected, bits == 64 ? program_mode::lp64 : program_mode::ilp32,
                    {});
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()
