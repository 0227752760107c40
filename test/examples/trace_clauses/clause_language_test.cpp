// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// The language of trace clauses: scripts are read, clauses are compiled for both modes of programs
// and run on made-up firings, and errors are reported with their place.

#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <trace_ring/point/machine/run.hpp>

#include <point/naive.hpp>
#include <trace_clauses/language/compile.hpp>
#include <trace_clauses/types/calling_convention.hpp>

BOOST_AUTO_TEST_SUITE(clause_language)

namespace point = trace_ring::point;
namespace tc = trace_clauses;
using point::c_type;
using tc::program_mode;

namespace {

constexpr program_mode both_modes[] = {program_mode::ilp32, program_mode::lp64};
[[nodiscard]] bool is_wide(program_mode mode) {
    return mode == program_mode::lp64;
}

/// struct order { int id; char side; long count; unsigned urgent : 3; int left : 5; char name[8];
///                struct { short a; struct order *next; } in[2]; double price; };
tc::type_id declare_order(tc::type_table& types) {
    const program_mode mode = types.mode();
    const auto size = [mode](c_type of) { return point::extent_of(of, mode); };
    const tc::type_id order = types.add({.is = tc::type::kind::structure, .name = "struct order"});
    types.name("struct order", order);
    point::layout inner(point::layout::structure);
    std::vector<tc::member> of_inner;
    of_inner.push_back(
        {"a", types.of(c_type::short_integer), *inner.add(size(c_type::short_integer))});
    of_inner.push_back({"next", types.pointer_to(order), *inner.add(size(c_type::pointer))});
    const tc::type_id in = types.add(
        {.is = tc::type::kind::structure, .size = inner.whole(), .members = std::move(of_inner)});
    point::layout layout(point::layout::structure);
    std::vector<tc::member> members;
    const auto add = [&](const char* name, tc::type_id type, point::extent of,
                         std::uint64_t count = 1) {
        members.push_back({name, type, *layout.add(of, count)});
    };
    const auto add_bits = [&](const char* name, bool is_signed, unsigned width) {
        members.push_back({name, types.of(c_type::integer, is_signed), 0,
                           *layout.add_bits(size(c_type::integer), width)});
    };
    add("id", types.of(c_type::integer), size(c_type::integer));
    add("side", types.of(c_type::character), size(c_type::character));
    add("count", types.of(c_type::long_integer), size(c_type::long_integer));
    add_bits("urgent", false, 3);
    add_bits("left", true, 5);
    add("name", types.array_of(types.of(c_type::character), 8), size(c_type::character), 8);
    add("in", types.array_of(in, 2), inner.whole(), 2);
    add("price", types.of(c_type::double_float), size(c_type::double_float));
    types[order].members = std::move(members);
    types[order].size = layout.whole();
    return order;
}

/// A process in which such a structure lies at its memory's beginning, and a text behind it.
test::fake_firing process(program_mode mode, const tc::type_table& types, tc::type_id order) {
    test::fake_firing made;
    made.base = is_wide(mode) ? 0x7F0000001000 : 0xF7001000;
    made.memory.resize(256);
    const auto put = [&](std::uint64_t at, std::uint64_t value, std::size_t bytes) {
        std::memcpy(&made.memory[static_cast<std::size_t>(at)], &value, bytes);
    };
    const auto at = [&](std::string_view name) {
        for (const auto& each : types[order].members) {
            if (each.name == name) return each.offset;
        }
        BOOST_FAIL("no member");
        return std::uint64_t{0};
    };
    const std::size_t long_bytes = is_wide(mode) ? 8 : 4;
    put(at("id"), static_cast<std::uint64_t>(-7), 4);
    put(at("side"), 0xFE, 1);
    put(at("count"), static_cast<std::uint64_t>(-3), long_bytes);
    put(at("count") + long_bytes, 5U | 0x1DU << 3, 1);  // urgent 5, left -3
    std::memcpy(&made.memory[static_cast<std::size_t>(at("name"))], "north", 6);
    const std::size_t inner = is_wide(mode) ? 16 : 8;
    put(at("in") + inner, static_cast<std::uint64_t>(-2), 2);
    put(at("in") + inner + inner / 2, made.base, long_bytes);
    const double price = 3.25;
    std::memcpy(&made.memory[static_cast<std::size_t>(at("price"))], &price, 8);
    std::memcpy(&made.memory[200], "/tmp/orders", 12);
    made.arguments = {made.base, std::uint64_t{0xFFFFFFFF}, made.base + 200,
                      std::uint64_t{1} << 40};
    // Where the ABI has them, of a function that is known.
    if (is_wide(mode)) {
        made.registers = {{5, made.base},
                          {4, 0xFFFFFFFF},
                          {1, made.base + 200},
                          {2, std::uint64_t{1} << 40},
                          {0, ~std::uint64_t{4}}};
    } else {
        constexpr std::size_t top = 228;
        made.registers = {{4, made.base + top}, {0, 0xFFFFFFFB}};
        std::size_t n = top;
        for (const std::uint64_t each : {made.base, std::uint64_t{0xFFFFFFFF}, made.base + 200,
                                         std::uint64_t{0}, std::uint64_t{0x100}})
            put(n += 4, each, 4);
    }
    made.words[point::context_word::returned] = is_wide(mode) ? ~std::uint64_t{4} : 0xFFFFFFFB;
    made.words[point::context_word::bits] = is_wide(mode) ? 64 : 32;
    made.words[point::context_word::process] = 4711;
    std::uint64_t name[2] = {};
    std::memcpy(name, "shop", 4);
    made.words[point::context_word::command] = name[0];
    made.frames = {0x11, 0x22};
    return made;
}

struct result {
    std::optional<std::string> wrong{};
    bool ran = false;
    std::uint32_t faults = 0;
    std::vector<std::byte> output{};
    tc::compiled code{};

    [[nodiscard]] std::int64_t number(std::size_t field = 0) const {
        std::int64_t value = 0;
        std::memcpy(&value, &output.at(code.statements.at(0).fields.at(field).offset), 8);
        return value;
    }
};

/// What the enumerations of the program say.
std::optional<tc::enumerator> value_of_program(const std::string& name) {
    if (name == "FULL") return tc::enumerator{8};
    if (name == "LARGE") return tc::enumerator{0xFFFFFFFF};
    if (name == "shop::state::OPEN") return tc::enumerator{5};
    if (name == "HIGH") return tc::enumerator{0x80000000, true};
    if (name == "OPEN") return tc::enumerator{5, false, 6};
    return std::nullopt;
}

/// One clause, run once. `declared`: its function is void f(struct order *o, int n, const char
/// *path, long long wide).
result run(const std::string& script, program_mode mode, bool declared = true,
           bool at_return = false) {
    result made;
    auto parsed = expressions::parse_script(script);
    if (const auto* why = std::get_if<point::mistake>(&parsed)) {
        made.wrong = expressions::describe_in_line(script, *why);
        return made;
    }
    tc::type_table types(mode);
    const tc::type_id order = declare_order(types);
    tc::function_type function;
    function.parameters = {{"o", types.pointer_to(order)},
                           {"n", types.of(c_type::integer)},
                           {"path", types.pointer_to(types.of(c_type::character))},
                           {"wide", types.of(c_type::long_long_integer)}};
    types.constant("FULL", {-7});
    types.name("size_of_all", types.of(c_type::long_integer, false));
    types.constant("n", {77});
    function.returns = types.of(c_type::integer);
    tc::settle_places(types, function, {});
    try {
        made.code = tc::compile(script, std::get<expressions::script>(parsed).clauses.at(0),
                                {.types = types,
                                 .declared = declared ? &function : nullptr,
                                 .at_return = at_return,
                                 .value = value_of_program});
    } catch (const point::mistake& why) {
        made.wrong = expressions::describe_in_line(script, why);
        return made;
    }
    test::fake_firing at = process(mode, types, order);
    if (!is_wide(mode)) at.arguments = {at.base, 0xFFFFFFFF, at.base + 200, 0, 0x100};
    if (!made.code.predicate.empty()) {
        const auto wanted = point::run(made.code.predicate, at, {});
        made.faults = wanted.faults;
        if (wanted.value == 0 || wanted.faults != 0) return made;
    }
    made.ran = true;
    made.output.resize(made.code.output_bytes);
    made.faults = point::run(made.code.action, at, made.output).faults;
    return made;
}
/// A value in both modes; `at_return` where a function exits.
void check(const std::string& value, std::int64_t in_32, std::int64_t in_64, bool declared = true,
           bool at_return = false) {
    for (const auto mode : both_modes) {
        const result made =
            run("@@uft:*:shop:f:entry { capture(" + value + "); }", mode, declared, at_return);
        BOOST_TEST_CONTEXT(value << " in " << (is_wide(mode) ? 64 : 32)) {
            BOOST_REQUIRE_MESSAGE(!made.wrong, made.wrong.value_or(""));
            BOOST_TEST(made.number() == (is_wide(mode) ? in_64 : in_32));
            BOOST_TEST(made.faults == 0U);
        }
    }
}
void holds(const std::string& condition, bool expected = true) {
    for (const auto mode : both_modes) {
        const result made = run("@@uft:*:shop:f:entry when " + condition + " { }", mode);
        BOOST_TEST_CONTEXT(condition << " in " << (is_wide(mode) ? 64 : 32)) {
            BOOST_REQUIRE_MESSAGE(!made.wrong, made.wrong.value_or(""));
            BOOST_TEST(made.ran == expected);
        }
    }
}
void refuses(const std::string& script, const std::string& said) {
    const result made = run(script, program_mode::lp64);
    BOOST_TEST(made.wrong.value_or("") == said);
}

}  // namespace

BOOST_AUTO_TEST_CASE(longs_pointers_and_members_are_those_of_the_process) {
    check("o->id", -7, -7);
    check("o->side", -2, -2);
    check("o->count", -3, -3);
    check("o->urgent", 5, 5);
    check("o->left", -3, -3);
    check("o->in[1].a", -2, -2);
    check("o->in[n + 2].a", -2, -2);
    check("o->in[1].next->count", -3, -3);
    check("o->in[1].next == o", 1, 1);
    check("(*o->in[1].next).id", -7, -7);
    check("o[0].id", -7, -7);
    check("*(int *)arg0", -7, -7);
    check("((struct order *)arg0)->left", -3, -3);
    check("sizeof(long)", 4, 8);
    check("sizeof(struct order *)", 4, 8);
    check("sizeof(struct order)", 48, 72);
    check("sizeof(o->in)", 16, 32);
    check("bits", 32, 64);
    check("pid", 4711, 4711);
}

BOOST_AUTO_TEST_CASE(arguments_are_as_declared_or_unsigned_long) {
    check("arg1", -1, -1);
    check("n", -1, -1);
    check("arg1", 0xFFFFFFFF, 0xFFFFFFFF, false);
    check("wide", std::int64_t{1} << 40, std::int64_t{1} << 40);  // in 32 bits of two words
    check("retval", -5, -5, true, true);
    check("retval", -5, -5, false, true);
}

BOOST_AUTO_TEST_CASE(what_enumerations_call_a_value_is_that_value) {
    check("FULL", -7, -7);  // the script's own
    check("LARGE + 1", 0x100000000, 0x100000000);
    check("~HIGH", 0x7FFFFFFF, 0x7FFFFFFF);  // of an enumeration without negative ones
    check("HIGH * 2", 0, 0);
    holds("-1 > HIGH");
    check("`shop::state::OPEN`", 5, 5);
    check("n", -1, -1);  // an argument's name
    check("n", 77, 77, false);
    holds("o->id == FULL and o->urgent == `shop::state::OPEN`");
    holds("o->id in {FULL}");
    refuses("@@a:b:c when o->id == OPEN { }",
            "column 23: 'OPEN' is 5 and 6 in this program: declare the enumeration that is meant");
    refuses("@@a:b:c when o->id == FUL { }",
            "column 23: there is no 'FUL' here; did you mean 'FULL'?");
}

BOOST_AUTO_TEST_CASE(arithmetic_converts_and_wraps_as_c_does) {
    check("n + 1", 0, 0);
    check("n / 2", 0, 0);
    check("(unsigned)n / 2", 0x7FFFFFFF, 0x7FFFFFFF);
    check("(long)n / 2", 0, 0);
    check("(unsigned long)n", 0xFFFFFFFF, -1);
    check("2147483647 + 1", INT32_MIN, INT32_MIN);
    check("2147483648 + 1", 2147483649, 2147483649);
    check("1 << 31", INT32_MIN, INT32_MIN);
    check("(long long)1 << 32 >> 32", 1, 1);
    check("-7 % 3", -1, -1);
    check("~0 & 0xFF", 255, 255);
    check("6 | 9 ^ 15", 6, 6);
    check("1 << 2 + 3", 32, 32);
    check("13 & 3 + 1", 4, 4);
    check("5 & 4 == 4", 1, 1);
    check("-1 == 0xffffffff", 1, 1);
    check("-1 < 10u", 0, 0);
    check("-1 < 4294967295", 1, 1);
    check("4000000000 * 2", 8000000000, 8000000000);
    check("4000000000u * 2", 3705032704, 3705032704);
    check("010 + 0x10UL", 24, 24);
    check("3s + 1s", 4'000'000'000, 4'000'000'000);
    check("3 < 2 < 1", 1, 1);
    check("2 == (1 < 2)", 0, 0);
    check("!o->id == 0", 1, 1);
    check("!!o->id + !~-1", 2, 2);
    check("o->urgent - 6 < 0", 1, 1);  // bits that an int holds are one
    check("(size_of_all)1 + (size_of_all)n", 0, 0);
    check("- - 5 + + 5", 10, 10);
    check("18446744073709551615", -1, -1);
    check("-9223372036854775808", INT64_MIN, INT64_MIN);
    check("10ms", 10'000'000, 10'000'000);
    check("o + 1 == (struct order *)((unsigned long)o + sizeof(struct order))", 1, 1);
    holds("n < 0");
    holds("(unsigned)n > 5");
    holds("n < (unsigned)5", false);  // as C has it
    holds("-1 < (long)1");
    holds("0xFFFFFFFF == (unsigned)n");
}

BOOST_AUTO_TEST_CASE(conditions_end_where_they_are_decided) {
    holds("o->id == -7 and o->count < 0 and not o->side == 1");
    holds("o->id == 1 or o->id == 2 or o->id == -7");
    holds("o->id == 1 or o->id == 2", false);
    holds("o->id in {1, -10..-5}");
    holds("o->id not in {1, 2, 3}");
    holds("o->id in {-6..-1}", false);
    holds("(o->id > 0) == (o->count > 0)");
    holds("true");
    holds("o->urgent");
    // What lies behind is not read.
    holds("o->id == 1 and *(int *)8 == 0", false);
    holds("o->id == -7 or *(int *)8 == 0");
    for (const auto mode : both_modes) {
        const result made = run("@@a:b:c when *(int *)8 == 0 { }", mode);
        BOOST_TEST(!made.ran);
        BOOST_TEST(made.faults == 1U);
    }
}

BOOST_AUTO_TEST_CASE(texts_are_compared_to_their_end) {
    holds("comm == \"shop\"");
    holds("comm == \"shopping\"", false);
    holds("comm != \"sho\"");
    holds("o->name == \"north\"");
    holds("o->name == \"nort\"", false);
    holds("\"northern\" != o->name");
    holds("str(path) == \"/tmp/orders\"");
    holds("str(path) == \"/tmp/order\"", false);
    holds("str(o->in[1].next->name) == \"north\"");
}

BOOST_AUTO_TEST_CASE(what_is_captured_has_one_shape_in_both_modes) {
    for (const auto mode : both_modes) {
        const result made =
            run("@@a:b:c { capture(o->count, o, str(path), str(path, 4), o->name, comm, ustack(3), "
                "o->price); "
                "count(pid, str(path)); hist(o->urgent); }",
                mode);
        BOOST_REQUIRE_MESSAGE(!made.wrong, made.wrong.value_or(""));
        BOOST_TEST(made.faults == 0U);
        const auto& fields = made.code.statements.at(0).fields;
        BOOST_REQUIRE(fields.size() == 8U);
        BOOST_TEST(fields[0].name == "o->count");
        BOOST_TEST(made.number(0) == -3);
        BOOST_TEST((fields[1].type == trace_ring::field_type::address));
        BOOST_TEST(made.number(1) == (is_wide(mode) ? 0x7F0000001000 : 0xF7001000));
        const auto text = [&](std::size_t field) {
            std::uint16_t length = 0;
            std::memcpy(&length, &made.output[fields[field].offset], 2);
            const bool cut = (length & point::text_was_cut) != 0;
            return std::string(
                       reinterpret_cast<const char*>(&made.output[fields[field].offset + 2]),
                       length & 0x7FFFU) +
                   (cut ? "..." : "");
        };
        BOOST_TEST(text(2) == "/tmp/orders");
        BOOST_TEST(text(3) == "/tmp...");
        BOOST_TEST((fields[4].form == trace_ring::field_form::array));
        BOOST_TEST(std::memcmp(&made.output[fields[4].offset], "north\0\0", 8) == 0);
        BOOST_TEST(std::memcmp(&made.output[fields[5].offset], "shop\0", 5) == 0);
        std::uint64_t frames[3];
        std::memcpy(frames, &made.output[fields[6].offset], sizeof frames);
        BOOST_TEST((frames[0] == 0x11 && frames[1] == 0x22 && frames[2] == 0));
        double price = 0;
        std::memcpy(&price, &made.output[fields[7].offset], 8);
        BOOST_TEST(price == 3.25);
        BOOST_TEST((made.code.statements.at(1).is == tc::statement::kind::count));
        BOOST_TEST((made.code.statements.at(2).is == tc::statement::kind::histogram));
    }
}

BOOST_AUTO_TEST_CASE(all_but_0_becomes_1_as_a_bool) {
    check("(bool)256", 1, 1);
    check("(_Bool)n", 1, 1);
    check("(_Bool)(n + 1)", 0, 0);
    check("(bool)(1 << 31)", 1, 1);
}

BOOST_AUTO_TEST_CASE(what_is_wrong_is_told_with_its_place_and_what_there_is) {
    refuses("@@a:b:c { hist(o->price); }", "column 16: a histogram is of whole numbers");
    refuses("@@a:b:c { capture(o->coutn); }",
            "column 19: struct order has no member 'coutn'; did you mean 'count'?");
    refuses("@@a:b:c { capture(o.id); }", "column 19: '.' of a pointer: write ->id");
    refuses("@@a:b:c { capture(n->id); }", "column 19: '->' of int, which is not a pointer");
    refuses("@@a:b:c { capture(pth); }", "column 19: there is no 'pth' here; did you mean 'path'?");
    refuses("@@a:b:c { capture(arg7); }", "column 19: the function has 4 arguments");
    refuses("@@a:b:c { capture(retval); }",
            "column 19: 'retval' is known where a function or system call exits");
    refuses("@@a:b:c { captrue(n); }",
            "column 11: there is no action 'captrue'; did you mean 'capture'?");
    refuses("@@a:b:c { capture(st(path)); }",
            "column 19: there is no function 'st'; did you mean 'str'?");
    refuses("@@a:b:c { capture((struct odrer *)n); }",
            "column 20: there is no type 'struct odrer *'");
    refuses("@@a:b:c when o { capture(o->in[1]); }", "column 26: a structure: name a member of it");
    refuses("@@a:b:c when o->price > 1 { }",
            "column 14: floating-point numbers can be captured, and not computed with");
    refuses("@@a:b:c when n == \"x\" { }",
            "column 14: a text compared with another type: use str(POINTER) for a text");
    refuses("@@a:b:c when str(path) < \"x\" { }",
            "column 24: texts are equal or not, and have no order");
    refuses("@@a:b:c when comm ~ \"s*\" { }",
            "column 19: globs are not for clauses: compare with ==");
    refuses("@@a:b:c { hist(str(path)); }", "column 16: a histogram is of whole numbers");
    refuses("@@a:b:c { capture(str(path, 5000)); }",
            "column 29: a number from 1 to 1024 is needed");
    refuses("@@a:b:c { capture(1.5); }", "column 19: a whole number is needed");
    refuses("@@a:b:c { n; }", "column 11: a statement is a call, as capture(arg0);");
    refuses("@@a:b:c\n  { capture(n) capture(n); }", "line 2, column 16: ';' is expected");
    refuses("@@a:b:c { capture(n); ", "column 23: it ends where '}' should follow");
    refuses("@@a:b:c when { }", "column 14: a condition is expected");
    refuses("hello", "column 1: a trace point, as @@uft:*:libc.so.6:malloc:entry is expected");
    refuses("@@a:b:c { capture(o + o); }",
            "column 19: of pointers there are POINTER + NUMBER and POINTER - NUMBER; cast it to a "
            "number");
    refuses("@@a:b:c { capture(n << 32); }",
            "column 24: a shift by all 32 bits or more is undefined in C");
    refuses("@@a:b:c { capture(08); }", "column 19: no octal number, which begins with 0");
    refuses("@@a:b:c { capture(10lul); }",
            "column 21: 'lul' is no unit: there are fs, ps, ns, us, ms, s, min, h and d (a name "
            "begins with a letter)");
    refuses("@@a:b:c { capture((size_of_all) - 1); }",
            "column 20: 'size_of_all' is a type: a cast is (size_of_all)(VALUE)");
    refuses("@@a:b:c { capture((no_such)1); }", "column 20: there is no type 'no_such'");
    std::string deep = "n";
    for (int i = 0; i < 40; ++i) deep = "1 + (" + deep + ")";
    refuses("@@a:b:c when " + deep + " > 0 { }", "column 256: too many values within each other");
    std::string chained = "n";
    std::string turned = "n";
    std::string texts = "str(path)";
    std::string sets = "n";
    for (int i = 0; i < 60; ++i) {
        chained += " < n < n";
        turned = "!-" + turned;
        if (i < 28) texts = "str(1 + (" + texts + " == \"\"))";
        sets = "(" + sets + " in {1, 2})";
    }
    constexpr const char* too_deep =
        "more than 64 parentheses, brackets, casts or members within each other";
    refuses("@@a:b:c when " + chained + " { }", std::string("column 272: ") + too_deep);
    refuses("@@a:b:c when " + turned + turned + " { }", std::string("column 14: ") + too_deep);
    refuses("@@a:b:c when " + texts + " == \"\" { }", "column 300: it is too long");
    refuses("@@a:b:c when " + sets + " { }", "column 74: it is too long");
}

BOOST_AUTO_TEST_CASE(a_script_has_declarations_clauses_and_comments) {
    const std::string text = R"(# first
struct order { int id; struct { long a; } in[2]; };
@@begin { }
@@uft:*:"a b":f:entry, @@uft:1:x:g:entry /* both */ when n > 1 {
    count();  # how often
    capture(n)
}
)";
    refuses("struct a { int b; /* ; } */ struct { struct { int c; } d; } e; # };\n}; @@a:b:c { x }",
            "line 2, column 14: a statement is a call, as capture(arg0);");
    refuses("struct a { int b; @@a:b:c { }",
            "column 1: a declaration that ends with ';' is expected");
    refuses("struct a }; /", "column 1: a declaration that ends with ';' is expected");
    refuses("struct a { /* ", "column 1: a declaration that ends with ';' is expected");
    const auto parsed = expressions::parse_script(text);
    BOOST_REQUIRE(std::holds_alternative<expressions::script>(parsed));
    const auto& made = std::get<expressions::script>(parsed);
    const auto part = [&](const expressions::text_place& of) {
        return text.substr(of.column, of.length);
    };
    BOOST_REQUIRE(made.declarations.size() == 1U);
    BOOST_TEST(part(made.declarations[0]) == "struct order { int id; struct { long a; } in[2]; };");
    BOOST_REQUIRE(made.clauses.size() == 2U);
    BOOST_TEST(part(made.clauses[0].points.at(0)) == "@@begin");
    BOOST_TEST(part(made.clauses[1].points.at(0)) == "@@uft:*:\"a b\":f:entry");
    BOOST_TEST(part(made.clauses[1].points.at(1)) == "@@uft:1:x:g:entry");
    BOOST_TEST(made.clauses[1].statements.size() == 2U);
}

BOOST_AUTO_TEST_SUITE_END()
