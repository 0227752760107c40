// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file The grammar of declarations. In a separate file because it takes long to compile.

#include <charconv>
#include <cstdint>
#include <string>
#include <system_error>
#include <utility>

#include <boost/spirit/home/x3.hpp>

#include "../../expressions/expected.hpp"

#include "declaration_tree.hpp"

namespace trace_clauses {
namespace {

namespace x3 = boost::spirit::x3;
using kind = node::kind;

constexpr std::size_t deepest_brackets = 40;

// --- Building the tree ---------------------------------------------------------------------------

/// Appends what was parsed to the parts.
const auto add = [](auto& context) {
    x3::_val(context).parts.push_back(std::move(x3::_attr(context)));
};
const auto take = [](auto& context) { x3::_val(context) = std::move(x3::_attr(context)); };

/// Sets the kind of the node, at a token.
template <kind What>
struct becomes {
    template <class Context>
    void operator()(Context& context) const {
        x3::_val(context).is = What;
        x3::_val(context).at = x3::_attr(context).begin();
    }
};
const auto set_word = [](auto& context) {
    node& one = x3::_val(context);
    const auto& token = x3::_attr(context);
    one.at = token.begin();
    one.word.assign(token.begin(), token.end());
};
const auto add_word = [](auto& context) {
    node& one = x3::_val(context);
    const auto& token = x3::_attr(context);
    one.is = kind::words;
    if (one.at == nullptr) one.at = token.begin();
    if (!one.word.empty()) one.word += ' ';
    one.word.append(token.begin(), token.end());
};
const auto add_pointer = [](auto& context) { ++x3::_val(context).pointers; };
const auto add_sign = [](auto& context) { x3::_val(context).word += x3::_attr(context); };
const auto set_body = [](auto& context) { x3::_val(context).has_body = true; };
const auto set_packed = [](auto& context) { x3::_val(context).packed = true; };
const auto set_number = [](auto& context) {
    const auto& token = x3::_attr(context);
    const char* begin = token.begin();
    const char* end = token.end();
    int base = 10;
    if (end - begin > 1 && *begin == '0') {
        const bool sixteen = begin[1] == 'x' || begin[1] == 'X';
        base = sixteen ? 16 : 8;
        begin += sixteen ? 2 : 1;
    }
    std::int64_t value = 0;
    const auto [at, error] = std::from_chars(begin, end, value, base);
    std::string rest(at, end);
    for (const char* known : {"", "u", "U", "l", "L", "ul", "UL", "ll", "LL", "ull", "ULL"}) {
        if (error != std::errc{} || rest != known) continue;
        x3::_val(context).is = kind::number;
        x3::_val(context).at = token.begin();
        x3::_val(context).value = value;
        return;
    }
    throw declaration_fault{token.begin(), "no number that fits in 64 bits"};
};
/// A sum or product with one operand is replaced by the operand.
const auto finish = [](auto& context) {
    node& one = x3::_attr(context);
    if (one.parts.size() == 1 && one.word.empty()) {
        node only = std::move(one.parts[0]);
        one = std::move(only);
    }
    x3::_val(context) = std::move(one);
};
/// The number of '-' before it.
const auto finish_minus = [](auto& context) {
    const bool turned = x3::_val(context).pointers % 2 != 0;
    node one = std::move(x3::_attr(context));
    if (turned) {
        node all;
        all.is = kind::negated;
        all.at = one.at;
        all.parts.push_back(std::move(one));
        one = std::move(all);
    }
    x3::_val(context) = std::move(one);
};
const auto set_enumerator = [](auto& context) {
    set_word(context);
    x3::_val(context).is = kind::name;
};
const auto becomes_definition = [](auto& context) { x3::_val(context).is = kind::definition; };
const auto set_declared = [](auto& context) {
    set_word(context);
    x3::_val(context).is = kind::declarator;
};
const auto set_value_name = [](auto& context) {
    set_word(context);
    x3::_val(context).is = kind::enumerator;
};
const auto becomes_declarator = [](auto& context) { x3::_val(context).is = kind::declarator; };
template <kind What>
struct operand_of {
    template <class Context>
    void operator()(Context& context) const {
        node& all = x3::_val(context);
        all.is = What;
        if (all.at == nullptr) all.at = x3::_attr(context).at;
        all.parts.push_back(std::move(x3::_attr(context)));
    }
};

// --- The grammar ---------------------------------------------------------------------------------

/// The rules have short names that are parameter names elsewhere.
namespace grammar {

struct definition_id {};
struct alias_id {};
struct specifier_id {};
struct record_id {};
struct enumeration_id {};
struct enumerator_id {};
struct words_id {};
struct line_id {};
struct declarator_id {};
struct suffix_id {};
struct width_id {};
struct constant_id {};
struct sum_id {};
struct product_id {};
struct primary_id {};
struct parameters_id {};
struct name_id {};
struct attribute_id {};
struct packed_id {};
struct record_end_id {};
struct values_end_id {};
struct item_id {};
struct terms_id {};
struct factor_id {};

template <class Of>
using rule = x3::rule<Of, node>;
using range = boost::iterator_range<const char*>;

const rule<definition_id> definition("a declaration");
const rule<alias_id> alias("a declaration");
const rule<specifier_id> specifier("a type");
const rule<record_id> record("a type");
const rule<enumeration_id> enumeration("a type");
const rule<enumerator_id> enumerator("a name");
const rule<words_id> words("a type");
const rule<line_id> line("a member");
const rule<item_id> item("a name");
const rule<declarator_id> declarator("a name");
const rule<suffix_id> suffix("'['");
const rule<width_id> width("a number of bits");
const rule<constant_id> constant("a number");
const rule<sum_id> sum("a number");
const rule<product_id> product("a number");
const rule<primary_id> primary("a number");
const rule<terms_id> terms("a number");
const rule<factor_id> factor("a number");
const x3::rule<parameters_id> parameters("parameters");
const x3::rule<name_id, range> name("a name");
const x3::rule<packed_id> packed("packed");
const x3::rule<record_end_id> record_end("a member or '}'");
const x3::rule<values_end_id> values_end("',' or '}'");
const x3::rule<attribute_id> attribute("__attribute__((packed))");

const auto letter = x3::char_("a-zA-Z_");
const auto digit = x3::char_("0-9");
const auto in_name = x3::char_("a-zA-Z_0-9");
const auto skipped = x3::char_(" \t\n\v\f\r") | ("//" >> *(x3::char_ - '\n')) |
                     ("/*" >> *(x3::char_ - "*/") >> "*/");
[[nodiscard]] auto keyword(const char* word) {
    return x3::lexeme[x3::lit(word) >> !in_name];
}
/// A token whose place is known.
[[nodiscard]] auto token(const char* word) {
    return x3::raw[keyword(word)];
}
const auto sign = [](char of) { return x3::raw[x3::lit(of)]; };

const auto qualifier = keyword("const") | keyword("volatile") | keyword("restrict");
const auto base_word =
    x3::raw[keyword("signed") | keyword("unsigned") | keyword("char") | keyword("short") |
            keyword("int") | keyword("long") | keyword("float") | keyword("double") |
            keyword("void") | keyword("_Bool")];
const auto reserved = qualifier | base_word | keyword("struct") | keyword("union") |
                      keyword("enum") | keyword("typedef") | keyword("sizeof") |
                      keyword("__attribute__");

const auto name_def = x3::raw[x3::lexeme[!reserved >> letter >> *in_name]];
const auto attribute_def = keyword("__attribute__") > '(' > '(' > packed > ')' > ')';
const auto packed_def = keyword("packed") | keyword("__packed__");
const auto record_end_def = x3::lit('}');
const auto values_end_def = x3::lit('}');
const auto words_def = +(base_word[add_word] | qualifier) | name[add_word];
const auto record_def = (token("struct")[becomes<kind::structure>{}] |
                         token("union")[becomes<kind::union_>{}]) >>
                        *attribute[set_packed] >> -name[set_word] >>
                        -((x3::lit('{')[set_body] > *line[add] > record_end) >>
                          *attribute[set_packed]);
const auto enumeration_def = token("enum")[becomes<kind::enumeration>{}] >> -name[set_word] >>
                             -(x3::lit('{')[set_body] > (enumerator[add] % ',') > -x3::lit(',') >
                               values_end);
const auto enumerator_def = name[set_value_name] >> -('=' > constant[add]);
const auto specifier_def = *qualifier >> (record[take] | enumeration[take] | words[take]) >>
                           *qualifier;
const auto definition_def =
    (x3::eps[becomes_definition] >> &(keyword("struct") | keyword("union") | keyword("enum")) >>
     specifier[add]) > ';';
const auto alias_def = token("typedef")[becomes<kind::alias>{}] > specifier[add] > declarator[add] >
                       *(',' > declarator[add]) > ';';
const auto item_def = declarator[take] | (x3::eps[becomes_declarator] >> width[add]);
const auto line_def = (specifier[add] >> -(item[add] >> *(',' > item[add]))) > ';';
const auto declarator_def = *(x3::lit('*')[add_pointer] >> *qualifier) >>
                            (name[set_declared] |
                             ('(' > declarator[add] > ')')[becomes_declarator]) >>
                            *suffix[add] >> -width[add];
const auto width_def = sign(':')[becomes<kind::width>{}] > constant[add];
const auto suffix_def = (sign('[')[becomes<kind::array>{}] > -constant[add] > ']') |
                        (sign('(')[becomes<kind::function>{}] > parameters > ')');
const auto parameters_def = *(x3::omit[x3::char_ - '(' - ')'] | ('(' > parameters > ')'));
const auto constant_def = sum[finish];
const auto sum_def = product[operand_of<kind::sum>{}] >>
                     *(x3::char_("+-")[add_sign] > product[operand_of<kind::sum>{}]);
const auto terms_def = factor[operand_of<kind::product>{}] >>
                       *(x3::char_("*/%")[add_sign] > factor[operand_of<kind::product>{}]);
const auto factor_def = *x3::lit('-')[add_pointer] >> primary[finish_minus];
const auto product_def = terms[finish];
const auto primary_def = x3::raw[x3::lexeme[digit >> *in_name]][set_number] |
                         (token("sizeof")[becomes<kind::size_of>{}] > '(' > specifier[add] >
                          *x3::lit('*')[add_pointer] > ')') |
                         ('(' > constant[take] > ')') | name[set_enumerator];

BOOST_SPIRIT_DEFINE(definition, alias, specifier, record, enumeration, enumerator, words, line,
                    item, declarator, suffix, width, constant, sum, terms, factor, product, primary,
                    parameters, name, attribute, packed, record_end, values_end)

}  // namespace grammar

/// The extent of one declaration: up to its ';', which may be missing.
struct extent_of_one {
    const char* end;
    const char* too_deep;  ///< where brackets are nested too deeply; null if they are not
};
[[nodiscard]] extent_of_one look_ahead(const char* at, const char* end) {
    std::size_t depth = 0;
    for (; at != end; ++at) {
        const std::string_view rest(at, static_cast<std::size_t>(end - at));
        if (rest.starts_with("//") || rest.starts_with("/*")) {
            const bool short_one = rest[1] == '/';
            const std::size_t comment_end = rest.find(short_one ? "\n" : "*/", 2);
            if (comment_end == std::string_view::npos) return {end, nullptr};
            at += comment_end + (short_one ? 0 : 1);
            continue;
        }
        if (*at == '(' || *at == '{' || *at == '[') ++depth;
        if ((*at == ')' || *at == '}' || *at == ']') && depth != 0) --depth;
        if (depth > deepest_brackets) return {end, at};
        if (*at == ';' && depth == 0) return {at + 1, nullptr};
    }
    return {end, nullptr};
}

/// Returns whether a declaration begins there.
[[nodiscard]] bool begins_declaration(const char* at, const char* end) {
    const std::string_view rest(at, static_cast<std::size_t>(end - at));
    for (const std::string_view word : {"struct", "union", "enum", "typedef"}) {
        if (!rest.starts_with(word)) continue;
        const char next = rest.size() == word.size() ? ' ' : rest[word.size()];
        if (next == '{' || next == '/' || next == ' ' || (next >= '\t' && next <= '\r'))
            return true;
    }
    return false;
}

}  // namespace

declaration_tree parse_declarations(std::string_view script, std::size_t from) {
    constexpr std::size_t longest = 1U << 20;
    const char* at = script.data() + from;
    const char* const end = script.data() + script.size();
    declaration_tree made;
    made.root.is = kind::all;
    const auto skip = [&] { x3::parse(at, end, *x3::omit[grammar::skipped]); };
    skip();
    const char* const first = at;
    const char* last = end;
    try {
        while (begins_declaration(at, end)) {
            // Declarations are read one after another, because another language follows the last of
            // them.
            const auto [stop, deep] = look_ahead(at, end);
            if (deep != nullptr) {
                throw declaration_fault{deep, "more than 40 brackets within each other"};
            }
            if (static_cast<std::size_t>(stop - first) > longest) {
                throw declaration_fault{at, "declarations of more than a MiB"};
            }
            last = stop;
            node one;
            const char* const begin = at;
            if (!x3::phrase_parse(at, last, grammar::definition | grammar::alias, grammar::skipped,
                                  one)) {
                throw declaration_fault{begin, "a declaration is expected"};
            }
            made.root.parts.push_back(std::move(one));
            skip();
        }
    } catch (const x3::expectation_failure<const char*>& failure) {
        at = failure.where();
        skip();
        throw declaration_fault{at, (at == end ? "it ends where " : "") + failure.which() +
                                        (at == end ? " should follow" : " is expected")};
    }
    made.end = static_cast<std::size_t>(at - script.data());
    return made;
}

}  // namespace trace_clauses
