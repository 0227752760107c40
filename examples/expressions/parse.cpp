// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// The grammar. It is a separate file because it takes long to compile.

#include "parse.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

#include <boost/spirit/home/x3.hpp>

#include <trace_ring/reduce/tables/duration_unit.hpp>

#include "expected.hpp"

namespace expressions {
namespace {

namespace x3 = boost::spirit::x3;
using trace_ring::point::comparison;
using trace_ring::point::form;
using trace_ring::point::number;

/// Ends the parsing.
struct fault {
    const char* at;
    std::size_t length;
    std::string what;
};

/// Where the text begins.
struct text_begin;
/// How many values there are around the place that is parsed: a number.
struct nesting;
/// Whether numbers and operators are C's, as in clauses: a bool.
struct as_in_c;

[[nodiscard]] fault too_deep(const char* at) {
    return {at, 1,
            "more than " + std::to_string(deepest_nesting) +
                " parentheses, brackets, casts or members within each other"};
}

[[nodiscard]] bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

// --- What tokens mean ----------------------------------------------------------------------------

using trace_ring::reduce::duration_unit;

/// The units that text shows: by name, or in seconds, as [1/3]s or [5]s.
[[nodiscard]] std::optional<duration_unit> unit_of(std::string_view text) {
    for (const auto& each : duration_unit::with_names) {
        if (each.name == text) return duration_unit::of(each.num, each.den);
    }
    if (!text.starts_with('[') || !text.ends_with("]s")) return std::nullopt;
    const char* const end = text.data() + text.size() - 2;
    std::uint64_t seconds = 0;
    std::uint64_t over = 1;
    auto [at, error] = std::from_chars(text.data() + 1, end, seconds);
    if (error == std::errc{} && at != end && *at == '/') {
        error = std::from_chars(at + 1, end, over).ec;
    }
    return error == std::errc{} ? duration_unit::of(seconds, over) : std::nullopt;
}

/// The same operations make nanoseconds of a field's value, so equal durations compare as equal.
[[nodiscard]] number nanoseconds(const number& value, const duration_unit& in) {
    number all = value * number::of(in.times);
    if (value.floating()) {
        // 0.1us is 100 ns, although no double is 0.1.
        if (in.over == 1 && in.times != 1) {
            const double rounded = std::round(all.real());
            return rounded < 0x1p64 ? number::of(static_cast<std::uint64_t>(rounded)) : all;
        }
    } else if (all.bits() % in.over == 0) {
        return all / number::of(in.over);
    }
    return in.over == 1 ? all : all / number::of(static_cast<double>(in.over));
}

[[nodiscard]] expression duration_of(const number& value, std::string_view token,
                                     std::string_view text) {
    const auto in = unit_of(text);
    if (!in) {
        throw fault{text.data(), text.size(),
                    "'" + std::string(text) +
                        "' is no unit: there are fs, ps, ns, us, ms, s, min, h and d (a name "
                        "begins with a letter)"};
    }
    expression made;
    made.what = form::duration;
    made.value = nanoseconds(value, *in);
    // Before the division: a greater number stopped at the limit of 64 bits.
    const bool stopped = value * number::of(in->times) == number::of(UINT64_MAX);
    if (stopped || made.value > number::of(static_cast<std::uint64_t>(INT64_MAX))) {
        throw fault{token.data(), token.size(), "a duration beyond 292 years"};
    }
    return made;
}

/// What says in C which type a whole number has: u, l or ll, or u and one of the others.
[[nodiscard]] bool is_suffix_in_c(std::string_view text) {
    const auto is_u = [](char c) { return c == 'u' || c == 'U'; };
    if (!text.empty() && is_u(text.front())) {
        text.remove_prefix(1);
    } else if (!text.empty() && is_u(text.back())) {
        text.remove_suffix(1);
    }
    return text.empty() || text == "l" || text == "L" || text == "ll" || text == "LL";
}

/// `token` begins as a number does.
[[nodiscard]] expression number_of(std::string_view token, bool in_c) {
    const auto wrong = [&](const char* what) { return fault{token.data(), token.size(), what}; };
    const char* const token_end = token.data() + token.size();
    const auto whole = [&](std::size_t from, int base, const char* what) {
        std::uint64_t value = 0;
        const auto [at, error] = std::from_chars(token.data() + from, token_end, value, base);
        if (error == std::errc::result_out_of_range) throw wrong("a number beyond 64 bits");
        const std::string_view rest(at, static_cast<std::size_t>(token_end - at));
        if (error != std::errc{} || !(rest.empty() || (in_c && is_suffix_in_c(rest))))
            throw wrong(what);
        expression made = expression::of(value);
        if (in_c) made.word = token;
        return made;
    };
    const bool hexadecimal =
        token.size() > 1 && token[0] == '0' && (token[1] == 'x' || token[1] == 'X');
    if (hexadecimal) return whole(2, 16, "no hexadecimal number");
    std::size_t end = 0;
    const auto digits = [&] {
        while (end < token.size() && is_digit(token[end])) ++end;
    };
    digits();
    bool real = false;
    if (end + 1 < token.size() && token[end] == '.' && is_digit(token[end + 1])) {
        real = true;
        ++end;
        digits();
    }
    if (end < token.size() && (token[end] == 'e' || token[end] == 'E')) {
        const std::size_t sign =
            end + 1 < token.size() && (token[end + 1] == '+' || token[end + 1] == '-') ? 1 : 0;
        if (end + 1 + sign < token.size() && is_digit(token[end + 1 + sign])) {
            real = true;
            end += 1 + sign;
            digits();
        }
    }
    number value;
    if (real) {
        double read = 0;
        if (std::from_chars(token.data(), token.data() + end, read).ec != std::errc{}) {
            throw wrong("a number that no double holds");
        }
        value = number::of(read);
    } else {
        std::uint64_t read = 0;
        if (std::from_chars(token.data(), token.data() + end, read).ec != std::errc{}) {
            throw wrong("a number beyond 64 bits");
        }
        value = number::of(read);
    }
    if (in_c && !real && is_suffix_in_c(token.substr(end))) {
        const bool octal = end > 1 && token[0] == '0';
        return whole(0, octal ? 8 : 10, "no octal number, which begins with 0");
    }
    if (end == token.size()) return expression::of(value);
    return duration_of(value, token, token.substr(end));
}

/// What a text between quotes says.
[[nodiscard]] std::string unquoted(std::string_view token) {
    std::string out;
    const char quote = token[0];
    token = token.substr(1, token.size() - 2);
    if (quote == '`') return std::string(token);
    for (std::size_t i = 0; i < token.size(); ++i) {
        if (token[i] != '\\') {
            out += token[i];
            continue;
        }
        const char* const at = token.data() + i;
        const char c = token[++i];  // there is one: the closing quote was not escaped
        constexpr std::string_view letters = "ntr\\\"'";
        constexpr std::string_view meant = "\n\t\r\\\"'";
        if (const auto found = letters.find(c); found != std::string_view::npos) {
            out += meant[found];
            continue;
        }
        if (c != 'x') throw fault{at, 2, R"(no such escape: a \ itself is written \\)"};
        if (token.size() - i < 3) throw fault{at, 2, R"(\x is followed by two hexadecimal digits)"};
        unsigned code = 0;
        const auto [end, error] = std::from_chars(at + 2, at + 4, code, 16);
        if (error != std::errc{} || end != at + 4) {
            throw fault{at, 4, R"(\x is followed by two hexadecimal digits)"};
        }
        out += static_cast<char>(code);
        i += 2;
    }
    return out;
}

// --- Building the tree ---------------------------------------------------------------------------

void stretch_to(expression& all, const expression& last) {
    all.length = last.column + last.length - all.column;
}

/// Makes what there is the first part of a new one.
[[nodiscard]] expression around(form what, expression first) {
    expression made;
    made.what = what;
    made.column = first.column;
    made.length = first.length;
    made.parts.push_back(std::move(first));
    return made;
}

const auto take = [](auto& context) { x3::_val(context) = std::move(x3::_attr(context)); };

/// A further part of a list that is joined by one operator, or by some of one rank.
template <form What>
struct join_by {
    template <class Context>
    void operator()(Context& context) const {
        expression& all = x3::_val(context);
        expression& next = x3::_attr(context);
        if (all.what != What) all = around(What, std::move(all));
        stretch_to(all, next);
        all.parts.push_back(std::move(next));
    }
};
template <form What>
struct operate_by {
    template <class Context>
    void operator()(Context& context) const {
        expression& all = x3::_val(context);
        if (all.what != What) {
            all = around(What, std::move(all));
            all.signs = What == form::sum ? '+' : '*';
        }
        all.signs += x3::_attr(context);
    }
};
/// The operand after that.
const auto operand = [](auto& context) {
    expression& all = x3::_val(context);
    expression& next = x3::_attr(context);
    stretch_to(all, next);
    all.parts.push_back(std::move(next));
};

/// The first parts of forms like `of` within each other: its tree may be as deep as the stack
/// allows.
void refuse_depth(const expression& of, const char* at, auto... forms) {
    std::size_t depth = 0;
    for (const expression* one = &of; ((one->what == forms) || ...); one = &one->parts.front()) {
        if (++depth == deepest_nesting) throw too_deep(at);
    }
}

/// An operator, whose place is the comparison's.
const auto compare_by = [](auto& context) {
    expression made = std::move(x3::_attr(context));
    refuse_depth(x3::_val(context), x3::get<text_begin>(context) + made.column, form::compared);
    made.parts.push_back(std::move(x3::_val(context)));
    x3::_val(context) = std::move(made);
};
const auto compared_with = [](auto& context) {
    x3::_val(context).parts.push_back(std::move(x3::_attr(context)));
};
/// One of a set: both ends of its range.
const auto add_element = [](auto& context) {
    expression& all = x3::_val(context);
    for (auto& end : x3::_attr(context).parts) all.parts.push_back(std::move(end));
};
const auto set_glob = [](auto& context) {
    x3::_val(context).word = std::move(x3::_attr(context).word);
};
[[nodiscard]] std::size_t parts_within(const expression& of) {
    std::size_t count = 1;
    for (const expression& each : of.parts) count += parts_within(each);
    return count;
}
/// What stands alone is both ends. So a set in a set in a set would double with each.
const auto one_end = [](auto& context) {
    constexpr std::size_t most = 256;
    expression& both = x3::_val(context);
    if (parts_within(x3::_attr(context)) > most) {
        throw fault{x3::get<text_begin>(context) + x3::_attr(context).column, 1,
                    "more than " + std::to_string(most) + " values in an element of a set"};
    }
    both.parts.push_back(x3::_attr(context));
    both.parts.push_back(std::move(x3::_attr(context)));
};
const auto other_end = [](auto& context) {
    x3::_val(context).parts[1] = std::move(x3::_attr(context));
};

[[nodiscard]] std::string_view view(const auto& range) {
    return {range.begin(), static_cast<std::size_t>(range.end() - range.begin())};
}
/// Makes what there is from a token, and notes where in the text that lies.
void set(auto& context, expression made) {
    const auto token = view(x3::_attr(context));
    made.column = static_cast<std::size_t>(token.data() - x3::get<text_begin>(context));
    made.length = token.size();
    x3::_val(context) = std::move(made);
}

template <form What, comparison Sign = comparison::equal>
struct becomes {
    template <class Context>
    void operator()(Context& context) const {
        expression made;
        made.what = What;
        made.sign = Sign;
        made.signs = x3::_val(context).signs;  // it is turned
        set(context, std::move(made));
    }
};
const auto negate = [](auto& context) {
    expression& one = x3::_val(context);
    one.signs = one.signs.empty() ? "!" : "";
};
/// The operator was said to be a "not": the comparison's result is turned.
const auto finish_comparison = [](auto& context) {
    expression& one = x3::_attr(context);
    const bool turned = (one.what == form::among || one.what == form::like) && !one.signs.empty();
    if (turned) {
        one.signs.clear();
        one = around(form::none_of, std::move(one));
    }
    x3::_val(context) = std::move(one);
};
const auto finish_not = [](auto& context) {
    expression& all = x3::_val(context);
    const bool turned = !all.signs.empty();
    expression next = std::move(x3::_attr(context));
    all = turned ? around(form::none_of, std::move(next)) : std::move(next);
};

const auto set_number = [](auto& context) {
    set(context, number_of(view(x3::_attr(context)), x3::get<as_in_c>(context).get()));
};
const auto set_text = [](auto& context) {
    set(context, expression::of_text(unquoted(view(x3::_attr(context)))));
};
const auto set_field = [](auto& context) {
    expression made = expression::of_text(unquoted(view(x3::_attr(context))));
    made.what = form::field;
    set(context, std::move(made));
};
const auto set_name = [](auto& context) {
    set(context, expression::of_name(std::string(view(x3::_attr(context)))));
};
template <unsigned Value>
struct set_truth {
    template <class Context>
    void operator()(Context& context) const {
        expression made;
        made.value = number::of(std::uint64_t{Value});
        set(context, std::move(made));
    }
};
const auto add_sign = [](auto& context) {
    expression& all = x3::_val(context);
    if (all.signs.empty()) set(context, {});
    all.signs += *x3::_attr(context).begin();
};
const auto finish_signs = [](auto& context) {
    const expression first = std::move(x3::_val(context));
    expression made = std::move(x3::_attr(context));
    const auto put_around = [&](form what, std::string signs) {
        expression outer = around(what, std::move(made));
        outer.column = first.column;
        stretch_to(outer, outer.parts.front());
        outer.signs = std::move(signs);
        made = std::move(outer);
    };
    // A run of signs is one form, as is a run of '!'.
    std::size_t runs = 0;
    for (std::string_view left = first.signs; !left.empty();) {
        const bool turns = left.back() == '!';
        const std::size_t other = turns ? left.find_last_not_of('!') : left.rfind('!');
        const std::size_t begin = other == std::string_view::npos ? 0 : other + 1;
        const std::string run(left.substr(begin));
        left = left.substr(0, begin);
        if (++runs > deepest_nesting) throw too_deep(x3::get<text_begin>(context) + first.column);
        if (!turns) {
            put_around(form::negated, run);
            continue;
        }
        put_around(form::none_of, {});
        if (run.size() % 2 == 0) put_around(form::none_of, {});
    }
    x3::_val(context) = std::move(made);
};
/// What is behind a value becomes a form around it, to the end of the token.
template <form What>
struct wraps {
    template <class Context>
    void operator()(Context& context) const {
        expression& all = x3::_val(context);
        const auto token = view(x3::_attr(context));
        refuse_depth(all, token.data(), form::through, form::member, form::indexed);
        all = around(What, std::move(all));
        all.word = std::string(token);
        const auto begin = x3::get<text_begin>(context);
        all.length = static_cast<std::size_t>(token.data() + token.size() - begin) - all.column;
    }
};
const auto set_index = [](auto& context) {
    expression& all = x3::_val(context);
    expression& index = x3::_attr(context);
    refuse_depth(all, x3::get<text_begin>(context) + index.column, form::through, form::member,
                 form::indexed);
    all = around(form::indexed, std::move(all));
    all.length = index.column + index.length + 1 - all.column;
    all.parts.push_back(std::move(index));
};
const auto begin_call = [](auto& context) { x3::_val(context).what = form::call; };
const auto add_argument = [](auto& context) {
    expression& all = x3::_val(context);
    stretch_to(all, x3::_attr(context));
    all.parts.push_back(std::move(x3::_attr(context)));
};
const auto set_type = [](auto& context) {
    expression made = expression::of_name(std::string(view(x3::_attr(context))));
    made.what = form::type_name;
    set(context, std::move(made));
};
const auto begin_cast = [](auto& context) {
    expression made = std::move(x3::_attr(context));
    made.what = form::cast;
    x3::_val(context) = std::move(made);
};
const auto finish_cast = [](auto& context) {
    expression& all = x3::_val(context);
    stretch_to(all, x3::_attr(context));
    all.parts.push_back(std::move(x3::_attr(context)));
};
const auto single_equals = [](auto& context) {
    throw fault{x3::_attr(context).begin(), 1, "'=' alone: equal is written =="};
};

/// Bounds how deep the grammar calls itself: every value that lies within another is parsed by a
/// rule that has this around it.
template <class Subject>
struct nested_parser : x3::unary_parser<Subject, nested_parser<Subject>> {
    using x3::unary_parser<Subject, nested_parser<Subject>>::unary_parser;

    template <class Iterator, class Context, class Rule, class Attribute>
    bool parse(Iterator& first, const Iterator& last, const Context& context, Rule& rule,
               Attribute& attribute) const {
        struct level {
            std::size_t& depth;
            explicit level(std::size_t& of) : depth(of) { ++depth; }
            level(const level&) = delete;
            level& operator=(const level&) = delete;
            ~level() { --depth; }
        };
        const level here(x3::get<nesting>(context).get());
        if (here.depth > deepest_nesting + 1) throw too_deep(first);
        return this->subject.parse(first, last, context, rule, attribute);
    }
};
[[nodiscard]] auto nested(const auto& subject) {
    return nested_parser<std::remove_cvref_t<decltype(x3::as_parser(subject))>>(
        x3::as_parser(subject));
}

// --- The grammar ---------------------------------------------------------------------------------

template <class Of>
using rule = x3::rule<Of, expression>;

struct condition_id {};
struct all_id {};
struct not_id {};
struct comparison_id {};
struct compared_id {};
struct sign_id {};
struct set_sign_id {};
struct glob_sign_id {};
struct element_id {};
struct text_id {};
struct value_id {};
struct product_id {};
struct bit_or_id {};
struct bit_xor_id {};
struct bit_and_id {};
struct equality_id {};
struct relation_id {};
struct member_of_set_id {};
struct within_set_id {};
struct equality_sign_id {};
struct relation_sign_id {};
struct shift_id {};
struct added_id {};
struct multiplied_id {};
struct signed_id {};
struct primary_id {};
struct atom_id {};
struct type_id {};
struct typedef_id {};
struct cast_id {};

const rule<condition_id> condition("a condition");
const rule<all_id> all_of("a condition");
const rule<not_id> negation("a condition");
const rule<comparison_id> comparing("a condition");
const rule<compared_id> compared("a condition");
const rule<sign_id> sign("a comparison");
const rule<set_sign_id> set_sign("in");
const rule<glob_sign_id> glob_sign("like");
const rule<element_id> element("a value");
const rule<text_id> quoted_text("a text in quotes");
const rule<value_id> value("a value");
const rule<product_id> product("a value");
const rule<bit_or_id> bit_or("a value");
const rule<bit_xor_id> bit_xor("a value");
const rule<bit_and_id> bit_and("a value");
const rule<equality_id> equality("a value");
const rule<relation_id> relation("a value");
const rule<member_of_set_id> member_of_set("a value");
const rule<within_set_id> within_set("a value");
const rule<equality_sign_id> equality_sign("a comparison");
const rule<relation_sign_id> relation_sign("a comparison");
const rule<shift_id> shift("a value");
const rule<added_id> added("a value");
const rule<multiplied_id> multiplied("a value");
const rule<signed_id> with_sign("a value");
const rule<primary_id> primary("a value");
const rule<atom_id> atom("a value");
const rule<type_id> type_name("a type");
const rule<typedef_id> typedef_name("a type");
const rule<cast_id> with_cast("a value");

const auto letter = x3::char_("a-zA-Z_");
const auto digit = x3::char_("0-9");
// Comments, too; x3::space is no test for every byte.
const auto skipped = x3::char_(" \t\n\v\f\r") | (x3::lit('#') >> *(x3::char_ - '\n')) |
                     ("/*" >> *(x3::char_ - "*/") >> "*/");
const auto in_name = x3::char_("a-zA-Z_0-9");
[[nodiscard]] auto keyword(const char* word) {
    return x3::lexeme[x3::lit(word) >> !in_name];
}
/// Its place is known.
[[nodiscard]] auto token(const char* text) {
    return x3::raw[x3::lit(text)];
}
const auto reserved = keyword("and") | keyword("or") | keyword("not") | keyword("in") |
                      keyword("like") | keyword("true") | keyword("false");
const auto name_token =
    x3::raw[x3::lexeme[letter >> *in_name >> *(x3::char_('.') >> letter >> *in_name)]];
const auto member_token = x3::raw[x3::lexeme[letter >> *in_name]];
/// A type of C begins with one of its words, or its name ends in _t.
const auto type_word = keyword("struct") | keyword("union") | keyword("enum") | keyword("const") |
                       keyword("unsigned") | keyword("signed") | keyword("char") |
                       keyword("short") | keyword("int") | keyword("long") | keyword("float") |
                       keyword("double") | keyword("bool") | keyword("_Bool") | keyword("void") |
                       x3::lexeme[+(in_name - (x3::lit("_t") >> !in_name)) >> "_t" >> !in_name];
const auto number_token =
    x3::raw[x3::lexeme[digit >> (((x3::lit('x') | 'X') >> *in_name) |
                                 (*digit >> -(x3::char_('.') >> +digit) >>
                                  -(x3::char_("eE") >> x3::char_("+-") >> +digit) >>
                                  ((x3::lit('[') >> +digit >> -(x3::lit('/') >> +digit) >>
                                    x3::lit("]s") >> !in_name) |
                                   *in_name)))]];
const auto in_c =
    x3::eps[([](auto& context) { x3::_pass(context) = x3::get<as_in_c>(context).get(); })];
const auto in_records =
    x3::eps[([](auto& context) { x3::_pass(context) = !x3::get<as_in_c>(context).get(); })];
[[nodiscard]] auto quoted(char quote) {
    const auto inside = (x3::lit('\\') >> x3::char_) | (x3::char_ - quote - '\\');
    return x3::raw[x3::lexeme[(x3::lit(quote) >> *inside) > quote]];
}

const auto condition_def = all_of[take] >>
                           *((keyword("or") | "||") > all_of[join_by<form::any_of>{}]);
const auto all_of_def = negation[take] >>
                        *((keyword("and") | "&&") > negation[join_by<form::all_of>{}]);
const auto negation_def =
    (in_c >> *keyword("not")[negate] >> bit_or[finish_not]) |
    (in_records >> *(keyword("not") | (x3::lit('!') >> !x3::char_("=~")))[negate] >>
     comparing[finish_not]);

// C's ranks. Of what is joined on the left, form::sum and form::product keep the order.
const auto bit_or_def = bit_xor[take] >>
                        *((x3::char_('|') >> !x3::lit('|'))[operate_by<form::sum>{}] >
                          bit_xor[operand]);
const auto bit_xor_def = bit_and[take] >>
                         *(x3::char_('^')[operate_by<form::sum>{}] > bit_and[operand]);
const auto bit_and_def = equality[take] >>
                         *((x3::char_('&') >> !x3::lit('&'))[operate_by<form::product>{}] >
                           equality[operand]);
const auto equality_def = relation[take] >> *(equality_sign[compare_by] > relation[compared_with]);
const auto relation_def = member_of_set[take] >>
                          *(relation_sign[compare_by] > member_of_set[compared_with]);
const auto member_of_set_def = within_set[finish_comparison];
const auto in_set_or_like =
    (set_sign[compare_by] > '{' > element[add_element] > *(',' > element[add_element]) > '}') |
    (glob_sign[compare_by] > quoted_text[set_glob]);
const auto within_set_def = shift[take] >> -in_set_or_like;
const auto shift_def = added[take] >>
                       *(((x3::lit("<<") >> x3::attr('<'))[operate_by<form::product>{}] |
                          (x3::lit(">>") >> x3::attr('>'))[operate_by<form::product>{}]) >
                         added[operand]);
const auto added_def = multiplied[take] >>
                       *(x3::char_("+-")[operate_by<form::sum>{}] > multiplied[operand]);
const auto multiplied_def = with_sign[take] >>
                            *(x3::char_("*/%")[operate_by<form::product>{}] > with_sign[operand]);

// Conditions on records have fewer ranks.
const auto comparing_def = compared[finish_comparison];
const auto compared_def = value[take] >>
                          -((sign[compare_by] > value[compared_with]) | in_set_or_like);
const auto sign_def = equality_sign[take] | relation_sign[take];
const auto equality_sign_def = token("==")[becomes<form::compared, comparison::equal>{}] |
                               token("!=")[becomes<form::compared, comparison::unequal>{}] |
                               token("=")[single_equals];
const auto relation_sign_def = (token("<=")[becomes<form::compared, comparison::at_most>{}] |
                                token(">=")[becomes<form::compared, comparison::at_least>{}] |
                                token("<")[becomes<form::compared, comparison::less>{}] |
                                token(">")[becomes<form::compared, comparison::more>{}]);
const auto set_sign_def = -keyword("not")[negate] >> x3::raw[keyword("in")][becomes<form::among>{}];
const auto glob_sign_def =
    ((&x3::lit("!~"))[negate] >> token("!~")[becomes<form::like>{}]) |
    token("~")[becomes<form::like>{}] |
    (-keyword("not")[negate] >> x3::raw[keyword("like")][becomes<form::like>{}]);
const auto element_def = nested(value[one_end] >> -(".." > value[other_end]));
const auto quoted_text_def = quoted('"')[set_text] | quoted('\'')[set_text];
const auto value_def =
    (in_c >> bit_or[take]) |
    (in_records >> product[take] >>
     *((x3::char_("+^-")[operate_by<form::sum>{}] |
        (x3::char_('|') >> !x3::lit('|'))[operate_by<form::sum>{}]) > product[operand]));
const auto product_def = with_sign[take] >>
                         *((x3::char_("*/%")[operate_by<form::product>{}] |
                            (x3::char_('&') >> !x3::lit('&'))[operate_by<form::product>{}] |
                            (x3::lit("<<") >> x3::attr('<'))[operate_by<form::product>{}] |
                            (x3::lit(">>") >> x3::attr('>'))[operate_by<form::product>{}]) >
                           with_sign[operand]);

const auto with_sign_def =
    nested(*x3::raw[x3::char_("~*-") | (in_c >> (x3::char_('+') | (x3::lit('!') >> !x3::lit('=')) |
                                                 (x3::lit('&') >> !x3::lit('&'))))][add_sign] >>
           with_cast[finish_signs]);
const auto with_cast_def =
    (x3::lit('(') >> (type_name[begin_cast] | (in_c >> typedef_name[begin_cast])) >> ')' >>
     with_sign[finish_cast]) |
    primary[take];
const auto type_name_def = x3::raw[&type_word >> +member_token >> *x3::lit('*')][set_type];
// Any name in parentheses that a value follows, or that has a * behind it, is a type: there is no
// other sense in it. With - or * behind it, it is a value.
const auto operand_begins = ((x3::char_("a-zA-Z_0-9(") | (x3::lit('!') >> !x3::char_("=~"))) -
                             (reserved - keyword("true") - keyword("false"))) |
                            (x3::lit('~') >> !x3::char_("\"'"));
const auto typedef_name_def =
    x3::raw[!reserved >> member_token >>
            ((+x3::lit('*') >> &x3::lit(')')) | &(x3::lit(')') >> operand_begins))][set_type];
const auto primary_def = atom[take] >>
                         *(("->" > member_token[wraps<form::through>{}]) |
                           ('[' > value[set_index] > ']') |
                           ((x3::lit('.') >> !x3::lit('.')) > member_token[wraps<form::member>{}]));
const auto atom_def = number_token[set_number] | quoted_text[take] | ('(' > condition[take] > ')') |
                      x3::raw[keyword("true")][set_truth<1>{}] |
                      x3::raw[keyword("false")][set_truth<0>{}] | quoted('`')[set_field] |
                      ((!reserved >> name_token[set_name]) >>
                       -(x3::lit('(')[begin_call] >
                         -((type_name[add_argument] | condition[add_argument]) % ',') > ')'));

BOOST_SPIRIT_DEFINE(condition, all_of, negation, comparing, compared, sign, set_sign, glob_sign,
                    element, quoted_text, value, product, with_sign, with_cast, type_name,
                    typedef_name, primary, atom)
BOOST_SPIRIT_DEFINE(bit_or, bit_xor, bit_and, equality, relation, member_of_set, within_set,
                    equality_sign, relation_sign, shift, added, multiplied)

// --- Mistakes ------------------------------------------------------------------------------------

[[nodiscard]] mistake misplaced(std::string_view text, const char* at, std::string_view expected) {
    const char* const end = text.data() + text.size();
    while (at != end && (*at == ' ' || (*at >= '\t' && *at <= '\r'))) ++at;
    mistake found{static_cast<std::size_t>(at - text.data()), at == end ? 0U : 1U, {}};
    const std::string_view rest(at, static_cast<std::size_t>(end - at));
    const auto begins_with = [&rest](auto... words) { return (rest.starts_with(words) || ...); };
    if (expected == "eoi") {
        if (begins_with('<', '>', "==", "!=")) {
            found.what = "comparisons are not chained: write a < b and b < c";
        } else if (begins_with('=')) {
            found.what = "'=' alone: equal is written ==";
        } else {
            found.what = "'and', 'or' or the end is expected";
        }
        return found;
    }
    if (at == end) found.what = "it ends where ";
    found.what += expected;
    found.what += at == end ? " should follow" : " is expected";
    return found;
}

}  // namespace

namespace {

/// Parses the begin of a text, and leaves `at` behind it.
template <class... Parsers>
[[nodiscard]] expression parsed(std::string_view text, const char*& at, bool as_c,
                                const Parsers&... what) {
    expression made;
    const char* const end = text.data() + text.size();
    std::size_t depth = 0;
    const auto whole = x3::with<text_begin>(text.data())[x3::with<nesting>(
        std::ref(depth))[x3::with<as_in_c>(std::cref(as_c))[(x3::eps > ... > what)]]];
    try {
        if (!x3::phrase_parse(at, end, whole, skipped, made)) throw misplaced(text, at, "a value");
    } catch (const x3::expectation_failure<const char*>& failure) {
        throw misplaced(text, failure.where(), failure.which());
    } catch (const fault& found) {
        throw mistake{static_cast<std::size_t>(found.at - text.data()), found.length, found.what};
    }
    return made;
}

/// Throws what is too much for any text.
void refuse_oversized(std::string_view text, std::size_t most) {
    if (text.size() > most)
        throw mistake{most, 1, "longer than " + std::to_string(most) + " bytes"};
}

/// Throws what a condition on records cannot have, as its records have no memory behind them. The
/// index of an array element is a number in the text.
void make_condition(expression& all) {
    const auto refuse = [&all](const std::string& what) {
        throw mistake{all.column, all.length, what + ", which is for trace clauses"};
    };
    for (auto& part : all.parts) {
        if (all.what == form::indexed) break;
        make_condition(part);
    }
    switch (all.what) {
        case form::negated:
            if (all.signs.find_first_of("~*") != std::string::npos) {
                refuse("'" + all.signs.substr(all.signs.find_first_of("~*"), 1) + "'");
            }
            break;
        case form::sum:
            for (const char one : {'|', '^'}) {
                if (all.signs.find(one) != std::string::npos) refuse(std::string("'") + one + "'");
            }
            break;
        case form::product:
            for (const char one : {'<', '>'}) {
                if (all.signs.find(one) != std::string::npos)
                    refuse(std::string("'") + one + one + "'");
            }
            break;
        case form::indexed: {
            expression& of = all.parts[0];
            const expression& index = all.parts[1];
            if (of.what != form::name && of.what != form::field)
                refuse("an element of what has no name");
            if (index.what != form::constant || index.value.floating()) {
                throw mistake{index.column, index.length, "an element has a whole number"};
            }
            expression made = std::move(of);
            made.what = form::element;
            made.value = index.value;
            made.length = all.length;
            all = std::move(made);
            break;
        }
        case form::member:
            refuse("a member of a structure");
            break;
        case form::through:
            refuse("'->'");
            break;
        case form::cast:
            refuse("a cast");
            break;
        case form::call:
            refuse("a call");
            break;
        default:
            break;
    }
}

}  // namespace

std::variant<expression, mistake> parse(std::string_view text) try {
    refuse_oversized(text, longest_expression);
    const char* at = text.data();
    expression made = parsed(text, at, false, condition, x3::eoi);
    make_condition(made);
    return made;
} catch (const mistake& what) {
    return what;
}

std::variant<script, mistake> parse_script(std::string_view text) try {
    refuse_oversized(text, longest_script);
    script made;
    const char* at = text.data();
    const char* const end = at + text.size();
    const auto skip = [&] { x3::parse(at, end, *skipped); };
    const auto place = [&](const char* from) {
        return text_place{static_cast<std::size_t>(from - text.data()),
                          static_cast<std::size_t>(at - from)};
    };
    const auto follows = [&](const auto& what) {
        const char* ahead = at;
        return x3::phrase_parse(ahead, end, what, skipped);
    };
    const auto token_of = [&](const auto& what, const char* called) {
        skip();
        const char* const from = at;
        if (!x3::parse(at, end, what)) throw misplaced(text, at, called);
        return place(from);
    };
    const auto tuple =
        "@@" >> *(('"' >> *(x3::char_ - '"') >> '"') | (x3::char_ - x3::char_(" \t\n\v\f\r,{\"")));
    // As far as its semicolon: what it says is another grammar's.
    const auto declaration = [&] {
        const char* const from = at;
        for (std::size_t depth = 0; at != end; ++at) {
            if (*at == ';' && depth == 0) {
                ++at;
                return place(from);
            }
            if (*at == '}' && depth == 0) break;
            if (*at == '{') ++depth;
            if (*at == '}') --depth;
            const char* const comment = at;
            if (*at == '#' || *at == '/') skip();
            if (at == end) break;
            if (at != comment) --at;  // the last skipped character
        }
        throw misplaced(text, from, "a declaration that ends with ';'");
    };
    for (skip(); at != end; skip()) {
        if (follows(keyword("struct") | keyword("union") | keyword("enum") | keyword("typedef"))) {
            made.declarations.push_back(declaration());
            continue;
        }
        clause_text clause;
        do {
            clause.points.push_back(
                token_of(tuple, "a trace point, as @@uft:*:libc.so.6:malloc:entry"));
        } while (follows(x3::lit(',')) && (token_of(x3::lit(','), "','"), true));
        if (follows(keyword("when"))) {
            token_of(x3::lit("when"), "when");
            clause.when = parsed(text, at, true, condition);
        }
        token_of(x3::lit('{'), clause.when ? "'{', or 'and', or 'or'" : "'{' or 'when'");
        while (!follows(x3::lit('}'))) {
            skip();
            if (at == end) throw misplaced(text, at, "'}'");
            expression one = parsed(text, at, true, atom);
            if (one.what != form::call) {
                throw mistake{one.column, one.length, "a statement is a call, as capture(arg0);"};
            }
            clause.statements.push_back(std::move(one));
            if (!follows(x3::lit('}'))) token_of(x3::lit(';'), "';'");
        }
        token_of(x3::lit('}'), "'}'");
        made.clauses.push_back(std::move(clause));
    }
    return made;
} catch (const mistake& what) {
    return what;
}

namespace {

/// Within a character of UTF-8.
bool continues(std::string_view text, std::size_t at) {
    return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80;
}

}  // namespace

std::string describe_in_line(std::string_view text, const mistake& what) {
    std::size_t told = 1;
    std::size_t line = 1;
    for (std::size_t i = 0; i < std::min(what.column, text.size()); ++i) {
        told += continues(text, i) ? 0U : 1U;
        if (text[i] != '\n') continue;
        told = 1;
        ++line;
    }
    std::string said;
    for (const char c : what.what) {
        const auto code = static_cast<unsigned char>(c);
        said += code < 0x20 || code == 0x7F ? '?' : c;
    }
    const bool lines = text.find('\n') != std::string_view::npos;
    return (lines ? "line " + std::to_string(line) + ", column " : "column ") +
           std::to_string(told) + ": " + said;
}

std::string describe(std::string_view text, const mistake& what) {
    constexpr std::size_t before = 60;
    constexpr std::size_t after = 40;
    const std::size_t column = std::min(what.column, text.size());
    std::size_t from = column > before ? column - before : 0;
    while (continues(text, from) && from < column) ++from;
    std::size_t to = std::min(text.size(), column + after);
    while (continues(text, to)) ++to;
    std::string line = from == 0 ? "  " : "  ...";
    std::string mark(line.size(), ' ');
    for (std::size_t i = from; i < to; ++i) {
        const auto c = static_cast<unsigned char>(text[i]);
        line += c < 0x20 || c == 0x7F ? ' ' : text[i];
        if (i < column && !continues(text, i)) mark += ' ';
    }
    if (to < text.size()) line += "...";
    mark += '^';
    for (std::size_t i = column + 1; i < std::min(to, column + what.length); ++i) {
        if (!continues(text, i)) mark += '~';
    }
    return describe_in_line(text, what) + "\n" + line + "\n" + mark;
}

}  // namespace expressions
