// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Valid declarations of a script, and the messages for invalid ones; and debug information that
/// lies.

#include <cstdint>
#include <iterator>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <examples/trace_clauses/clause_programs.hpp>
#include <trace_clauses/types/declarations.hpp>
#include <trace_clauses/types/dwarf_types.hpp>

namespace clause_declarations {

using namespace clause_programs;
using namespace trace_clauses;

namespace {

struct tables {
    type_table wide{program_mode::lp64};
    type_table narrow{program_mode::ilp32};

    std::size_t declare(std::string_view text, std::size_t from = 0) {
        return trace_clauses::declare(text, from, wide, narrow);
    }
    /// The sizes in both modes.
    std::string sizes(const std::string& name) const {
        return std::to_string(wide[wide.find(name)].size.bytes) + " " +
               std::to_string(narrow[narrow.find(name)].size.bytes);
    }
};

std::string complaint(std::string_view text) {
    try {
        tables all;
        all.declare(text);
    } catch (const declaration_error& error) {
        return error.what();
    }
    return {};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(clause_declarations_test)

BOOST_AUTO_TEST_CASE(sizes_follow_the_mode) {
    tables all;
    // As issue and facts have it: sa_mask is at 4 with 4 bytes, and at 8 with 8 bytes.
    const std::string text = R"(
// The kernel's.
struct sigaction {
    void (*handler)(int); unsigned long sa_mask; int flags; void (*restorer)(void);
};
typedef struct { long words[1024 / (8 * sizeof(long))]; } sigset; /* as glibc has it */
enum { few = 3, more = few * 2 + 1, below = -(-2) - 3 };
struct sized {
    char a[few], b[more - 1], c[sizeof(struct sigaction)], d[sizeof(char *) * 0x2], e[010];
};
typedef unsigned long int word, *words_pointer, words[2];
typedef long long unsigned int large;
struct all {
    word w; words_pointer p; words two; const size_t *const n; uint16_t s; bool yes; large l;
};
struct later; struct now { struct later *next; }; struct later { struct now first; int n; };
typedef struct later later_too;
struct uses { later_too of; volatile int *a, b, **c; int (*table[4])(int, void (*)(int)); };
)";
    BOOST_TEST(all.declare(text) == text.size());
    BOOST_TEST(all.sizes("struct sigaction") == "32 16");
    const auto mask = [](const type_table& in) {
        return in[in.find("struct sigaction")].members.at(1);
    };
    BOOST_TEST(mask(all.wide).offset == 8U);
    BOOST_TEST(mask(all.narrow).offset == 4U);
    BOOST_TEST(all.wide[mask(all.wide).type].size.bytes == 8U);
    BOOST_TEST(all.narrow[mask(all.narrow).type].size.bytes == 4U);
    BOOST_TEST(all.sizes("sigset") == "128 128");
    BOOST_TEST(all.wide.constants().at("below").value == -1);
    BOOST_TEST(all.sizes("struct sized") == "65 41");
    BOOST_TEST(all.sizes("words_pointer") == "8 4");
    BOOST_TEST(all.sizes("words") == "16 8");
    BOOST_TEST(all.sizes("struct all") == "56 32");
    // What pointed to it before it was complete, does so to it now.
    const auto& narrow = all.narrow;
    const member& next = narrow[narrow.find("struct now")].members.at(0);
    BOOST_TEST(narrow[next.type].of == narrow.find("struct later"));
    BOOST_TEST(all.sizes("struct later") == "16 8");
    BOOST_TEST(all.sizes("struct uses") == "72 36");
}

BOOST_AUTO_TEST_CASE(it_ends_where_something_else_begins) {
    tables all;
    const std::string text = "begin { } struct a { int i; };\n  structure { struct b { int j; }; }";
    BOOST_TEST(all.declare(text) == 0U);
    BOOST_TEST(text.substr(all.declare(text, 10)) == "structure { struct b { int j; }; }");
    BOOST_TEST(all.sizes("struct a") == "4 4");
    BOOST_TEST(all.declare("") == 0U);
    BOOST_TEST(all.declare("  // nothing\n") == 13U);
    // A program's structure of that name means from then on what the script says.
    BOOST_TEST(all.declare("struct a { long l; };") == 21U);
    BOOST_TEST(all.sizes("struct a") == "8 4");
}

BOOST_AUTO_TEST_CASE(mistakes_are_pointed_at) {
    const struct {
        const char* text;
        const char* said;
    } all[] = {
        {"struct a { int i }", "line 1, column 18: ';' is expected"},
        {"struct a {\n  int i;\n  unknown u;\n};", "line 3, column 3: there is no type 'unknown'"},
        {"struct u { int i; }; struct b { u v; };",
         "line 1, column 33: there is no type 'u'; did you mean 'struct u'?"},
        {"struct a { int i;", "line 1, column 18: it ends where a member or '}' should follow"},
        {"struct a { int i; } 5;", "line 1, column 21: ';' is expected"},
        {"struct a { 5 };", "line 1, column 12: a member or '}' is expected"},
        {"struct a { int i, ; };", "line 1, column 19: a name is expected"},
        {"struct a { int i[; };", "line 1, column 18: ']' is expected"},
        {"struct a { int i[2 + ]; };", "line 1, column 22: a number is expected"},
        {"struct a { int i : ; };", "line 1, column 20: a number is expected"},
        {"struct a { int i : 33; };", "line 1, column 20: of 0 to 32 bits"},
        {"struct a { int i : 0; };", "line 1, column 20: a named bit-field has at least one bit"},
        {"struct a { float f : 3; };", "line 1, column 18: bits are of an integer"},
        {"struct a { int i; char i; };", "line 1, column 24: there are two members 'i'"},
        {"struct a { int i; };\nstruct a { int j; };",
         "line 2, column 8: 'struct a' is declared twice"},
        {"struct a { struct b in; };",
         "line 1, column 21: 'struct b' is not complete here: it has no size"},
        {"struct a { struct a in; };",
         "line 1, column 21: 'struct a' is not complete here: it has no size"},
        {"struct a { void v; };", "line 1, column 17: 'void' is not complete here: it has no size"},
        {"struct a { int f(int); };",
         "line 1, column 16: a member is no function, but may point to one"},
        {"struct a { unsigned float f; };", "line 1, column 12: no type is 'unsigned float'"},
        {"struct a { int i[1 / 0]; };", "line 1, column 22: a division by 0"},
        {"struct a { int i[few]; };", "line 1, column 18: there is no constant 'few'"},
        {"struct a { int i[-1]; };", "line 1, column 19: less than no elements"},
        {"struct a { char c[1 << 3]; };", "line 1, column 21: ']' is expected"},
        {"struct a { char c[99999999999999999999]; };",
         "line 1, column 19: no number that fits in 64 bits"},
        {"struct a { char c[09]; };", "line 1, column 19: no number that fits in 64 bits"},
        {"struct a { char c[1099511627777]; };", "line 1, column 18: too large"},
        {"struct a { char c[1099511627776], d; };", "line 1, column 35: too large"},
        {"enum e { a b };", "line 1, column 12: ',' or '}' is expected"},
        {"enum e;", "line 1, column 6: there is no 'enum e'"},
        {"typedef int;", "line 1, column 12: a name is expected"},
        {"typedef i;", "line 1, column 10: a name is expected"},
        {"struct a { char \xC3\xA4; };", "line 1, column 17: ';' is expected"},
        {"struct a { /* \xC3\xA4 */ int 5; };", "line 1, column 24: ';' is expected"},
        {"struct __attribute__((aligned(8))) a { int i; };",
         "line 1, column 23: packed is expected"},
        {"struct int { int i; };", "line 1, column 8: ';' is expected"},
    };
    for (const auto& [text, said] : all) BOOST_TEST(complaint(text) == said, text);
    // However deep.
    std::string deep;
    for (int i = 0; i < 100'000; ++i) deep += "struct a { ";
    BOOST_TEST(complaint(deep) == "line 1, column 450: more than 40 brackets within each other");
    BOOST_TEST(complaint("struct a { int " + std::string(100'000, '(') + "; };") ==
               "line 1, column 55: more than 40 brackets within each other");
    BOOST_TEST(complaint("struct a { int " + std::string(100'000, '*') + "p; };") == "");
    BOOST_TEST(complaint("struct a { char c[" + std::string(100'000, '-') + "1]; };") == "");
    BOOST_TEST(complaint("struct a { int /* " + std::string(100'000, '(') + " */ i; };") == "");
    // What doubles with each.
    std::string growing = "struct a0 { char c[1024]; };";
    for (int i = 1; i < 40; ++i) {
        const std::string last = std::to_string(i - 1);
        growing += "struct a" + std::to_string(i) + " { struct a" + last + " a, b; };";
    }
    BOOST_TEST(complaint(growing).ends_with("too large"));
}

BOOST_AUTO_TEST_CASE(random_text_is_refused_or_read) {
    const std::string good =
        "struct order { int id; const char *name; struct { long a; unsigned b : 3; } in[2]; "
        "union { float f; double d; }; enum { one, two = 5 } e; int (*f)(int, char *); }; "
        "typedef struct order *orders[sizeof(int) * (2 + 1)];";
    const std::string_view pieces[] = {"struct", "{", "}",  ";",  "(",      ")",   "[",
                                       "]",      "*", ",",  ":",  "sizeof", "int", "x",
                                       "1",      "-", "/*", "*/", "//",     "\n"};
    std::mt19937_64 random(28);
    const std::uint64_t tries = test::repeated(20'000, 1'000);
    std::uint64_t refused = 0;
    for (std::uint64_t i = 0; i < tries; ++i) {
        std::string text = good;
        for (std::uint64_t n = 1 + random() % 4; n > 0; --n) {
            const std::size_t at = random() % text.size();
            if (random() % 2 == 0) {
                text.replace(at, random() % 3, pieces[random() % std::size(pieces)]);
            } else {
                text.erase(at, 1 + random() % 5);
            }
        }
        refused += complaint(text).empty() ? 0U : 1U;
    }
    BOOST_TEST(refused > tries / 2);
    BOOST_TEST(refused < tries);
}

BOOST_AUTO_TEST_CASE(debug_information_that_lies) {
    const test::folder folder;
    constexpr const char* text = R"(
namespace a { struct base { int n; virtual ~base() {} }; enum e : short { x, y = -3 };
struct one : base {
    one *next; unsigned b : 5; e kind; int grid[3][4]; union { float f; long l; };
};
__attribute__((noinline)) long take(const one &o, int (*f)(one *), e k) {
    return o.b + f(nullptr) + k;
} }
int ask(a::one *) { return 0; }
int main() { a::one o{}; return a::take(o, &ask, a::x) * 0; })";
    std::mt19937_64 random(28);
    for (const std::string flags : {"-gdwarf-4", "-gdwarf-5", "-gdwarf-5 -fdebug-types-section"}) {
        const std::string path = folder / "program";
        const int bits = flags == "-gdwarf-4" ? 32 : 64;
        if (!build(path, text, "c++", bits, flags + " -O1")) continue;
        const std::string whole = text_of(path);
        struct section {
            std::size_t at = 0, size = 0;
        };
        std::vector<section> sections;
        for (auto line : words_of("readelf -SW " + path + " | tr -d '[]' | grep ' \\.debug_'")) {
            if (line.size() < 6) continue;
            sections.push_back(
                {std::stoull(line[4], nullptr, 16), std::stoull(line[5], nullptr, 16)});
        }
        BOOST_REQUIRE(sections.size() > 2U);
        const std::uint64_t tries = test::repeated(2000, 100);
        std::uint64_t read = 0;
        for (std::uint64_t i = 0; i < tries; ++i) {
            std::string bytes = whole;
            for (std::uint64_t n = 1 + random() % 6; n > 0; --n) {
                const section& in = sections[random() % sections.size()];
                bytes[in.at + random() % in.size] = static_cast<char>(random());
            }
            write(folder / "hurt", bytes);
            try {
                const program_file file(folder / "hurt");
                type_table types(file.mode());
                dwarf_types known(file, types);
                for (const auto& each : file.functions()) {
                    const auto type = known.of_function(each.address);
                    read += type ? type->parameters.size() : 0;
                }
                for (const char* name : {"struct a::one", "a::e", "struct a::base"}) {
                    read += types[known.find(name)].members.size();
                }
                BOOST_TEST(types.size() < 100'000U);
            } catch (const std::runtime_error&) {
                // It may say so, too.
            }
        }
        BOOST_TEST(read > tries / 2);
    }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace clause_declarations
