// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Conditions on records: what their text means, what is a mistake and where, and which records
/// they select, also by a second, slow evaluator.

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <examples/trace_reduce/where/where_trace.hpp>
#include <expressions/parse.hpp>
#include <proof.hpp>
#include <reduce/named_values.hpp>
#include <trace_reduce/where/check.hpp>
#include <trace_reduce/where/predicate.hpp>
#include <trace_ring/glob.hpp>
#include <trace_ring/recorder/recorder.hpp>
#include <trace_ring/reduce/trace_file.hpp>

BOOST_AUTO_TEST_SUITE(where_expressions)

using namespace trace_ring_test;

namespace {

namespace reduce = trace_ring::reduce;
namespace where = trace_reduce::where;
using expressions::parse;
using where::comparison;
using where::expression;
using where::form;
using where::number;

// --- What a text means ---------------------------------------------------------------------------

/// The tree, with every operator before its operands.
std::string shown(const expression& of) {
    const auto parts = [&of](std::string all) {
        for (const auto& part : of.parts) all += " " + shown(part);
        return "(" + all + ")";
    };
    constexpr const char* signs[] = {"", "<", "==", "<=", ">", "!=", ">="};
    switch (of.what) {
        case form::constant:
            return of.value.floating()
                       ? std::to_string(of.value.real())
                       : std::to_string(static_cast<std::uint64_t>(of.value.real()));
        case form::duration:
            return std::to_string(static_cast<std::uint64_t>(of.value.real())) + "ns";
        case form::text:
            return '"' + of.word + '"';
        case form::truth:
            return of.value.is_zero() ? "false" : "true";
        case form::name:
            return of.word;
        case form::field:
            return "`" + of.word + "`";
        case form::element:
            return of.word + "[" + std::to_string(static_cast<int>(of.value.real())) + "]";
        case form::negated:
            return parts(of.signs);
        case form::sum:
        case form::product:
            return parts(of.signs.substr(1));
        case form::compared:
            return parts(signs[static_cast<int>(of.sign)]);
        case form::among:
            return parts("in");
        case form::like:
            return parts("~\"" + of.word + "\"");
        case form::all_of:
            return parts("and");
        case form::any_of:
            return parts("or");
        case form::none_of:
            return parts("not");
        default:
            return "?";  // of clauses alone
    }
}

std::string read(const std::string& text) {
    const auto found = parse(text);
    if (const auto* what = std::get_if<where::mistake>(&found)) {
        return expressions::describe(text, *what);
    }
    return shown(std::get<expression>(found));
}

expression must_parse(const std::string& text) {
    auto found = parse(text);
    if (!std::holds_alternative<expression>(found)) BOOST_FAIL(text << ": " << read(text));
    return std::get<expression>(std::move(found));
}

// --- Which records it selects --------------------------------------------------------------------

/// A record by its lane and position.
using places = std::vector<std::pair<std::uint32_t, std::uint64_t>>;

struct opened {
    where_trace made;
    reduce::trace_file file = reduce::trace_file::from(made.file().bytes());

    explicit opened(std::size_t in_a_row = 150) : made(in_a_row) {}

    [[nodiscard]] std::optional<where::mistake> find_mistake(const expression& what) const {
        const reduce::tables* const one[] = {&file.about()};
        return where::find_mistake(what, one);
    }
    [[nodiscard]] reduce::filter filter(const expression& what) const {
        reduce::filter made_of;
        made_of.condition = std::make_shared<where::predicate>(file.about(), what);
        return made_of;
    }
    /// In the order in which they are read.
    [[nodiscard]] static places read(reduce::cursor cursor) {
        places found;
        while (const auto* item = cursor.next()) {
            if (const auto* record = std::get_if<reduce::record_view>(item)) {
                found.emplace_back(record->lane().number, record->position());
            }
        }
        return found;
    }
    [[nodiscard]] places select(const std::string& text) const {
        const expression what = must_parse(text);
        const auto wrong = find_mistake(what);
        BOOST_TEST(!wrong.has_value(), text << ": " << (wrong ? wrong->what : ""));
        const auto some = filter(what);
        const places forward = read(file.forward(some));
        places backward = read(file.backward(some));
        std::reverse(backward.begin(), backward.end());
        BOOST_TEST((forward == backward), text);
        return forward;
    }
    [[nodiscard]] std::size_t count(const std::string& text) const { return select(text).size(); }
};

// --- The same, slowly and another way ------------------------------------------------------------

/// long double holds every whole number of 64 bits on all machines that tests run on, and every
/// double.
using real = long double;
static_assert(std::numeric_limits<real>::digits >= 64);

struct slow_value {
    enum { nothing, undefined, whole, floating, text } is = nothing;
    real n = 0;
    std::string t;
};
real saturated(real n) {
    constexpr real most = 18446744073709551615.0L;
    constexpr real least = -9223372036854775808.0L;
    return n > most ? most : n < least ? least : n;
}

/// Values of one record by what is known of it, never by its bytes.
class slow {
public:
    explicit slow(const known_record& of) : of_(of) {}

    /// Nothing: unknown.
    [[nodiscard]] std::optional<bool> holds(const expression& e) const {
        switch (e.what) {
            case form::truth:
                return !e.value.is_zero();
            case form::all_of:
            case form::any_of: {
                const bool all = e.what == form::all_of;
                bool unknown = false;
                for (const auto& part : e.parts) {
                    const auto one = holds(part);
                    if (!one) {
                        unknown = true;
                    } else if (*one != all) {
                        return !all;
                    }
                }
                return unknown ? std::nullopt : std::optional(all);
            }
            case form::none_of: {
                const auto one = holds(e.parts[0]);
                return one ? std::optional(!*one) : one;
            }
            case form::compared:
                if (is_condition(e.parts[0])) {
                    const auto a = holds(e.parts[0]);
                    const auto b = holds(e.parts[1]);
                    if (!a || !b) return std::nullopt;
                    return (*a == *b) == (e.sign == comparison::equal);
                }
                return compare(value(e.parts[0]), e.sign, value(e.parts[1]));
            case form::among: {
                const auto left = value(e.parts[0]);
                if (left.is == slow_value::nothing) return std::nullopt;
                bool any = false;
                for (std::size_t i = 1; i < e.parts.size(); i += 2) {
                    any = any || (*compare(left, comparison::at_least, value(e.parts[i])) &&
                                  *compare(left, comparison::at_most, value(e.parts[i + 1])));
                }
                return any;
            }
            case form::like: {
                const auto left = value(e.parts[0]);
                if (left.is == slow_value::nothing) return std::nullopt;
                return trace_ring::matches_glob(e.word, left.t);
            }
            default: {
                const auto flag = value(e);
                return flag.is == slow_value::nothing ? std::nullopt : std::optional(flag.n != 0);
            }
        }
    }

private:
    static bool is_condition(const expression& e) {
        return e.what >= form::compared || e.what == form::truth || e.word == "flag";
    }
    static std::optional<bool> compare(const slow_value& a, comparison sign, const slow_value& b) {
        if (a.is == slow_value::nothing || b.is == slow_value::nothing) return std::nullopt;
        if (a.is == slow_value::undefined || b.is == slow_value::undefined) return false;
        const auto by = [sign](const auto& x, const auto& y) {
            switch (sign) {
                case comparison::equal:
                    return x == y;
                case comparison::unequal:
                    return x != y;
                case comparison::less:
                    return x < y;
                case comparison::at_most:
                    return x <= y;
                case comparison::more:
                    return x > y;
                default:
                    return x >= y;
            }
        };
        return a.is == slow_value::text ? by(a.t, b.t) : by(a.n, b.n);
    }

    [[nodiscard]] static slow_value of_field(const field_spec& field, const value_spec& v,
                                             std::size_t element) {
        if (field.type == field_type::character) {
            std::string text;
            for (const auto c : v.elements) text += static_cast<char>(c);
            while (field.form == field_form::array && text.ends_with('\0')) text.pop_back();
            return {slow_value::text, 0, text};
        }
        if (element >= v.elements.size()) return {};
        const std::uint64_t bits = v.elements[element];
        switch (field.type) {
            case field_type::f32:
                return {slow_value::floating,
                        std::bit_cast<float>(static_cast<std::uint32_t>(bits)),
                        {}};
            case field_type::f64:
                return {slow_value::floating, std::bit_cast<double>(bits), {}};
            case field_type::i8:
                return {slow_value::whole, static_cast<real>(static_cast<std::int8_t>(bits)), {}};
            case field_type::i16:
                return {slow_value::whole, static_cast<real>(static_cast<std::int16_t>(bits)), {}};
            case field_type::i32:
                return {slow_value::whole, static_cast<real>(static_cast<std::int32_t>(bits)), {}};
            case field_type::i64:
                return {slow_value::whole, static_cast<real>(static_cast<std::int64_t>(bits)), {}};
            default:
                return {slow_value::whole, static_cast<real>(bits), {}};
        }
    }
    [[nodiscard]] slow_value whole(std::uint64_t n) const {
        return {slow_value::whole, static_cast<real>(n), {}};
    }
    [[nodiscard]] slow_value named(const expression& e) const {
        if (e.what == form::name) {
            if (e.word == "ticks") return whole(of_.time);
            if (e.word == "position") return whole(of_.position);
            if (e.word == "lane") return whole(of_.lane);
            if (e.word == "tid") return whole(of_.lane == 3 ? 21 : 10 + of_.lane);
            if (e.word == "pid") return whole(of_.lane == 3 ? 1300 : 1200);
            if (e.word == "event") return {slow_value::text, 0, of_.event->name};
            if (e.word == "thread") {
                return {slow_value::text, 0, of_.lane == 2 ? "main" : "worker"};
            }
            if (e.word == "process") {
                return {slow_value::text, 0, of_.lane == 3 ? "other demo" : "demo"};
            }
        }
        for (std::size_t i = 0; i < of_.values.size(); ++i) {
            const auto& field = of_.event->fields[i];
            if (field.name != e.word) continue;
            const std::size_t element =
                e.what == form::element ? static_cast<std::size_t>(e.value.real()) : 0;
            return of_field(field, of_.values[i], element);
        }
        return {};
    }
    [[nodiscard]] slow_value value(const expression& e) const {
        switch (e.what) {
            case form::constant:
            case form::duration:
                if (e.value.floating()) return {slow_value::floating, e.value.real(), {}};
                return whole(exact(e.value));
            case form::text:
                return {slow_value::text, 0, e.word};
            case form::negated: {
                slow_value v = value(e.parts[0]);
                for (std::size_t i = 0; i < e.signs.size(); ++i) {
                    v.n = v.is == slow_value::whole ? saturated(-v.n) : -v.n;
                }
                return v;
            }
            case form::sum:
            case form::product: {
                std::vector<slow_value> all;
                for (const auto& part : e.parts) all.push_back(value(part));
                for (const auto& v : all) {
                    if (v.is == slow_value::nothing) return {};
                }
                slow_value v = all[0];
                for (std::size_t i = 1; i < all.size(); ++i) v = operate(v, e.signs[i], all[i]);
                return v;
            }
            default:
                return named(e);
        }
    }
    /// Of a whole number that is not negative.
    [[nodiscard]] static std::uint64_t exact(const number& n) {
        std::uint64_t low = 0;
        for (std::uint64_t bit = std::uint64_t{1} << 63; bit != 0; bit >>= 1) {
            if (number::of(low | bit) <= n) low |= bit;
        }
        return low;
    }
    [[nodiscard]] static slow_value operate(const slow_value& a, char sign, const slow_value& b) {
        if (a.is == slow_value::undefined) return a;
        if (b.is == slow_value::undefined) return b;
        slow_value r;
        r.is = a.is == slow_value::floating || b.is == slow_value::floating ? slow_value::floating
                                                                            : slow_value::whole;
        const bool divides = sign == '/' || sign == '%';
        if (divides && b.n == 0) return {slow_value::undefined, 0, {}};
        if (r.is == slow_value::floating) {
            const auto x = static_cast<double>(a.n);
            const auto y = static_cast<double>(b.n);
            r.n = sign == '+'   ? x + y
                  : sign == '-' ? x - y
                  : sign == '*' ? x * y
                  : sign == '/' ? x / y
                                : std::fmod(x, y);
            r.n = static_cast<double>(r.n);
            return r;
        }
        const real rest = divides ? std::fmod(a.n, b.n) : 0;
        r.n = saturated(sign == '+'   ? a.n + b.n
                        : sign == '-' ? a.n - b.n
                        : sign == '*' ? a.n * b.n
                        : sign == '/' ? (a.n - rest) / b.n
                                      : rest);
        return r;
    }

    const known_record& of_;
};

/// Expressions that make sense for some event, as text.
class maker {
public:
    explicit maker(std::uint64_t seed) : random_(seed) {}

    [[nodiscard]] std::string condition(int depth) {
        const std::size_t kind = below(depth <= 0 ? 6 : 10);
        switch (kind) {
            case 0:
                return text() + sign() + quoted();
            case 1:
                return text() + (below(2) == 0 ? " ~ " : " not like ") + glob();
            case 2:
                return std::string(below(2) == 0 ? "flag" : "not flag");
            case 3:
                return numeric(0) + (below(3) == 0 ? " not in {" : " in {") + set() + "}";
            case 4:
            case 5:
                return numeric(2) + sign() + numeric(2);
            case 6:
                return "not (" + condition(depth - 1) + ")";
            case 7:
                return "(" + condition(depth - 1) + ") == (" + condition(depth - 1) + ")";
            default: {
                const char* const joint = below(2) == 0 ? " and " : " or ";
                std::string all = "(" + condition(depth - 1);
                for (std::size_t i = 1 + below(2); i != 0; --i) {
                    all += joint + condition(depth - 1);
                }
                return all + ")";
            }
        }
    }

private:
    [[nodiscard]] std::size_t below(std::size_t n) {
        return static_cast<std::size_t>(random_() % n);
    }
    template <std::size_t N>
    [[nodiscard]] const char* one(const char* const (&of)[N]) {
        return of[below(N)];
    }
    [[nodiscard]] std::string sign() { return one({" == ", " != ", " < ", " <= ", " > ", " >= "}); }
    [[nodiscard]] std::string constant() {
        return one({"0",
                    "1",
                    "2",
                    "7",
                    "100",
                    "255",
                    "0x7FFF",
                    "2147483648",
                    "0xFFFFFFFF",
                    "9007199254740992",
                    "9007199254740993",
                    "9223372036854775807",
                    "9223372036854775808",
                    "18446744073709551614",
                    "18446744073709551615",
                    "0.0",
                    "0.25",
                    "2.5",
                    "9007199254740992.0",
                    "9223372036854775808.0",
                    "1.8446744073709552e19",
                    "1e300"});
    }
    [[nodiscard]] std::string numeric(int depth) {
        switch (below(depth <= 0 ? 4 : 8)) {
            case 0:
                return constant();
            case 1:
            case 2:
                return one({"u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f32", "f64",
                            "address", "row[0]", "row[1]", "list[0]", "list[2]", "`only here`"});
            case 3:
                return one({"ticks", "position", "lane", "tid", "pid"});
            case 4:
                return "-" + numeric(0);
            case 5:
                if (FLT_EVAL_METHOD != 0) return whole();  // sums of doubles may be rounded late
                return "(" + numeric(depth - 1) + one({" + ", " - "}) + numeric(depth - 1) + ")";
            default:
                return "(" + whole() + one({" * ", " / ", " % ", " - ", " + "}) + whole() + ")";
        }
    }
    /// What has exact products and quotients everywhere.
    [[nodiscard]] std::string whole() {
        return one({"u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "position", "0", "3",
                    "18446744073709551615", "0x8000000000000000"});
    }
    [[nodiscard]] std::string text() {
        return one({"event", "thread", "process", "letter", "tag", "event"});
    }
    [[nodiscard]] std::string quoted() {
        return one(
            {"\"every\"", "'texts.some'", "\"worker\"", "\"demo\"", "\"b\"", "\"t1\"", "''"});
    }
    [[nodiscard]] std::string glob() {
        return one({"\"*e*\"", "'texts.*'", "\"w?rker\"", "\"[ab]\"", "\"t[!1]\"", "'*'"});
    }
    [[nodiscard]] std::string set() {
        std::string all = element();
        for (std::size_t i = below(3); i != 0; --i) all += ", " + element();
        return all;
    }
    [[nodiscard]] std::string element() {
        return below(3) == 0 ? constant() + ".." + constant() : "-" + constant();
    }

    std::mt19937_64 random_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(operators_bind_as_the_table_says) {
    const std::pair<const char*, const char*> all[] = {
        {"a == 1 or b == 2 and not c == 3", "(or (== a 1) (and (== b 2) (not (== c 3))))"},
        {"a || b && !c == 3", "(or a (and b (not (== c 3))))"},
        {"(a or b) and c", "(and (or a b) c)"},
        {"a and b and c or d", "(or (and a b c) d)"},
        {"1 + 2 * -3 - 4 < 5 & 6", "(< (+- 1 (* 2 (- 3)) 4) (& 5 6))"},
        {"1 - (2 - 3) == - - 4", "(== (- 1 (- 2 3)) (-- 4))"},
        {"a * b / c % d != 0", "(!= (*/% a b c d) 0)"},
        {"not not a", "a"},
        {"! ! !a", "(not a)"},
        {"!(a)", "(not a)"},
        {"a != 1 && b !~ \"x\"", "(and (!= a 1) (not (~\"x\" b)))"},
        {"x in {1, 2, 0x10..0x1F}", "(in x 1 1 2 2 16 31)"},
        {"x not in {-3..-1}", "(not (in x (- 3) (- 1)))"},
        {"x in {1..5}", "(in x 1 5)"},
        {"not x in {'a'}", "(not (in x \"a\" \"a\"))"},
        {"e ~ \"a*\" or e like 'b' or e not like \"c\"",
         "(or (~\"a*\" e) (~\"b\" e) (not (~\"c\" e)))"},
        {"10ms <= time", "(<= 10000000ns time)"},
        {"t < 1.5us or t > 2h or t == 1e3ns or t == 1min",
         "(or (< t 1500ns) (> t 7200000000000ns) (== t 1000ns) (== t 60000000000ns))"},
        {"`odd name` == data[3]", "(== `odd name` data[3])"},
        {"`x`[1] >= 0xFFFFFFFF", "(>= x[1] 4294967295)"},
        {R"(s == "a\"\x41\n\\")", "(== s \"a\"A\n\\\")"},
        {"true or false", "(or true false)"},
        {"order.id == 1", "(== order.id 1)"},
        {"orange == android or inn == notes", "(or (== orange android) (== inn notes))"},
        {"(a > 1) == (b > 2)", "(== (> a 1) (> b 2))"},
        {" \t\na\r\n", "a"},
    };
    for (const auto& [text, tree] : all) BOOST_TEST(read(text) == tree, text);
}

BOOST_AUTO_TEST_CASE(what_is_no_expression_is_told_with_its_column) {
    struct wrong {
        const char* text;
        std::size_t column;
        const char* what;
    };
    const wrong all[] = {
        {"", 1, "it ends where a condition should follow"},
        {"   ", 4, "it ends where a condition should follow"},
        {"x ==", 5, "it ends where a value should follow"},
        {"x == and", 6, "a value is expected"},
        {"x = 5", 3, "'=' alone: equal is written =="},
        {"x == 5 7", 8, "'and', 'or' or the end is expected"},
        {"1 < x < 5", 7, "comparisons are not chained: write a < b and b < c"},
        {"(x == 1", 8, "it ends where ')' should follow"},
        {"x == 1)", 7, "'and', 'or' or the end is expected"},
        {"x in 5", 6, "'{' is expected"},
        {"x in {}", 7, "a value is expected"},
        {"x in {1, }", 10, "a value is expected"},
        {"x in {1..}", 10, "a value is expected"},
        {"x in {1", 8, "it ends where '}' should follow"},
        {"x == \"abc", 10, "it ends where '\"' should follow"},
        {"x == \"a\\q\"", 8, "no such escape: a \\ itself is written \\\\"},
        {"x == \"a\\x4\"", 8, "\\x is followed by two hexadecimal digits"},
        {"x == \"\\x4g\"", 7, "\\x is followed by two hexadecimal digits"},
        {"x ~ 5", 5, "a text in quotes is expected"},
        {"x > 5kg", 6,
         "'kg' is no unit: there are fs, ps, ns, us, ms, s, min, h and d (a name begins with a "
         "letter)"},
        {"x == 99999999999999999999", 6, "a number beyond 64 bits"},
        {"x == 0x10000000000000000", 6, "a number beyond 64 bits"},
        {"x == 0x", 6, "no hexadecimal number"},
        {"x == 1e999", 6, "a number that no double holds"},
        {"x > 300000000h", 5, "a duration beyond 292 years"},
        {"x > 1e30s", 5, "a duration beyond 292 years"},
        {"x[1.5] == 1", 3, "an element has a whole number"},
        {"x[2 == 1", 5, "']' is expected"},
        {"and", 1, "a condition is expected"},
        {"x == 1 or or", 11, "a condition is expected"},
        {"\xC3\xA9 > 5", 1, "a condition is expected"},
        {"x == '\xC3\xA9' y", 10, "'and', 'or' or the end is expected"},
    };
    for (const auto& [text, column, what] : all) {
        const std::string said = read(text);
        const std::string expected = "column " + std::to_string(column) + ": " + what + "\n";
        BOOST_TEST(said.starts_with(expected), "" << text << ": " << said);
        // The mark is below the place: two columns of margin, characters, not bytes.
        BOOST_TEST(said.substr(said.rfind('\n') + 1).find('^') == column + 1, text);
    }
    BOOST_TEST(read("x == 99999999999999999999") ==
               "column 6: a number beyond 64 bits\n"
               "  x == 99999999999999999999\n"
               "       ^~~~~~~~~~~~~~~~~~~~");
    // Of a long text, the part around the place.
    std::string much;
    for (int i = 0; i < 100; ++i) much += "a == 1 and ";
    BOOST_TEST(read(much + "= 5").ends_with(" a == 1 and = 5\n" + std::string(65, ' ') + "^"));
}

BOOST_AUTO_TEST_CASE(nesting_and_length_have_limits_and_the_stack_none_to_fear) {
    const auto nested = [](std::size_t depth) {
        return std::string(depth, '(') + "flag" + std::string(depth, ')');
    };
    BOOST_TEST(read(nested(64)) == "flag");
    const std::string limit =
        ": more than 64 parentheses, brackets, casts or members within each other\n";
    BOOST_TEST(read(nested(65)).starts_with("column 66" + limit));
    BOOST_TEST(read(std::string(60'000, '(')).starts_with("column 66" + limit));
    BOOST_TEST(read(std::string(70'000, '(')).starts_with("column 65537: longer than"));
    // Everything that makes the grammar recursive, or a tree deep. Also as a clause's predicate.
    const struct {
        std::string begin, again, end, rest;
    } shapes[] = {{"", "(int)", "u64", ""},     {"", "(struct s *)", "u64", ""},
                  {"", "(", "u64", ")"},        {"", "-(", "u64", ")"},
                  {"", "not (", "flag", ")"},   {"", "!(!(", "flag", "))"},
                  {"", "u64[", "1", "]"},       {"", "f(", "u64", ")"},
                  {"", "f(1,g(", "u64", "))"},  {"", "1 + (", "u64", ")"},
                  {"", "u64 == (", "u64", ")"}, {"u64 in {", "(", "1", ")"},
                  {"u64", "->m", "", ""},       {"u64[1]", ".m", "", ""},
                  {"u64", "[1]", "", ""},       {"", "(int)-(long)~(", "u64", ")"},
                  {"", "sizeof(", "u64", ")"},  {"", "flag and (", "flag", ")"},
                  {"", "(x_t)", "", ""},        {"", "*(int *)(", "u64", ")"}};
    for (const auto& shape : shapes) {
        for (const std::size_t times : {100U, 1000U, 10'000U}) {
            std::string of = shape.begin;
            for (std::size_t n = 0; n < times; ++n) of += shape.again;
            of += shape.end;
            for (std::size_t n = 0; n < times; ++n) of += shape.rest;
            if (of.size() > expressions::longest_expression) continue;
            BOOST_TEST(read(of).find(limit) != std::string::npos, of.substr(0, 40));
            const auto script = expressions::parse_script(
                "@@uft:*:a:b:entry when " + of.substr(0, expressions::longest_expression - 40) +
                " { count(); }");
            const auto* const wrong = std::get_if<expressions::mistake>(&script);
            BOOST_TEST((wrong != nullptr && limit.find(wrong->what) == 2), of.substr(0, 40));
        }
    }
    // Signs do not nest. Twice as many take about twice as long: this would not end otherwise.
    BOOST_TEST(read(std::string(60'000, '-') + "u64 == 1").find("column") == std::string::npos);
    BOOST_TEST(read(std::string(60'000, '!') + "flag") == "flag");
    BOOST_TEST(read("s == \"" + std::string(1000, '(') + "\"").starts_with("(== s"));
    // These nest nothing, however long they are.
    std::string text = "u64 == 1";
    while (text.size() < 60'000) text += " + 1 * 2";
    opened trace(1);
    BOOST_TEST(trace.count(text) == 0U);
    text = "u64 == 1";
    while (text.size() < 60'000) text += " or u64 == 1";
    BOOST_TEST(trace.count(text) == 0U);
    text = "u64";
    while (text.size() < 60'000) text += "+1";
    const auto long_one = must_parse(text + " == 1");
    const auto wrong = trace.find_mistake(long_one);
    BOOST_REQUIRE(wrong);
    BOOST_TEST(wrong->what ==
               "the condition becomes code of more than 65536 instructions: too long");
    BOOST_CHECK_THROW((void)opened::read(trace.file.forward(trace.filter(long_one))),
                      std::length_error);
    // Nor need it be asked where another part decides.
    BOOST_TEST(trace.count("(" + text + " == 1) and event == 'bare'") == 0U);
    text = std::string(30'000, '!') + " flag";
    BOOST_TEST(trace.count(text) == 1U);
    text = "i64 == " + std::string(30'001, '-') + "0";
    BOOST_TEST(trace.count(text) == 1U);
    // Depth multiplies nothing.
    text = "u64";
    for (int i = 0; i < 63; ++i) text = "(" + text + " + 1)";
    BOOST_TEST(trace.count(text + " == 64 or " + text + " == 63") == 2U);
}

BOOST_AUTO_TEST_CASE(every_type_is_compared) {
    opened t;
    const auto& all = t.made.records();
    const auto of_every = static_cast<std::size_t>(
        std::count_if(all.begin(), all.end(), [](const auto& r) { return r.event->id == 1; }));
    BOOST_TEST(t.count("u8 >= 0") == of_every + 1);  // and one span
    BOOST_TEST(t.count("u8 < 3 and event == \"every\"") == 3U);
    BOOST_TEST(t.count("u16 == 500") == 1U);
    BOOST_TEST(t.count("u32 == 0xFFFFFFFF") ==
               t.count("u64 == 0xFFFFFFFFFFFFFFFF and event == 'every'") +
                   t.count("u64 == 0x7FFFFFFFFFFFFFFF"));
    BOOST_TEST(t.count("i64 < 0") == t.count("u64 > 9223372036854775807 and event == 'every'"));
    BOOST_TEST(t.count("i8 < 0 or i8 >= 0") == of_every);
    BOOST_TEST(t.count("i16 > 32767 or i32 < -2147483648") == 0U);
    BOOST_TEST(t.count("f32 == 0.25") == 9U);
    BOOST_TEST(t.count("flag") == 50U);
    BOOST_TEST(t.count("not flag") == 100U);
    BOOST_TEST(t.count("flag == true and flag != false") == 50U);
    BOOST_TEST(t.count("letter == 'c'") == 37U);
    BOOST_TEST(t.count("letter < 'b'") == 38U);
    BOOST_TEST(t.count("tag == \"t2\"") == 50U);
    BOOST_TEST(t.count("tag in {'t0', 't1'}") == 100U);
    BOOST_TEST(t.count("address == 0x8000000000000000") == t.count("u64 == 0x8000000000000000"));
    BOOST_TEST(t.count("row[0] == 7 and row[1] == -7 and row[2] == 3") == 1U);
    BOOST_TEST(!t.find_mistake(must_parse("list[9] == 0")));  // of a varying length
    BOOST_TEST(t.count("name == \"name\"") == 3U);
    BOOST_TEST(t.count("name ~ 'name?'") == 3U);
    BOOST_TEST(t.count("name == 4") == 1U);  // of another event
    BOOST_TEST(t.count("list[1] == 71") == 1U);
    BOOST_TEST(t.count("`only here` == 19 or `only here` < 2") == 3U);
    BOOST_TEST(t.count("u64 & 1 == 1 and event == \"other\"") == 6U);
    BOOST_TEST(t.count("i64 & -2 == -2") > 0U);
}

BOOST_AUTO_TEST_CASE(whose_and_when_is_asked_by_names_that_are_no_fields) {
    opened t;
    const std::size_t all = t.made.records().size();
    const auto of_lane = [&](std::uint32_t lane) {
        const auto& in = t.made.records();
        return static_cast<std::size_t>(
            std::count_if(in.begin(), in.end(), [lane](const auto& r) { return r.lane == lane; }));
    };
    BOOST_TEST(t.count("true") == all);
    BOOST_TEST(t.count("false") == 0U);
    BOOST_TEST(t.count("thread == 12") == of_lane(2));
    BOOST_TEST(t.count("thread == 'worker'") == of_lane(1) + of_lane(3));
    BOOST_TEST(t.count("thread ~ 'w*' and tid != 11") == of_lane(3));
    BOOST_TEST(t.count("thread in {11, 21}") == of_lane(1) + of_lane(3));
    BOOST_TEST(t.count("thread in {\"main\"}") == of_lane(2));
    BOOST_TEST(t.count("process == 1300 and process == \"other demo\"") == of_lane(3));
    BOOST_TEST(t.count("pid < 1300") == of_lane(1) + of_lane(2));
    BOOST_TEST(t.count("lane == 1 or not lane >= 2") == of_lane(1));
    BOOST_TEST(t.count("position < 2") == 6U);
    BOOST_TEST(t.count("lane * 10 + position == 25") == 1U + 1U);  // also 1 * 10 + 15
    BOOST_TEST(t.count("event == \"every\"") == of_lane(1));
    BOOST_TEST(t.count("event ~ '*.*' or event > 'sp'") == 22U);
    BOOST_TEST(t.count("ticks == 2010") == 1U);
    // Tick 1000 is the trace's beginning.
    BOOST_TEST(t.count("time == 1010ns") == 1U);
    BOOST_TEST(t.count("time < 1.02us") == 2U);
    BOOST_TEST(t.count("time >= 9us and time < 1s") == 2U);
    BOOST_TEST(t.count("time > 12s") == 1U);
    BOOST_TEST(t.count("time - 2us > 10s") == 1U);
    BOOST_TEST(t.count("time % 1us == 10ns") == t.count("ticks % 1000 == 10"));
    BOOST_TEST(t.count("latest == time") == all);
    BOOST_TEST(t.count("1us <= time and 2us > time") == t.count("ticks >= 2000 and ticks < 3000"));
}

/// Requests everything, and counts; throws now and then.
struct counting : where::condition {
    mutable std::size_t chosen = 0, passed = 0, calls = 0;
    std::size_t throws_each = 0;

    void call() const {
        if (++calls % 3 == 0 && throws_each != 0) throw calls;
    }
    [[nodiscard]] portion choose(const reduce::record_run& of) const override {
        call();
        chosen += of.size();
        return {0, of.size()};
    }
    void pass_over(std::size_t count) const override {
        call();
        passed += count;
    }
};

BOOST_AUTO_TEST_CASE(a_condition_is_told_of_what_is_passed_over_and_may_throw) {
    opened t;
    const std::size_t all = t.made.records().size();
    for (const std::size_t throws : {0U, 1U}) {
        for (const bool backward : {false, true}) {
            for (const char* glob : {"no.such.event", "bare", "*"}) {
                auto counts = std::make_shared<counting>();
                counts->throws_each = throws;
                reduce::filter what;
                what.events = {glob};
                what.condition = counts;
                auto cursor = backward ? t.file.backward(what) : t.file.forward(what);
                std::size_t read = 0, thrown = 0;
                for (;;) {
                    try {
                        const auto* item = cursor.next();
                        if (item == nullptr) break;
                        if (std::holds_alternative<reduce::record_view>(*item)) ++read;
                    } catch (const std::size_t&) {
                        ++thrown;
                    }
                }
                BOOST_TEST(counts->chosen == read);
                BOOST_TEST(counts->chosen + counts->passed == all);
                BOOST_TEST(read == (glob[0] == '*' ? all : glob[0] == 'b' ? 4U : 0U));
                BOOST_TEST((thrown != 0) == (throws != 0));
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(a_sampled_clock_gives_bounds_and_no_instants) {
    file_builder b;
    b.clock_reading(0, 0, 1'700'000'000'000'000'000);
    b.clock_reading(1'000'000'000, 1'000'000'000, 1'700'000'001'000'000'000);
    const auto& tick = b.event({1, "tick", {{"n"}}});
    const auto lane = b.lane(b.process(1), 1);
    b.open(lane, 100);
    for (std::uint64_t n = 0; n < 3; ++n) {
        b.record(lane, 100, tick, {n}, trace_ring::record_word::interval);
    }
    b.record(lane, 200, tick, {3});
    b.record(lane, 200, tick, {4}, trace_ring::record_word::interval);
    const auto file = reduce::trace_file::from(b.bytes());
    const auto count = [&](const char* text) {
        reduce::filter some;
        some.condition = std::make_shared<where::predicate>(file.about(), must_parse(text));
        return opened::read(file.forward(some)).size();
    };
    BOOST_TEST(count("time == 100ns") == 3U);
    BOOST_TEST(count("latest == 200ns") == 4U);
    // When the last one was at the latest, nobody knows yet.
    BOOST_TEST(count("latest > 0s or latest <= 0s") == 4U);
    BOOST_TEST(count("not latest == 5s") == 4U);
    BOOST_TEST(count("time < 150ns and latest > 150ns") == 3U);
}

BOOST_AUTO_TEST_CASE(what_a_record_does_not_have_is_unknown_and_so_is_its_opposite) {
    opened t;
    const std::size_t have = t.count("flag or not flag");
    BOOST_TEST(have == 150U);
    BOOST_TEST(t.count("u8 == 7") == 2U);
    BOOST_TEST(t.count("not u8 == 7") == 149U);
    BOOST_TEST(t.count("not not not u8 == 7") == 149U);
    BOOST_TEST(t.count("u8 == 7 or true") == t.made.records().size());
    BOOST_TEST(t.count("u8 == 7 and false") == 0U);
    BOOST_TEST(t.count("not (u8 == 7 and false)") == t.made.records().size());
    BOOST_TEST(t.count("u8 == 7 or event == 'bare'") == 2U + 4U);
    BOOST_TEST(t.count("not (u8 == 7 or event == 'bare')") == 149U);
    BOOST_TEST(t.count("(u8 == 7) == (event == 'bare')") == 149U);
    BOOST_TEST(t.count("(u8 == 7) != (event == 'bare')") == 2U);
    BOOST_TEST(t.count("list[2] > 0 or not list[2] > 0") == 5U);
    BOOST_TEST(t.count("name == \"namea\" or not name == 'namea'") == 20U);  // elsewhere a number
    // The end of a span does not have the fields, but has the event.
    BOOST_TEST(t.count("event == 'span'") == 2U);
    BOOST_TEST(t.count("event == 'span' and u8 == 7") == 1U);
    BOOST_TEST(t.count("event == 'span' and not u8 == 7") == 0U);
}

BOOST_AUTO_TEST_CASE(a_field_of_one_event_is_asked_by_the_names_of_both) {
    opened t;
    const std::size_t every = t.count("event == 'every'");
    const std::size_t texts = t.count("event == 'texts.some'");
    const std::size_t others = t.count("event == 'other'");
    BOOST_TEST(texts == 20U);
    BOOST_TEST(t.count("u64 >= 0") == every + texts + others);
    BOOST_TEST(t.count("texts.some.u64 >= 0") == texts);
    BOOST_TEST(t.count("texts.some.u64 >= 0 or other.u64 >= 0") == texts + others);
    BOOST_TEST(t.count("not texts.some.u64 >= 0") == 0U);  // unknown of all others
    BOOST_TEST(t.count("every.u8 == 7") == t.count("event == 'every' and u8 == 7"));
    BOOST_TEST(t.count("every.u8 == 7") == 1U);  // a span has another u8
    BOOST_TEST(t.count("texts.some.name == 'namea'") == t.count("name == 'namea'"));
    BOOST_TEST(t.count("other.name >= 0") == others);
    BOOST_TEST(t.count("every.row[0] == every.row[0]") == every);
    BOOST_TEST(t.count("`texts.some.only here` >= 0") == texts);
    // A field that is called so is meant, too.
    file_builder b;
    const auto& first = b.event({1, "a", {{"b"}}});
    const auto& second = b.event({2, "c", {{"a.b"}}});
    const auto lane = b.lane(b.process(1), 1);
    b.open(lane, 100);
    b.record(lane, 100, first, {1});
    b.record(lane, 110, second, {1});
    const auto file = reduce::trace_file::from(b.bytes());
    reduce::filter some;
    some.condition = std::make_shared<where::predicate>(file.about(), must_parse("a.b == 1"));
    BOOST_TEST((opened::read(file.forward(some)) == places{{1, 0}, {1, 1}}));
}

BOOST_AUTO_TEST_CASE(numbers_of_any_type_compare_exactly) {
    constexpr double two63 = 9223372036854775808.0;
    constexpr double two64 = 18446744073709551616.0;
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const auto u = [](std::uint64_t n) { return number::of(n); };
    const auto i = [](std::int64_t n) { return number::of(n); };
    const auto f = [](double n) { return number::of(n); };
    constexpr std::uint64_t top = ~std::uint64_t{0};
    // In ascending order, with as many that are the same in each.
    const std::vector<std::vector<number>> order = {
        {f(-infinity)},
        {f(-two64)},
        {i(INT64_MIN), f(-two63)},
        {i(INT64_MIN + 1)},
        {i(-1), f(-1)},
        {f(-0.5)},
        {u(0), i(0), f(0.0), f(-0.0)},
        {f(0.5)},
        {u(9007199254740992), f(9007199254740992.0)},
        {u(9007199254740993)},
        {u(9007199254740994), f(9007199254740994.0)},
        {i(INT64_MAX), u(INT64_MAX)},
        {u(std::uint64_t{1} << 63), f(two63)},
        {u(top)},
        {f(two64)},
        {f(infinity)},
    };
    for (std::size_t a = 0; a < order.size(); ++a) {
        for (std::size_t b = 0; b < order.size(); ++b) {
            for (const auto& x : order[a]) {
                for (const auto& y : order[b]) {
                    BOOST_TEST(((x <=> y) < 0) == (a < b));
                    BOOST_TEST(((x <=> y) > 0) == (a > b));
                    BOOST_TEST((x == y) == (a == b));
                }
            }
        }
        for (const auto& x : order[a]) {
            BOOST_TEST(((x <=> f(nan)) == std::partial_ordering::unordered));
            BOOST_TEST(((f(nan) <=> x) == std::partial_ordering::unordered));
        }
    }
    // What is beyond 64 bits stops at the limit.
    BOOST_TEST((u(top) + u(1) == u(top)));
    BOOST_TEST((u(top) + i(-1) == u(top - 1)));
    BOOST_TEST((u(0) - u(1) == i(-1)));
    BOOST_TEST((u(5) - u(top) == i(INT64_MIN)));
    BOOST_TEST((i(INT64_MIN) - u(top) == i(INT64_MIN)));
    BOOST_TEST((i(INT64_MIN) - i(INT64_MIN) == u(0)));
    BOOST_TEST((u(top) - i(-5) == u(top)));
    BOOST_TEST((u(top) * u(2) == u(top)));
    BOOST_TEST((u(top) * i(-2) == i(INT64_MIN)));
    BOOST_TEST((i(INT64_MIN) * i(-1) == u(std::uint64_t{1} << 63)));
    BOOST_TEST((-i(INT64_MIN) == u(std::uint64_t{1} << 63)));
    BOOST_TEST((-u(top) == i(INT64_MIN)));
    BOOST_TEST((-u(0) == u(0)));
    BOOST_TEST((i(-7) / u(2) == i(-3)));
    BOOST_TEST((i(-7) % u(2) == i(-1)));
    BOOST_TEST((u(7) % i(-2) == u(1)));
    BOOST_TEST((i(-1) / u(2) == u(0)));
    BOOST_TEST(((i(-1) & u(top)) == u(top)));
    BOOST_TEST(((i(-4) & i(-2)) == i(-4)));
    BOOST_TEST((u(7) / f(2) == f(3.5)));
    BOOST_TEST((f(7.5) % u(2) == f(1.5)));

    opened t;
    BOOST_TEST(t.count("u64 > i64 and event == 'every'") == t.count("i64 < 0"));
    BOOST_TEST(t.count("i64 == u64 and event == 'every'") == t.count("i64 >= 0"));
    BOOST_TEST(t.count("u64 == 9007199254740992.0") == 0U);
    BOOST_TEST(t.count("u64 < 1.8446744073709552e19 and event == 'every'") == 150U);
    BOOST_TEST(t.count("u64 > 0.5 and u64 < 1.5 and event == 'every'") == 17U);
    BOOST_TEST(t.count("f64 == 18446744073709551615") == 0U);
    BOOST_TEST(t.count("f64 > 18446744073709551615") == 30U);  // 2^64 and infinity
    BOOST_TEST(t.count("f64 == 0") == 30U);
    BOOST_TEST(t.count("f64 in {-9223372036854775808..-9223372036854775808}") == 15U);
    // Not a number compares with nothing, and is unequal to everything.
    BOOST_TEST(t.count("f64 != f64") == 15U);
    BOOST_TEST(t.count("f64 < 0 or f64 >= 0") == 135U);
    BOOST_TEST(t.count("not (f64 < 0 or f64 >= 0)") == 15U);
    BOOST_TEST(t.count("f64 != 0") == 120U);
    BOOST_TEST(t.count("not f64 == 0") == 120U);
    BOOST_TEST(t.count("f64 in {-1e308..1e308}") == 105U);
    BOOST_TEST(t.count("not f64 in {-1e308..1e308}") == 45U);
    // A division by zero makes its comparison false.
    BOOST_TEST(t.count("1 / (u8 - 1) >= 0 or 1 / (u8 - 1) < 0") == 150U);
    BOOST_TEST(t.count("1 / 0 == 1 or 1 % 0 != 1") == 0U);
    BOOST_TEST(t.count("not 1.0 / 0 == 1") == t.made.records().size());
    BOOST_TEST(t.count("u64 in {1 / 0, 0..1/0}") == 0U);
}

BOOST_AUTO_TEST_CASE(what_makes_no_sense_is_told_before_a_record_is_read) {
    opened t;
    struct wrong {
        const char* text;
        std::size_t column;
        const char* what;
    };
    const wrong all[] = {
        {"u644 > 1", 1, "no event has a field 'u644'; did you mean 'u64'?"},
        {"flag and lettr == 'a'", 10, "no event has a field 'lettr'; did you mean 'letter'?"},
        {"tread == 5", 1, "no event has a field 'tread'; did you mean 'thread'?"},
        {"event == 'x' and quite_another > 1", 18, "no event has a field 'quite_another'"},
        {"`time` > 5", 1, "no event has a field 'time'; did you mean 'time'?"},
        {"texts.some.u65 > 5", 1,
         "no event has a field 'texts.some.u65'; did you mean 'texts.some.u64'?"},
        {"other.quite_another > 5", 1,
         "no event has a field 'other.quite_another'; there is 'other.name', 'other.u64'"},
        {"quite.another.name > 5", 1,
         "no event has a field 'quite.another.name'; there is 'other.name', 'texts.some.name'"},
        {"other.name == 'x'", 12, "a number compared with a text"},
        {"u8 == 'a'", 4, "a number compared with a text"},
        {"letter != 5", 8, "a text compared with a number"},
        {"event == 5", 7, "a text compared with a number"},
        {"flag == 1", 6, "a condition compared with a number"},
        {"flag < true", 6, "conditions are equal or not, and have no order"},
        {"time > 5", 8, "a number compared with a time: it needs a unit, as 10ms has"},
        {"u8 < time", 1, "a number compared with a time: it needs a unit, as 10ms has"},
        {"time + 5 > 10ms", 8, "a number added to a time: it needs a unit, as 10ms has"},
        {"time + time > 10ms", 1, "times that are added up"},
        {"u8 ~ \"5\"", 1, "a number, where a text is needed"},
        {"u8", 1, "a number, where a condition is needed"},
        {"flag and (u8 or flag)", 11, "a number, where a condition is needed"},
        {"not event", 5, "a text, where a condition is needed"},
        {"5", 1, "a number, where a condition is needed"},
        {"letter + 1 == 2", 1, "a text, where a number is needed"},
        {"u8 + (flag) == 2", 7, "a condition, where a number is needed"},
        {"-letter == 2", 2, "a text, where a number is needed"},
        {"f64 & 1 == 1", 1, "'&' is for whole numbers"},
        {"row == 5", 1, "'row' is an array: write row[0]"},
        {"u8[0] == 5", 1, "'u8' is no array"},
        {"flag and row[3] == 0", 10, "'row' has 3 elements: the last is row[2]"},
        {"not every.row[99999999999] > 0", 5,
         "'every.row' has 3 elements: the last is every.row[2]"},
        {"u8 in {1, 'a'}", 11, "a number compared with a text"},
        {"u8 in {1, u16}", 11, "a set holds only what does not depend on records"},
        {"letter in {'a'..'c'}", 12, "texts have no ranges"},
        {"time in {5..6}", 10, "a number compared with a time: it needs a unit, as 10ms has"},
        {"event == 'no such' and u8 == 'a'", 27, "a number compared with a text"},
        {"event == 'texts.some' and u64 == 'a'", 31, "a number compared with a text"},
        // The first error in the text is reported first.
        {"u8 == 'a' or u16 == 'a'", 4, "a number compared with a text"},
    };
    for (const auto& [text, column, what] : all) {
        const auto found = t.find_mistake(must_parse(text));
        BOOST_REQUIRE_MESSAGE(found, text);
        BOOST_TEST(found->what == what, text);
        BOOST_TEST(found->column + 1 == column, text);
    }
    // A field that some event has is valid; with the name of another event it is not.
    BOOST_TEST(!t.find_mistake(must_parse("name == 'x' and name == 5")).has_value());
    BOOST_TEST(!t.find_mistake(must_parse("event == 'other' and name == 5")).has_value());
    BOOST_TEST(t.find_mistake(must_parse("event == 'other' and name == 'x'")).has_value());
    BOOST_TEST(!t.find_mistake(must_parse("time > 5ms and time < 2 * 5ms and time - time < 3s"))
                    .has_value());

    // Of traces that are read together, one is enough.
    file_builder other;
    other.event({1, "elsewhere", {{"only_there"}, {"u8", field_type::character}}});
    const auto second = reduce::trace_file::from(other.bytes());
    const reduce::tables* const both[] = {&t.file.about(), &second.about()};
    BOOST_TEST(!where::find_mistake(must_parse("only_there == 1 and u8 == 'x' and flag"), both)
                    .has_value());
    BOOST_TEST(where::find_mistake(must_parse("only_here == 1"), both)->what ==
               "no event has a field 'only_here'; did you mean 'only here'?");
    file_builder empty;
    const auto third = reduce::trace_file::from(empty.bytes());
    const reduce::tables* const none[] = {&third.about()};
    BOOST_TEST(where::find_mistake(must_parse("n == 1"), none)->what ==
               "no event has a field 'n': the trace has no fields yet");
    BOOST_TEST(!where::find_mistake(must_parse("event == 'n' and time > 1s"), none).has_value());
    BOOST_TEST(where::find_mistake(must_parse("event == 5"), none)->what ==
               "a text compared with a number");
}

BOOST_AUTO_TEST_CASE(values_of_enumerations_are_asked_by_name_and_by_number) {
    const auto made = named_values();
    const auto file = reduce::trace_file::from(made.bytes());
    const reduce::tables* const one[] = {&file.about()};
    const auto select = [&](const std::string& text) {
        const expression what = must_parse(text);
        const auto wrong = where::find_mistake(what, one);
        BOOST_TEST(!wrong.has_value(), text << ": " << (wrong ? wrong->what : ""));
        reduce::filter some;
        some.condition = std::make_shared<where::predicate>(file.about(), what);
        std::vector<std::uint64_t> found;
        for (const auto& [lane, position] : opened::read(file.forward(some))) {
            found.push_back(position);
        }
        return found;
    };
    const std::pair<const char*, std::vector<std::uint64_t>> all[] = {
        {"side == 'buy'", {0, 3}},
        {"'buy' == side", {0, 3}},
        {"order.side == 'buy'", {0}},
        {"side != 'buy'", {1, 2, 4}},
        {"not side == 'buy'", {1, 2, 4}},
        {"side == 1", {1}},
        {"side == 5", {3}},
        {"side == 7 or level == -300", {0, 2}},
        {"side in {'sell'}", {1}},
        {"order.side in {'sell', 'buy'}", {0, 1}},
        {"side in {0..1}", {0, 1}},
        {"side ~ 's*'", {1}},
        {"side ~ '?'", {2}},
        {"order.side ~ '*' and level ~ 'c*'", {0}},
        // In the order of the numbers, not of the names.
        {"level > 'cold'", {1, 2}},
        {"'warm' > level", {0, 2}},
        {"level >= 'warm'", {1}},
        {"wide == 'most'", {0}},
        {"two[1] == 'sell'", {0}},
        {"two[0] != 'sell'", {0, 2}},
        {"two[1] ~ '[79]'", {1, 2}},
        {"some[0] == 'least'", {0}},
        {"some[0] != 'least'", {1}},
        {"some[0] > 'least'", {1}},
        {"some[0] in {'one'} or some[1] == 5", {0, 1}},
        {"some[0] < 0", {0}},
        {"side == two[0] and event == 'order'", {0, 1}},
        {"value == 'on'", {5}},
    };
    for (const auto& [text, wanted] : all) {
        BOOST_TEST(select(text) == wanted, text);
    }

    struct wrong {
        const char* text;
        std::size_t column;
        const char* what;
    };
    const wrong mistakes[] = {
        {"order.side == 'sel'", 15,
         "no value of 'order.side' is called 'sel'; did you mean 'sell'?"},
        {"value == 1 or 'om' == value", 15,
         "no value of 'value' is called 'om'; did you mean 'on'?"},
        {"order.side in {'buy', 'hold'}", 23,
         "no value of 'order.side' is called 'hold'; there is 'buy', 'sell'"},
        {"level == '20'", 10, "no value of 'level' is called '20'; there is 'warm', 'cold'"},
        {"two == 'buy'", 1, "'two' is an array: write two[0]"},
        {"level in {'cold'..'warm'}", 11, "texts have no ranges"},
        {"side + 'buy' == 1", 8, "a text, where a number is needed"},
    };
    for (const auto& [text, column, what] : mistakes) {
        const auto found = where::find_mistake(must_parse(text), one);
        BOOST_REQUIRE_MESSAGE(found.has_value(), text);
        BOOST_TEST(found->what == what, text);
        BOOST_TEST(found->column + 1 == column, text << ": " << found->column + 1);
    }
    // What makes sense for one event does.
    BOOST_TEST(select("side == 'hold' and event == 'other'") == std::vector<std::uint64_t>{4});
    BOOST_TEST(select("side == 'hold'") == std::vector<std::uint64_t>{4});
}

BOOST_AUTO_TEST_CASE(what_the_tables_decide_is_decided_without_records) {
    opened t;
    const auto predicate = [&t](const char* text) {
        return std::make_unique<where::predicate>(t.file.about(), must_parse(text));
    };
    const auto lanes = [&](const char* text) {
        const auto asks = predicate(text);
        std::string all;
        for (const auto& lane : t.file.lanes()) {
            if (asks->may_want(lane)) all += std::to_string(lane.number);
        }
        return all + (asks->chooses_lanes() ? "" : " all");
    };
    BOOST_TEST(lanes("thread == 'worker'") == "13");
    BOOST_TEST(lanes("not thread == 'worker' and u8 > 1") == "2");
    BOOST_TEST(lanes("tid in {11, 12} and pid + 1 == 1201") == "12");
    BOOST_TEST(lanes("thread == 'main' or flag") == "123");
    BOOST_TEST(lanes("not (thread == 'main' or flag)") == "13");
    BOOST_TEST(lanes("lane == position") == "123 all");
    BOOST_TEST(lanes("(thread == 'main') == flag") == "123 all");
    BOOST_TEST(lanes("flag") == "123 all");
    BOOST_TEST(lanes("false or 1 / 0 == 1") == "");

    const auto types = [&](const char* text) {
        const auto asks = predicate(text);
        std::string all;
        for (const auto& type : t.file.event_types()) {
            if (asks->may_want(&type)) all += std::to_string(type.id);
        }
        return all;
    };
    BOOST_TEST(types("event == 'every' or event ~ '*er'") == "15");
    BOOST_TEST(types("u8 == 1") == "14");
    BOOST_TEST(types("not u8 > 255") == "14");
    BOOST_TEST(types("u8 > 255") == "");
    BOOST_TEST(types("u64 > 0xFFFFFFFF") == "15");  // a u32 never is
    BOOST_TEST(types("name == 'x' or thread == 5") == "12345");

    const auto ticks = [&](const char* text) {
        const auto found = predicate(text)->ticks();
        return found ? std::to_string(found->low) + ".." + std::to_string(found->high) : "none";
    };
    const std::string end = std::to_string(~std::uint64_t{0});
    BOOST_TEST(ticks("time >= 1us and time < 2us") == "2000..2999");
    BOOST_TEST(ticks("1us <= time and not time >= 2us and flag") == "2000..2999");
    BOOST_TEST(ticks("time < 1us or ticks == 5000") == "0..5000");
    BOOST_TEST(ticks("not (time < 1us or ticks > 5000)") == "2000..5000");
    BOOST_TEST(ticks("time < 1us or flag") == "0.." + end);
    BOOST_TEST(ticks("time < 1us and time > 2us") == "none");
    BOOST_TEST(ticks("time == 3us") == "4000..4000");
    BOOST_TEST(ticks("time != 3us") == "0.." + end);
}

BOOST_AUTO_TEST_CASE(a_clock_that_jumped_gives_no_bounds_and_is_compared_by_what_is_told) {
    file_builder b;
    b.clock_reading(0, 0, 1'700'000'000'000'000'000);
    b.clock_reading(1'000'000'000, 1'000'000'000, 1'700'000'001'000'000'000);
    b.clock_reading(1'000'001'000, 100'000'000'000, 1'700'000'100'000'000'000);
    const auto& tick = b.event({1, "tick", {{"n"}}});
    const auto lane = b.lane(b.process(1), 1);
    b.open(lane, 100);
    b.record(lane, 100, tick, {1});
    b.record(lane, 1'000'001'000, tick, {2});
    const auto file = reduce::trace_file::from(b.bytes());
    BOOST_TEST(!file.time().consistent());
    const auto what = must_parse("time >= 50s");
    const auto asks = std::make_shared<where::predicate>(file.about(), what);
    BOOST_TEST(asks->ticks()->low == 0U);
    reduce::filter some;
    some.condition = asks;
    BOOST_TEST((opened::read(file.forward(some)) == places{{1, 1}}));
}

BOOST_AUTO_TEST_CASE(statistics_following_and_other_choices_keep_to_it) {
    opened t;
    auto some = t.filter(must_parse("u64 % 2 == 1"));
    const auto sum = t.file.statistics(some);
    BOOST_TEST(sum.records == opened::read(t.file.forward(some)).size());
    BOOST_TEST(sum.records == opened::read(t.file.forward(some, reduce::merging::by_lane)).size());
    BOOST_TEST(sum.records == opened::read(t.file.backward(some, reduce::merging::by_lane)).size());
    BOOST_TEST(sum.events.size() == 3U);
    some.events = {"o*"};
    BOOST_TEST(opened::read(t.file.forward(some)).size() == 6U);
    some.threads = {11};
    BOOST_TEST(opened::read(t.file.forward(some)).empty());
    // An event with a total is counted whether or not it has records, if it is requested.
    BOOST_TEST(t.file.statistics(t.filter(must_parse("flag"))).events.size() == 1U);
    BOOST_TEST(t.file.statistics(t.filter(must_parse("event == 'other' and name > 99"))).records ==
               1U);
}

namespace {
struct tick : trace_ring::event<"tick", trace_ring::field<"n", std::uint64_t>> {};
struct late : trace_ring::event<"late", trace_ring::field<"n", double>> {};
}  // namespace

BOOST_AUTO_TEST_CASE(a_live_trace_is_followed_and_events_that_come_later_are_asked) {
    trace_ring::recorder recorder{{.size = 256 * 1024}};
    const auto [memory, bytes] = recorder.bytes();
    recorder.record<tick>(std::uint64_t{1});
    auto file = reduce::trace_file::from({memory, bytes});
    reduce::filter some;
    some.condition = std::make_shared<where::predicate>(file.about(), must_parse("n >= 5"));
    auto cursor = file.follow(some);
    const auto count = [&cursor] {
        std::size_t records = 0;
        while (const auto* item = cursor.next()) {
            if (std::holds_alternative<reduce::record_view>(*item)) ++records;
        }
        return records;
    };
    BOOST_TEST(count() == 0U);
    for (std::uint64_t n = 0; n < 10; ++n) recorder.record<tick>(n);
    for (int n = 0; n < 10; ++n) recorder.record<late>(n - 0.5);
    std::size_t found = count();
    found += count();
    cursor.stop_following();
    found += count();
    BOOST_TEST(found == 5U + 4U);
}

BOOST_AUTO_TEST_CASE(a_slow_evaluator_selects_the_same_records) {
    opened t(140);
    maker make(20'260'101);
    const unsigned rounds = repeats(10'000);
    unsigned selective = 0;
    for (unsigned i = 0; i < rounds; ++i) {
        const std::string text = make.condition(1 + static_cast<int>(i % 3));
        const expression what = must_parse(text);
        places wanted;
        for (const auto& record : t.made.records()) {
            if (slow(record).holds(what) == true) wanted.emplace_back(record.lane, record.position);
        }
        std::sort(wanted.begin(), wanted.end());
        // Sometimes backward, sometimes merged.
        const auto order = i % 4 < 2 ? reduce::merging::by_time : reduce::merging::by_lane;
        const auto some = t.filter(what);
        auto found =
            opened::read(i % 2 == 0 ? t.file.forward(some, order) : t.file.backward(some, order));
        std::sort(found.begin(), found.end());
        BOOST_REQUIRE_MESSAGE(found == wanted, text << ": " << found.size()
                                                    << " records in place of " << wanted.size());
        const auto wrong = t.find_mistake(what);
        // Boost evaluates what it does not print: no dereference of nothing there.
        BOOST_REQUIRE_MESSAGE(!wrong, text << ": " << (wrong ? wrong->what : std::string()));
        if (!wanted.empty() && wanted.size() < t.made.records().size()) ++selective;
    }
    BOOST_TEST(selective > rounds / 4);
}

BOOST_AUTO_TEST_SUITE_END()
